"""Every mutation of a dataset is found, in both layouts; a sound one is not accused."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import format as flat_format
from flat_tokens import verify_part, verify_units, writer
from flat_tokens.errors import DatasetError
from flat_tokens.storage import files
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord, SplitRecord, read_manifest

LAYOUTS = [
    pytest.param(ArrayLayout.create(2, 16), id="v2"),
    pytest.param(ArrayLayout.create(2, 16, compression="none"), id="v2-none"),
    pytest.param(ArrayLayout.create(3, 8, 32), id="v3"),
    pytest.param(ArrayLayout.create(3, 8, 32, "lz4"), id="v3-lz4"),
]


@pytest.fixture(params=LAYOUTS)
def sound(request: pytest.FixtureRequest, make_dataset: Any, random_sequences: Any) -> Path:
    """A sound dataset of a few dozen files."""
    root: Path = make_dataset(random_sequences(1, 60), random_sequences(2, 5), request.param)
    return root


def files_of(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def found(root: Path) -> str:
    """What verify has to say, empty if nothing."""
    try:
        return "\n".join(flat_tokens.verify_dataset(root).problems)
    except DatasetError as error:
        return str(error)


def test_a_sound_dataset_is_sound(sound: Path) -> None:
    report = flat_tokens.verify_dataset(sound)
    assert report.problems == ()
    report.require_ok()
    assert report.file_count == len(files_of(sound))
    assert report.byte_count == sum(path.stat().st_size for path in files_of(sound)) - manifest_bytes(sound)
    dataset = flat_tokens.open(sound)
    assert report.token_count == dataset.train.token_count + dataset.validation.token_count
    assert report.seq_count == 65


def manifest_bytes(root: Path) -> int:
    return (root / "manifest.json").stat().st_size


def test_every_flip_is_found(sound: Path) -> None:
    rng = random.Random(0)
    for path in files_of(sound):
        data = path.read_bytes()
        for at in sorted(rng.sample(range(len(data)), min(len(data), 5))):
            changed = bytearray(data)
            changed[at] ^= 1 << rng.randrange(8)
            path.write_bytes(changed)
            assert found(sound), f"{path.relative_to(sound)}: byte {at} of {len(data)}"
        path.write_bytes(data)
    assert not found(sound)


def test_every_byte_of_the_metadata_counts(make_dataset: Any) -> None:
    root = make_dataset(layout=ArrayLayout.create(2, 4))
    for name in ("train/.zattrs", ".zgroup", "train/seq_starts/.zarray"):
        data = (root / name).read_bytes()
        for at in range(len(data)):
            (root / name).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            assert name in found(root), f"{name}: byte {at}"
        (root / name).write_bytes(data)
    manifest = (root / "manifest.json").read_bytes()
    for at in range(len(manifest)):
        (root / "manifest.json").write_bytes(manifest[:at] + bytes([manifest[at] ^ 1]) + manifest[at + 1 :])
        with pytest.raises(DatasetError, match=r"manifest\.json: "):
            read_manifest(root)


def test_every_truncation_is_found(sound: Path) -> None:
    rng = random.Random(1)
    for path in files_of(sound):
        data = path.read_bytes()
        for length in sorted({0, len(data) - 1, rng.randrange(len(data))}):
            path.write_bytes(data[:length])
            assert found(sound), f"{path.relative_to(sound)} cut to {length} of {len(data)}"
        path.write_bytes(data)


def test_every_missing_file_is_found(sound: Path) -> None:
    for path in files_of(sound):
        if path.name == "manifest.json":
            continue
        data = path.read_bytes()
        path.unlink()
        problems = found(sound)
        relative = str(path.relative_to(sound))
        assert f"{relative}: " in problems or path.name.startswith((".z", "zarr.json")), relative
        assert problems, relative
        path.write_bytes(data)


def test_swapped_neighbours_and_extra_files(sound: Path) -> None:
    folder = sound / "train/encoded_tokens"
    first, second = (folder / name for name in (("0", "1") if (folder / "0").exists() else ("c/0", "c/1")))
    spare = folder / "spare"
    first.rename(spare)
    second.rename(first)
    spare.rename(second)
    assert {str(path.relative_to(sound)) for path in (first, second)} <= {
        problem.partition(": ")[0] for problem in found(sound).splitlines()
    }
    (sound / "train" / "more\x1b[2J").write_bytes(b"")
    assert "train/more\\x1b[2J: " in found(sound)


def test_links_and_special_files_are_not_followed(sound: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    (sound / "tokenizer.json").rename(outside)
    (sound / "tokenizer.json").symlink_to(outside)
    assert "tokenizer.json: " in found(sound)
    (sound / "tokenizer.json").unlink()
    os.mkfifo(sound / "tokenizer.json")
    assert "tokenizer.json: " in found(sound)
    (sound / "tokenizer.json").unlink()
    outside.rename(sound / "tokenizer.json")
    starts = next(path for path in files_of(sound / "train/seq_starts") if path.name == "0")
    starts.unlink()
    os.mkfifo(starts)
    assert f"{starts.relative_to(sound).as_posix()}: " in found(sound)
    shutil.rmtree(sound / "validation")
    (sound / "validation").symlink_to(sound / "train")
    assert "validation: " in found(sound)


def write_wrong(
    root: Path, layout: ArrayLayout, encoded: list[int], starts: list[int], max_token_id: int
) -> Path:
    """A dataset whose files all match the manifest, but whose content is wrong."""
    records: list[FileRecord] = []
    splits = {}
    for name, tokens, entries, largest in (
        ("train", encoded, starts, max_token_id),
        ("validation", [], [0], 0),
    ):
        splits[name] = SplitRecord(len(tokens), len(entries) - 1, largest)
        records += writer.create_split(root, name, len(tokens), len(entries) - 1, largest, layout)
        records += writer.write_tokens(root, name, layout, 0, np.array(tokens, dtype=np.uint32))
        records += writer.write_starts(root, name, layout, 0, np.array(entries, dtype=np.uint64))
    writer.write_root(root, splits, records, layout)
    return root


WRONG: dict[str, tuple[list[int], list[int], int, str]] = {
    "right": ([3, 4, 7, 8, 10, 13, 14, 16], [0, 2, 5, 8], 8, ""),
    "flag missing": (
        [3, 4, 6, 8, 10, 13, 14, 16],
        [0, 2, 5, 8],
        8,
        "encoded_tokens: start flag of token 2 ",
    ),
    "flag too many": (
        [3, 4, 7, 9, 10, 13, 14, 16],
        [0, 2, 5, 8],
        8,
        "encoded_tokens: start flag of token 3 ",
    ),
    "flag moved": ([3, 4, 7, 8, 10, 12, 15, 16], [0, 2, 5, 8], 8, "encoded_tokens: start flag of token 5 "),
    "first flag": ([2, 4, 7, 8, 10, 13, 14, 16], [0, 2, 5, 8], 8, "encoded_tokens: start flag of token 0 "),
    "id too large": ([3, 4, 7, 8, 10, 13, 14, 18], [0, 2, 5, 8], 8, "encoded_tokens: ID of token 7 "),
    "maximum not attained": (
        [3, 4, 7, 8, 10, 13, 14, 16],
        [0, 2, 5, 8],
        9,
        "encoded_tokens: max_token_id ",
    ),
    "falling": ([3, 4, 7, 8, 10, 13, 14, 16], [0, 5, 2, 8], 8, "seq_starts[2]: "),
    "equal": ([3, 4, 7, 8, 10, 13, 14, 16], [0, 2, 2, 8], 8, "seq_starts[2]: "),
    "first start": ([3, 4, 7, 8, 10, 13, 14, 16], [1, 2, 5, 8], 8, "train/seq_starts: "),
    "last start": ([3, 4, 7, 8, 10, 13, 14, 16], [0, 2, 5, 7], 8, "train/seq_starts: "),
}


@pytest.mark.parametrize(
    "layout", [*(ArrayLayout.create(2, 4 * n) for n in (1, 2, 3)), ArrayLayout.create(3, 4, 8)], ids=str
)
@pytest.mark.parametrize("case", WRONG)
def test_the_rules_of_the_format(tmp_path: Path, layout: ArrayLayout, case: str) -> None:
    encoded, starts, max_token_id, where = WRONG[case]
    root = write_wrong(tmp_path / "d", layout, encoded, starts, max_token_id)
    problems = found(root)
    assert (where in problems) if where else not problems, problems
    (root / "manifest.json").unlink()
    assert bool(found(root)) == (bool(where) and case != "maximum not attained")


@pytest.mark.parametrize("seed", range(20))
def test_one_wrong_bit_of_content(tmp_path: Path, random_sequences: Any, seed: int) -> None:
    """Low bits are flags and always matter; the rules alone find them, whatever the units and zarr chunks."""
    rng = random.Random(seed)
    encoded, starts, max_token_id = flat_format.from_sequences(random_sequences(seed, 50))
    wrong = encoded.tolist()
    at = rng.randrange(len(wrong))
    wrong[at] ^= 1
    layout = (
        ArrayLayout.create(2, rng.randint(1, 40))
        if seed % 2
        else ArrayLayout.create(3, rng.randint(1, 5), 60)
    )
    assert f"start flag of token {at} " in found(
        write_wrong(tmp_path / "d", layout, wrong, starts.tolist(), max_token_id)
    )


@pytest.mark.parametrize(
    ("chunk_tokens", "starts", "index"),
    [
        (64, [0, 5, 2, 8], 2),
        (64, [0, 5, 5, 8], 2),
        (64, [0, 3, 9, 8], 3),
        (8, [0, 5, 2, 8], 2),
        (8, [0, 5, 5, 8], 2),
        (4, [0, 3, 9, 8], 3),
    ],
)
def test_which_start_is_wrong_within_and_between_zarr_chunks(
    tmp_path: Path, chunk_tokens: int, starts: list[int], index: int
) -> None:
    layout = ArrayLayout.create(2, chunk_tokens)
    root = write_wrong(tmp_path / "d", layout, WRONG["right"][0], starts, 8)
    (problem,) = flat_tokens.verify_dataset(root).problems
    assert problem.startswith(f"train/seq_starts[{index}]: ")
    assert f"[{index - 1}] = {starts[index - 1]} (got {starts[index]})" in problem


def test_the_first_problem_and_how_many_more(make_dataset: Any) -> None:
    root = make_dataset([[1, 2]] * 4, layout=ArrayLayout.create(2, 2))
    (root / "train/encoded_tokens/1").unlink()
    with pytest.raises(DatasetError, match="train/encoded_tokens/1"):
        flat_tokens.verify_dataset(root).require_ok()
    (root / "train/encoded_tokens/2").unlink()
    with pytest.raises(DatasetError, match=r"train/encoded_tokens/\d"):
        flat_tokens.verify_dataset(root).require_ok()


def test_a_lost_file_of_metadata_is_told_once(make_dataset: Any) -> None:
    root = make_dataset()
    (root / "train/seq_starts/.zarray").unlink()
    (problem,) = flat_tokens.verify_dataset(root).problems
    assert problem.startswith("train/seq_starts/.zarray: ")


@pytest.mark.parametrize("starts_at_once", [1, 2, 7, 2**20])
@pytest.mark.parametrize("seed", range(6))
def test_starts_are_compared_a_few_at_a_time(
    tmp_path: Path, random_sequences: Any, seed: int, starts_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard may hold any number of them; where the wrong flag is told does not follow from how many are held."""
    monkeypatch.setattr(verify_units, "STARTS_AT_ONCE", starts_at_once)
    rng = random.Random(seed)
    sequences = [*random_sequences(seed, 40, longest=3), [1] * 150, *random_sequences(seed, 40, longest=3)]
    encoded, starts, max_token_id = flat_format.from_sequences(sequences)
    chunk_tokens = rng.randint(1, 12)
    layout = ArrayLayout.create(3, chunk_tokens, chunk_tokens * 64)
    assert not found(write_wrong(tmp_path / "right", layout, encoded.tolist(), starts.tolist(), max_token_id))
    wrong = encoded.tolist()
    at = rng.randrange(len(wrong))
    wrong[at] ^= 1
    problems = found(write_wrong(tmp_path / "wrong", layout, wrong, starts.tolist(), max_token_id))
    assert problems.startswith(f"train/encoded_tokens: start flag of token {at} must be {encoded[at] & 1} ")


def test_a_long_shard_is_not_held_as_a_whole(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = flat_tokens.verify_dataset(sound)
    monkeypatch.setattr(verify_units, "WHOLE_SHARD_BYTES", 0)
    monkeypatch.setattr(files, "READ_BYTES", 7)
    assert flat_tokens.verify_dataset(sound) == whole
    for path in files_of(sound / "train"):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] + b"\xff" + data[len(data) // 2 + 1 :])
        assert found(sound)
        path.write_bytes(data)


@pytest.mark.parametrize("is_listed", [True, False])
def test_many_lost_files_are_told_in_one_line(
    make_dataset: Any, is_listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was asked for by name: 2^31 of them for hours."""
    monkeypatch.setattr(verify_part, "PROBLEMS_KEPT", 10)
    root = make_dataset([[1, 2]] * 10, layout=ArrayLayout.create(2, 1))
    if not is_listed:
        (root / "manifest.json").unlink()
    for number in range(5, 16):
        (root / f"train/encoded_tokens/{number}").unlink()
    problems = flat_tokens.verify_dataset(root).problems
    assert len(problems) == (10 if is_listed else 1)
    assert is_listed or problems[0].startswith("train/encoded_tokens: ")
    (root / "train/encoded_tokens/9").touch()
    problems = flat_tokens.verify_dataset(root).problems
    assert not any(problem.startswith("train/encoded_tokens: ") for problem in problems)
    assert len(problems) == 10
    assert all("train/encoded_tokens/" in problem for problem in problems)


class Inline(Executor):
    """Runs a task as it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def processes() -> Executor:
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


@pytest.mark.parametrize(
    "make_executor", [Inline, lambda: ThreadPoolExecutor(2), processes], ids=["inline", "thread", "process"]
)
def test_executors_agree(
    sound: Path, monkeypatch: pytest.MonkeyPatch, make_executor: Callable[[], Executor]
) -> None:
    monkeypatch.setattr(verify_part, "UNIT_TOKENS", 32)
    monkeypatch.setattr(verify_part, "UNITS_IN_FLIGHT", 3)
    calls: list[tuple[int, int]] = []
    file = next(path for path in files_of(sound / "train/encoded_tokens") if path.name == "1")
    with make_executor() as executor:
        report = flat_tokens.verify_dataset(sound, executor, lambda done, total: calls.append((done, total)))
        assert report == flat_tokens.verify_dataset(sound)
        file.write_bytes(b"")
        assert flat_tokens.verify_dataset(sound, executor) == flat_tokens.verify_dataset(sound)
    assert report.ok
    assert calls == sorted(calls)
    assert calls[-1][0] == report.byte_count


def test_units_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_part, "UNITS_IN_FLIGHT", 3)
    taken: list[int] = []

    def arguments() -> Iterator[tuple[int]]:
        for number in range(10):
            taken.append(number)
            yield (number,)

    with ThreadPoolExecutor(2) as executor:
        results = verify_part.in_order(executor, lambda number: number * number, arguments())
        assert next(results) == 0
        assert taken == [0, 1, 2]  # no more are in flight
        assert [0, *results] == [number * number for number in range(10)]
        failing = verify_part.in_order(
            executor, lambda number: 1 // (number - 1), ((number,) for number in range(5))
        )
        assert next(failing) == -1
        with pytest.raises(ZeroDivisionError):
            next(failing)


def test_a_machine_error_is_no_damage(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any) -> Any:
        raise OSError(5, "Input/output error", "file")

    monkeypatch.setattr(verify_part, "verify_tokens", broken)
    with pytest.raises(OSError, match="Input/output"):
        flat_tokens.verify_dataset(sound)


def test_report_of_many_problems(sound: Path) -> None:
    for path in files_of(sound):
        if path.name[0].isdigit():
            path.unlink()
    report = flat_tokens.verify_dataset(sound)
    with pytest.raises(DatasetError):
        report.require_ok()
    with pytest.raises(DatasetError):
        flat_tokens.verify_dataset(sound / "nothing")


def test_a_lost_file_was_told_three_times(sound: Path) -> None:
    starts = next(path for path in files_of(sound / "train/seq_starts") if path.name == "0")
    starts.unlink()
    problems = flat_tokens.verify_dataset(sound).problems
    assert [problem.split(":")[0] for problem in problems] == [starts.relative_to(sound).as_posix()]
