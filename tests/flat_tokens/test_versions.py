"""Datasets that grow: what a version shows, and what verification finds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from small_datasets import write_dataset

import flat_tokens
from flat_tokens import DatasetError, verify_dataset
from flat_tokens.__main__ import main
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.places import Place, StorePath
from flat_tokens.storage.versions import Part, Version, describe_part, newest, part_path, write_version
from tokenmill.stores import AlreadyThere, open_store
from tokenmill.stores.errors import StoreDenied, StoreNotFound

PARTS = [([[1, 2], [3, 4, 5]], [[9]]), ([[6, 7, 8]], []), ([[5]], [[4, 4]])]
LAYOUT = ArrayLayout.create(zarr_format=3, chunk_tokens=2, shard_tokens=4)


def grow(url: str) -> Place:
    """The dataset with all parts, each with its version."""
    store = open_store(url)
    place: Place = Path(url) if store.is_local else StorePath(store)
    described: tuple[Part, ...] = ()
    for number, (train, validation) in enumerate(PARTS):
        path = part_path(number) if number else ""
        destination = Path(url) / path if store.is_local else open_store(f"{url}/{path}".rstrip("/"))
        write_dataset(destination, train, validation, LAYOUT)
        described = (*described, describe_part(place, path))
        if number:
            write_version(store, Version(number, described))
    return place


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    place = grow(str(tmp_path / "a.zarr"))
    assert isinstance(place, Path)
    return place


def check_versions(root: Place) -> None:
    for version in range(3):
        dataset = flat_tokens.open(root, version=version)
        assert dataset.version == version
        for at, name in enumerate(("train", "validation")):
            wanted = [sequence for part in PARTS[: version + 1] for sequence in part[at]]
            assert [ids.tolist() for ids in dataset[name]] == wanted
    assert flat_tokens.open(root).version == 2
    assert len(repr(flat_tokens.open(root))) < 400 + len(str(root))  # one line a person can read


def test_a_version_shows_its_parts(grown: Path) -> None:
    check_versions(grown)
    assert verify_dataset(grown).ok
    assert verify_dataset(grown).token_count == 12


def test_on_a_store() -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    place = grow(f"memory://{uuid4().hex}/a.zarr")
    check_versions(place)
    assert verify_dataset(place).ok


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7, 8, 9, 100])
def test_the_newest_is_found(tmp_path: Path, count: int) -> None:
    (tmp_path / "versions").mkdir()
    for number in range(1, count + 1):
        (tmp_path / "versions" / f"{number}.json").touch()
    assert newest(tmp_path) == count


def test_a_version_is_written_once(grown: Path) -> None:
    with pytest.raises(AlreadyThere):
        write_version(open_store(str(grown)), Version(2, ()))
    check_versions(grown)


def test_what_is_appended_just_now_is_left_alone(grown: Path) -> None:
    (grown / "part-3.partial").mkdir()
    (grown / "part-3.partial" / "plan.json").write_text("{}")
    assert verify_dataset(grown).ok


@pytest.mark.parametrize("path", ["", "part-1", "part-2"])
def test_damage_is_found_in_every_part(grown: Path, path: str) -> None:
    file = grown / path / "train" / "encoded_tokens" / "c" / "0"
    data = bytearray(file.read_bytes())
    data[3] ^= 4
    file.write_bytes(data)
    problems = verify_dataset(grown).problems
    assert problems
    assert all(problem.startswith(f"{path}/train".lstrip("/")) for problem in problems)


def test_a_part_of_another_is_found(grown: Path) -> None:
    manifest = grown / "part-1" / "manifest.json"
    manifest.write_bytes((grown / "part-2" / "manifest.json").read_bytes())
    assert any("part-1" in problem for problem in verify_dataset(grown).problems)


@pytest.mark.parametrize("number", [1, 2])
def test_a_changed_version_is_found(grown: Path, number: int) -> None:
    path = grown / "versions" / f"{number}.json"
    value = json.loads(path.read_text())
    value["parts"][0]["splits"]["train"][0] += 1
    path.write_text(json.dumps(value))
    with pytest.raises(DatasetError):
        flat_tokens.open(grown, version=number)
    if number == 1:
        assert "versions/1.json" in verify_dataset(grown).problems[0]


@pytest.mark.parametrize("is_on_store", [False, True])
def test_a_lost_version_hid_all_behind_it(tmp_path: Path, is_on_store: bool) -> None:
    """The dataset without its parts was opened, and verified as sound."""
    if is_on_store:
        pytest.importorskip("obstore", reason="obstore is not installed")
    url = f"memory://{uuid4().hex}/a.zarr" if is_on_store else str(tmp_path / "a.zarr")
    place = grow(url)
    open_store(url).delete(["versions/1.json"])
    problems = verify_dataset(place).problems
    assert len(problems) == 1
    assert "version" in problems[0]
    assert " 1" in problems[0] or "versions/1.json" in problems[0]
    if not is_on_store:
        with pytest.raises(DatasetError, match=r"versions/1\.json.*versions/2\.json"):
            flat_tokens.open(place)
    assert flat_tokens.open(place, version=2).train.seq_count == 4
    assert flat_tokens.open(place, version=0).train.seq_count == 2


def test_a_store_that_does_not_tell_what_is_not_there(tmp_path: Path) -> None:
    """S3 says "denied" of an object that is not there to who may not list the bucket."""
    pytest.importorskip("obstore", reason="obstore is not installed")
    from counting_store import CountingStore

    class Unlisted(CountingStore):
        def read(self, key: str, *arguments: Any, **options: Any) -> Any:
            try:
                return super().read(key, *arguments, **options)
            except StoreNotFound:
                raise StoreDenied(f"{key}: permission denied") from None

    place = grow(f"memory://{uuid4().hex}/a.zarr")
    assert isinstance(place, StorePath)
    store = Unlisted(place.store)
    with pytest.raises(StoreDenied, match=r"versions/4\.json.*denied\."):
        flat_tokens.open(store)  # type: ignore[arg-type]
    assert flat_tokens.open(store, version=2).train.seq_count == 4  # type: ignore[arg-type]


def test_versions_that_disagree_are_found(grown: Path) -> None:
    (grown / "versions" / "1.json").unlink()
    write_version(open_store(str(grown)), Version(1, (describe_part(grown, "part-2"),)))
    assert re.match(r"versions/1\.json: .*versions/2\.json", verify_dataset(grown).problems[0])


def test_what_is_not_there(grown: Path) -> None:
    with pytest.raises(DatasetError):
        flat_tokens.open(grown, version=7)
    (grown / "part-1").rename(grown.parent / "elsewhere")
    with pytest.raises(DatasetError, match="part-1"):
        flat_tokens.open(grown)
    report = verify_dataset(grown)
    assert len(report.problems) == 1
    assert report.problems[0].startswith(f"{grown}/part-1: ")
    assert flat_tokens.open(grown, version=0).train.seq_count == 2


def test_commands(grown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(grown)]) == 0
    assert "version 2 with 3 parts:" in capsys.readouterr().out
    assert main(["info", str(grown), "--version", "0"]) == 0
    assert "parts" not in capsys.readouterr().out
    assert main(["head", str(grown), "--version", "1", "--json", "-n", "9"]) == 0
    assert [json.loads(line)["ids"] for line in capsys.readouterr().out.splitlines()] == [
        [1, 2],
        [3, 4, 5],
        [6, 7, 8],
    ]
    assert main(["verify", str(grown), "--workers", "1"]) == 0
    assert "sound, 12 tokens" in capsys.readouterr().out
