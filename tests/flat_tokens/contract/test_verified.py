"""verify_dataset accepts a sound dataset and finds any damage to any file, on disk and on a store."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from counting_store import CountingStore, copy_dataset
from edit_json import edit_json
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import flat_tokens
from flat_tokens import ArrayLayout, writer
from flat_tokens.errors import DatasetError
from flat_tokens.storage.manifest import SplitRecord, read_manifest
from tests.flat_tokens.contract.drawn_datasets import (
    Drawn,
    arrays_of,
    datasets,
    files_of,
    layouts,
    new_store,
    sequences,
)


def found(root: Any) -> list[str]:
    """Return the findings of verify."""
    try:
        return list(flat_tokens.verify_dataset(root).problems)
    except DatasetError as error:
        return [str(error)]


def changed(rng: random.Random, data: bytes) -> bytes:
    """Return the bytes with one bit flipped, truncated, or with one byte more."""
    kind = rng.choice(["flip", "flip", "cut", "more"])
    if kind == "more" or not data:
        return data + b"\0"
    if kind == "cut":
        return data[: rng.randrange(len(data))]
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


@pytest.mark.slow
@pytest.mark.promise("damage")
@given(datasets(), st.randoms(use_true_random=False))
@examples(0.5)
def test_any_damage_to_any_file_is_found(drawn: Drawn, rng: random.Random) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder, "d")
        drawn.write(root)
        report = flat_tokens.verify_dataset(root)
        assert report.problems == ()
        assert report.token_count == sum(len(ids) for rows in drawn.splits.values() for ids in rows)
        assert report.seq_count == sum(map(len, drawn.splits.values()))
        assert report.file_count == len(files_of(root))
        for path in files_of(root):
            data, name = path.read_bytes(), path.relative_to(root).as_posix()
            path.write_bytes(changed(rng, data))
            assert all(problem.isprintable() for problem in found(root))
            assert found(root), name
            if name not in ("manifest.json", "files.jsonl"):
                path.unlink()
                problems = found(root)
                assert problems, name
                is_metadata = path.name.startswith((".z", "zarr.json"))
                assert is_metadata or (len(problems) == 1 and f"{name}: " in problems[0]), problems
            path.write_bytes(data)
        assert found(root) == []


@pytest.mark.promise("damage")
@given(datasets(formats=(3,)), st.randoms(use_true_random=False))
@examples(0.5)
def test_a_store_reports_the_same_as_a_folder(drawn: Drawn, rng: random.Random) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    with TemporaryDirectory() as folder:
        root = Path(folder, "d")
        drawn.write(root)
        assert found(copy_dataset(root, new_store())) == []
        for path in rng.sample(files_of(root), 5):
            data = path.read_bytes()
            path.write_bytes(changed(rng, data))
            store = copy_dataset(root, new_store())
            names = [problem.replace(store.url, str(root)).partition(": ")[0] for problem in found(store)]
            assert names, path
            if path.name != "zarr.json":  # readers of a store do not read it
                assert names == [problem.partition(": ")[0] for problem in found(root)], path
            path.write_bytes(data)


def write_arrays(root: Path, layout: ArrayLayout, arrays: dict[str, Any]) -> Path:
    """Write a dataset with any content and a matching manifest."""
    records, splits = [], {}
    for name, own in (("train", arrays), ("validation", arrays_of([]))):
        tokens = np.array(own["encoded_tokens"], np.uint32)
        starts = np.array(own["seq_starts"], np.uint64)
        splits[name] = SplitRecord(len(tokens), len(starts) - 1, own["max_token_id"])
        records += writer.create_split(root, name, *splits[name][:3], layout)
        records += writer.write_run(root, name, layout, "encoded_tokens", 0, tokens)
        records += writer.write_run(root, name, layout, "seq_starts", 0, starts)
    writer.write_root(root, splits, records, layout)
    return root


@pytest.mark.promise("format")
@given(sequences(largest=300).filter(any), layouts(), st.randoms(use_true_random=False))
def test_the_rules_of_the_format(rows: list[list[int]], layout: ArrayLayout, rng: random.Random) -> None:
    """One wrong number. Files and manifest agree, so only the rules of the format can find it."""
    with TemporaryDirectory() as folder:
        right = arrays_of(rows)
        assert found(write_arrays(Path(folder, "right"), layout, right)) == []
        tokens, starts = list(right["encoded_tokens"]), list(right["seq_starts"])
        at = rng.randrange(len(tokens))
        tokens[at] ^= 1
        wrong = write_arrays(Path(folder, "flag"), layout, right | {"encoded_tokens": tokens})
        assert (
            f"train/encoded_tokens: start flag of token {at} must be {tokens[at] & 1 ^ 1} " in found(wrong)[0]
        )
        wrong = write_arrays(
            Path(folder, "largest"), layout, right | {"max_token_id": right["max_token_id"] + 1}
        )
        assert found(wrong)[0].startswith("train/encoded_tokens: max_token_id ")
        (wrong / "manifest.json").unlink()
        assert found(wrong) == []  # without a manifest it is an upper bound
        index = rng.randrange(len(starts))
        starts[index] += rng.choice([-1, 1, 7]) if index else 1
        if min(starts) >= 0:
            wrong = write_arrays(Path(folder, "start"), layout, right | {"seq_starts": starts})
            assert "train/" in found(wrong)[0]
            (wrong / "manifest.json").unlink()
            assert found(wrong)


def test_links_and_special_files_are_not_followed(make_dataset: Any, tmp_path: Path) -> None:
    root, outside = make_dataset(), tmp_path / "outside.json"
    (root / "tokenizer.json").rename(outside)
    for make in (lambda path: path.symlink_to(outside), os.mkfifo):
        make(root / "tokenizer.json")
        (problem,) = found(root)
        assert problem.startswith("tokenizer.json: ")
        (root / "tokenizer.json").unlink()
    outside.rename(root / "tokenizer.json")
    (root / "validation").rename(tmp_path / "moved")
    (root / "validation").symlink_to(tmp_path / "moved")
    assert any(problem.startswith("validation: ") for problem in found(root))


def test_extra_files_are_named_in_printable_form(make_dataset: Any) -> None:
    root = make_dataset()
    (root / "train/more\x1b[2J").write_bytes(b"")
    (problem,) = found(root)
    assert problem.startswith("train/more\\x1b[2J: ")


@pytest.mark.parametrize("is_listed", [True, False])
def test_many_lost_files_are_one_line(make_dataset: Any, is_listed: bool) -> None:
    """Without a manifest, each of 2^31 files was looked up."""
    root = make_dataset([[1, 2]] * 600, layout=ArrayLayout.create(2, 1))
    if not is_listed:
        (root / "manifest.json").unlink()
    for number in range(100, 1150):
        (root / f"train/encoded_tokens/{number}").unlink()
    problems = found(root)
    assert len(problems) == (1000 if is_listed else 1)
    assert is_listed or problems[0].startswith("train/encoded_tokens: ")


class Inline(Executor):
    """Run a task when it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


EXECUTORS: dict[str, Callable[[], Executor]] = {
    "inline": Inline,
    "threads": lambda: ThreadPoolExecutor(2),
    "processes": lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")),
}


@pytest.mark.parametrize("kind", EXECUTORS)
def test_executors_agree_and_progress_reaches_the_end(
    kind: str, make_dataset: Any, random_sequences: Any
) -> None:
    rows = random_sequences(1, 400)
    root = make_dataset(rows, rows[:5], ArrayLayout.create(3, 8, 32))
    calls: list[tuple[int, int]] = []
    with EXECUTORS[kind]() as executor:
        report = flat_tokens.verify_dataset(root, executor, lambda done, total: calls.append((done, total)))
        assert report == flat_tokens.verify_dataset(root)
        assert calls == sorted(calls)
        assert calls[-1][0] == report.byte_count
        (root / "train/encoded_tokens/c/1").write_bytes(b"")
        assert flat_tokens.verify_dataset(root, executor) == flat_tokens.verify_dataset(root)


def test_an_error_of_the_machine_is_not_damage(make_dataset: Any) -> None:
    class Broken(Inline):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(OSError(5, "Input/output error", "file"))
            return future

    with pytest.raises(OSError, match="Input/output"):
        flat_tokens.verify_dataset(make_dataset(), Broken())


def test_the_report_raises_the_first_problem_and_how_many_more(make_dataset: Any) -> None:
    root = make_dataset([[1, 2]] * 4, layout=ArrayLayout.create(2, 2))
    flat_tokens.verify_dataset(root).require_ok()
    for name in ("1", "2"):
        (root / "train/encoded_tokens" / name).unlink()
    with pytest.raises(DatasetError, match=r"train/encoded_tokens/\d: .*\(and 1 more\)"):
        flat_tokens.verify_dataset(root).require_ok()
    with pytest.raises(DatasetError):
        flat_tokens.verify_dataset(root / "nothing")


# -- on a store


@pytest.fixture
def sound(make_dataset: Any, random_sequences: Any) -> Path:
    pytest.importorskip("obstore", reason="obstore is not installed")
    root: Path = make_dataset(random_sequences(1, 60), random_sequences(2, 5), ArrayLayout.create(3, 8, 32))
    return root


def on_store(root: Path) -> CountingStore:
    return CountingStore(copy_dataset(root, new_store()))


LIES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "shape": (
        lambda root: edit_json(root / "train/encoded_tokens/zarr.json", shape=[9]),
        "train/encoded_tokens/zarr.json: ",
    ),
    "largest id": (
        lambda root: edit_json(root / "train/zarr.json", attributes={"max_token_id": 30}),
        "train/encoded_tokens: max_token_id ",
    ),
    "split lost": (lambda root: shutil.rmtree(root / "validation"), "validation/zarr.json: "),
}


@pytest.mark.parametrize("lie", LIES)
def test_contradictory_metadata(sound: Path, lie: str) -> None:
    harm, where = LIES[lie]
    harm(sound)
    store = on_store(sound)
    its = "\n".join(found(store)).replace(store.url, str(sound))
    assert where in its
    assert its == "\n".join(found(sound))


def test_a_manifest_of_another_layout_than_the_arrays(sound: Path) -> None:
    """Readers on a store trust the manifest; on a disk they read the arrays' own metadata."""
    manifest = read_manifest(sound)
    assert manifest is not None
    object.__setattr__(manifest, "layout", {**manifest.layout, "chunk_tokens": 16})
    (sound / "manifest.json").write_bytes(manifest.to_bytes())
    assert not found(sound)
    assert "train/encoded_tokens: " in "".join(found(on_store(sound)))


def test_a_dataset_changed_during_verification(sound: Path) -> None:
    store = on_store(sound)
    key = "train/encoded_tokens/c/0"

    class Changing(CountingStore):
        def head(self, key_: str) -> Any:
            entry = self.store.head(key_)
            if key_ == key:
                self.put(key, b"other")
            return entry

    problems = flat_tokens.verify_dataset(Changing(store.store)).problems
    assert len(problems) == 1
    assert f"{key}: " in problems[0]
