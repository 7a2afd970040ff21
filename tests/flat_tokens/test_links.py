"""Readers never follow a link inside a dataset, to a file or a folder, wherever it leads; the dataset path may be a
link.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flat_tokens
from flat_tokens.__main__ import main
from flat_tokens.errors import DatasetError
from flat_tokens.loading.loader import Loader
from flat_tokens.storage.layout import ArrayLayout

LAYOUTS = {
    "v2": ArrayLayout.create(2, 64),
    "v2 raw": ArrayLayout.create(2, 1024, compression="none"),  # full pages, mapped one after the other
    "v2 raw, short": ArrayLayout.create(2, 64, compression="none"),
    "v3": ArrayLayout.create(3, 16, 64),
    "v3 raw": ArrayLayout.create(3, 16, 64, "none"),
}


@pytest.fixture(params=LAYOUTS)
def root(request: pytest.FixtureRequest, make_dataset: Any, random_sequences: Any) -> Path:
    made: Path = make_dataset(random_sequences(1, 300), random_sequences(2, 5), LAYOUTS[request.param])
    return made


def read_all(root: Path) -> None:
    """Read everything that training and inspection read."""
    dataset = flat_tokens.open(root)
    assert dataset.tokenizer_path is None or dataset.tokenizer_path.is_file()
    dataset.sources()
    for split in (dataset.train, dataset.validation):
        list(split)
        split.rows(range(split.row_count(5)), 5)
    loader = Loader(dataset.train, 2, 2, streams=1)
    for step in range(loader.steps_per_epoch):
        loader.batch(step)
    list(loader.from_step(0, loader.steps_per_epoch))


def found(root: Path) -> tuple[str, ...]:
    """Return the findings of verify, with paths relative to the dataset."""
    try:
        return flat_tokens.verify_dataset(root).problems
    except DatasetError as error:
        return (str(error).removeprefix(f"{root}/"),)


def entries_of(root: Path) -> list[Path]:
    return sorted(root.rglob("*"))


@pytest.mark.slow
@pytest.mark.promise("limits")
def test_every_link_is_refused(root: Path, tmp_path: Path) -> None:
    read_all(root)
    aside = tmp_path / "aside"
    for entry in entries_of(root):
        entry.rename(aside)
        entry.symlink_to(aside)
        name = str(entry.relative_to(root))
        if name != "files.jsonl":  # only `verify` reads it
            with pytest.raises(DatasetError, match=f"{name}") as caught:
                read_all(root)
            assert "\n" not in str(caught.value)
        assert any(problem.startswith(f"{name}: ") for problem in found(root))
        entry.unlink()
        aside.rename(entry)
    read_all(root)


def test_a_link_inside_is_refused_as_well(root: Path) -> None:
    starts = root / "validation" / "seq_starts"
    moved = root / "train" / "other"
    starts.rename(moved)
    starts.symlink_to(moved)
    with pytest.raises(DatasetError, match="validation/seq_starts"):
        flat_tokens.open(root)


def test_a_manifest_that_leads_nowhere_is_not_passed_over(make_dataset: Any) -> None:
    root = make_dataset()
    (root / "manifest.json").unlink()
    (root / "manifest.json").symlink_to(root / "nowhere")
    with pytest.raises(DatasetError, match=r"manifest\.json"):
        flat_tokens.open(root)
    with pytest.raises(DatasetError, match=r"manifest\.json"):
        flat_tokens.verify_dataset(root)


def test_what_verify_reads_by_the_manifest_is_not_reached_by_a_folder(
    make_dataset: Any, tmp_path: Path
) -> None:
    root = make_dataset()
    (root / "train").rename(tmp_path / "outside")
    (root / "train").symlink_to(tmp_path / "outside")
    report = flat_tokens.verify_dataset(root)
    assert report.byte_count == sum(
        path.stat().st_size
        for path in root.rglob("*")
        if path.is_file() and path.name != "manifest.json" and path.parts[len(root.parts)] != "train"
    )


def test_the_datasets_own_path_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to(root)
    for path in (tmp_path / "link", tmp_path / "folder" / "d", tmp_path / "folder" / "link"):
        read_all(path)
        assert flat_tokens.verify_dataset(path).ok


def test_a_tokenizer_that_is_named_may_be_a_link(
    make_dataset: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_dataset()
    (tmp_path / "given.json").symlink_to(root / "tokenizer.json")
    assert flat_tokens.open(root, tokenizer=tmp_path / "given.json").train.seq_count == 3
    assert main(["head", str(root), "--tokenizer", str(tmp_path / "given.json")]) == 0
    (root / "tokenizer.json").rename(tmp_path / "outside.json")
    (root / "tokenizer.json").symlink_to(tmp_path / "outside.json")
    capsys.readouterr()
    assert main(["head", str(root)]) == 3
    assert "tokenizer.json: " in capsys.readouterr().err
