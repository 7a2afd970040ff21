"""What was written is read back: what is changed, gone or not listed is found, whenever that happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path
from typing import Any

import pytest

from convert.errors import StorageError, WorkerLost
from convert.processes.inline_executor import InlineExecutor
from convert.read_back import ReadBack
from flat_tokens import format as flat_format
from flat_tokens import verify, writer
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord, SplitRecord


@pytest.fixture
def dataset(tmp_path: Path) -> tuple[Path, list[FileRecord]]:
    """A dataset of some dozen files, and the records of those that hold its arrays."""
    root, layout = tmp_path / "dataset", ArrayLayout.create(2, 16)
    encoded, starts, max_token_id = flat_format.from_sequences(
        [list(range(length)) for length in range(1, 30)]
    )
    rest, written = [], []
    for split in ("train", "validation"):
        rest += writer.create_split(root, split, len(encoded), len(starts) - 1, max_token_id, layout)
        written += writer.write_tokens(root, split, layout, 0, encoded)
        written += writer.write_starts(root, split, layout, 0, starts)
    record = SplitRecord(len(encoded), len(starts) - 1, max_token_id)
    writer.write_root(root, {"train": record, "validation": record}, [*rest, *written], layout)
    return root, written


def read_back(
    dataset: tuple[Path, list[FileRecord]],
    begun: Sequence[FileRecord],
    then: Callable[[], Any] = lambda: None,
) -> list[int]:
    seen: list[int] = []
    reading = ReadBack(dataset[0], InlineExecutor())
    reading.begin(begun)
    then()
    reading.finish(seen.append)
    return seen


@pytest.mark.parametrize("share", [0, 1, 40, 1000])
@pytest.mark.parametrize("in_flight", [1, 64])
def test_a_sound_dataset(
    dataset: tuple[Path, list[FileRecord]], share: int, in_flight: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "UNIT_FILES", 7)
    monkeypatch.setattr(verify, "UNITS_IN_FLIGHT", in_flight)
    root, written = dataset
    seen = read_back(dataset, written[:share])
    assert seen == sorted(seen)
    listed = [path for path in root.rglob("*") if path.is_file() and path.name != "manifest.json"]
    assert seen[-1] == sum(path.stat().st_size for path in listed)


def test_without_a_beginning(dataset: tuple[Path, list[FileRecord]]) -> None:
    ReadBack(dataset[0], InlineExecutor()).finish(lambda done_bytes: None)


@pytest.mark.parametrize("is_begun", [True, False])
def test_a_changed_byte(dataset: tuple[Path, list[FileRecord]], is_begun: bool) -> None:
    root, written = dataset
    path = root / written[3].path
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(StorageError, match=rf"not what was written: {written[3].path}: .*check the disk"):
        read_back(dataset, written if is_begun else [])


def test_what_happens_after_a_file_was_read(dataset: tuple[Path, list[FileRecord]]) -> None:
    root, written = dataset
    path, other = root / written[3].path, root / "train/encoded_tokens/1000"
    data = path.read_bytes()
    with pytest.raises(StorageError, match=written[3].path):
        read_back(dataset, written, path.unlink)
    path.write_bytes(data)
    with pytest.raises(StorageError, match=written[3].path):
        read_back(dataset, written, lambda: path.write_bytes(data + b"x"))
    path.write_bytes(data)
    with pytest.raises(StorageError, match="not in the manifest"):
        read_back(dataset, written, lambda: other.write_bytes(data))


def test_a_lost_worker(dataset: tuple[Path, list[FileRecord]]) -> None:
    class Lost(InlineExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(BrokenExecutor("worker 1 was ended by SIGKILL"))
            return future

    reading = ReadBack(dataset[0], Lost())
    reading.begin(dataset[1])
    with pytest.raises(
        WorkerLost, match="worker 1 .*, while it verified; run the same command again to go on"
    ):
        reading.finish(lambda done_bytes: None)
