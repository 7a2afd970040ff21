"""The journal: it reads back what was appended, whatever was torn or damaged in it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from uuid import uuid4

import pytest

from convert.errors import Refused
from convert.planning.plan import ShardId
from convert.shards.intake_counts import IntakeCounts
from convert.shards.shard import ShardRecord, SourceCounts, SplitCounts
from convert.shards.write_units import MergeTask
from convert.shards.written_files import WrittenFiles
from convert.workdir import journal
from convert.workdir.journal import (
    Journal,
    Recorded,
    StoreJournal,
    merge_entry,
    threshold_entry,
)
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.token_facts import TokenFacts
from tokenmill.stores import Store, open_store

TASK = MergeTask("train", "tokens", 8, ())
FILES = [
    WrittenFiles.pack(
        [
            (FileRecord("train/c/9", 5, f"{2**64 - 1:x}"), TokenFacts(4, 2, 2**64 - 1, 9)),
            (FileRecord("train/c/10", 2**33, "0" * 15 + "d"), None),
        ]
    )
]
NUMBER = "0123456789abcdef"


def records_of(recorded: Recorded) -> dict[ShardId, ShardRecord]:
    found = {shard: recorded.shard(shard) for shard in recorded.shards}
    return {shard: record for shard, record in found.items() if record is not None}


def content_of(
    recorded: Recorded,
) -> tuple[dict[ShardId, ShardRecord], list[WrittenFiles] | None, int | None]:
    return records_of(recorded), recorded.files(TASK), recorded.threshold(7)


def file_journal(folder: Path, number: str = NUMBER, task: int | None = None) -> Journal:
    found = Journal(folder)
    found.task = task
    found.begin(number)
    return found


def store_journal(store: Store, number: str = NUMBER, task: int | None = None) -> StoreJournal:
    found = StoreJournal(store, "out")
    found.task = task
    found.claim()
    found.begin(number)
    return found


@pytest.fixture
def memory() -> Store:
    pytest.importorskip("obstore", reason="obstore is not installed")
    return open_store(f"memory://{uuid4().hex}/out.partial")


def a_shard(index: int, text_bytes: int = 60) -> ShardRecord:
    train, validation = SplitCounts(3, 1, 2, 5, 9), SplitCounts(1, 0, 1, 4, 7, 2)
    intake = IntakeCounts(5, 50, {"malformed": 1}, lines=((0, 3),), longest=(4, 3), unreadable=((1, "x"),))
    digests = (bytes(range(8)), bytes(16))
    sources = (SourceCounts(0, 2, 5, 1, 4),)
    return ShardRecord(ShardId(index), train, validation, digests, sources, intake, True, text_bytes)


def test_a_journal_reads_back_everything_except_torn_lines(tmp_path: Path) -> None:
    (tmp_path / "partial").mkdir()
    records = [a_shard(index) for index in (3, 1)]
    log = file_journal(tmp_path / "partial")
    assert not log.holds_work
    assert content_of(log.recorded()) == ({}, None, None)
    sizes = []
    for entry in (
        records[0].as_json(),
        merge_entry(TASK, FILES),
        threshold_entry(7, 2**64),
        records[1].as_json(),
    ):
        log.append([entry])
        sizes.append(log.files[0].stat().st_size)
    assert log.holds_work
    assert file_journal(tmp_path / "partial").holds_work
    everything = ({ShardId(3): records[0], ShardId(1): records[1]}, FILES, 2**64)
    assert content_of(log.recorded()) == everything
    assert list(log.recorded().shards) == [(3, 0), (1, 0)]  # the order in which they were finished
    for other in (MergeTask("train", "tokens", 8, (), closing=9), MergeTask("train", "starts", 8, ())):
        assert log.recorded().files(other) is None

    data = log.files[0].read_bytes()
    for length in range(len(data)):  # lines before the cut count, and those appended after it
        log.files[0].write_bytes(data[:length])
        whole = sum(size <= length for size in sizes)
        shards = {record.id: record for record in records[: (whole >= 1) + (whole >= 4)]}
        log.append([threshold_entry(7, 5)])
        assert content_of(log.recorded()) == (shards, FILES if whole >= 2 else None, 5)
    for place in range(len(data)):  # one line at most is lost, and no other is invented
        log.files[0].write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        found = content_of(log.recorded())
        assert all(record in records for record in found[0].values())
        assert len(found[0]) + (found[1] == FILES) + (found[2] == 2**64) >= 3 - (data[place] == 10)
    log.files[0].write_bytes(bytes(5000))
    assert content_of(log.recorded()) == ({}, None, None)


def journal_pair(kind: str, folder: Path, memory: Store, **more: object) -> tuple[Journal, Journal]:
    if kind == "file":
        return file_journal(folder, **more), file_journal(folder)  # type: ignore[arg-type]
    return store_journal(memory, **more), store_journal(memory)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["file", "store"])
def test_lines_of_a_discarded_run_do_not_count(kind: str, tmp_path: Path, memory: Store) -> None:
    (tmp_path / "partial").mkdir()
    former, log = journal_pair(kind, tmp_path / "partial", memory)
    log.append([a_shard(1).as_json()])
    log.flush()
    log.begin("1234")
    assert not log.holds_work
    log.append([threshold_entry(7, 3)])
    log.flush()
    assert content_of(log.recorded()) == ({}, None, 3)
    if kind == "store":
        with pytest.raises(Refused):
            former.confirm()


@pytest.mark.parametrize("kind", ["file", "store"])
def test_a_run_reads_the_journals_of_all_tasks_and_its_own_last(
    kind: str, tmp_path: Path, memory: Store
) -> None:
    (tmp_path / "partial").mkdir()
    records = [a_shard(index, size) for index, size in ((0, 1), (1, 2), (2, 3), (1, 4))]
    for index, record in enumerate(records[:3]):
        task, log = journal_pair(kind, tmp_path / "partial", memory, task=index)
        task.append([record.as_json()])
        task.flush()
    log.append([records[3].as_json()])
    log.flush()
    found = records_of(log.recorded())
    assert {shard: record.text_bytes for shard, record in found.items()} == {(0, 0): 1, (1, 0): 4, (2, 0): 3}


def test_foreign_objects_next_to_a_journal_are_ignored(tmp_path: Path, memory: Store) -> None:
    for key in ("journal/readme", "journal/1", "journal/00000001.txt", "journal/a.00000001"):
        memory.put(key, b"mine")
    log = store_journal(memory)
    log.append([a_shard(1).as_json()])
    log.flush()
    assert list(store_journal(memory).recorded().shards) == [(1, 0)]
    assert memory.read("journal/readme") == b"mine"


def test_lines_are_put_about_once_per_second(memory: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(journal.time, "monotonic", lambda: now)
    log = store_journal(memory)
    for number in range(30):
        now += 0.1
        log.append([threshold_entry(number, number)])
    assert len(list(memory.list())) in (4, 5)  # with the claim
    log.flush()
    assert [store_journal(memory).recorded().threshold(number) for number in range(30)] == list(range(30))


def test_records_stay_compact_in_memory(tmp_path: Path) -> None:
    """3 million records of shards of 32 MiB must fit in the memory of a driver."""
    record = a_shard(0).as_json()
    record["digests"] = ["0123456789abcdef" * 240] * 2
    (tmp_path / "partial").mkdir()
    log = file_journal(tmp_path / "partial")
    log.append({**record, "id": [number, 0]} for number in range(2000))
    tracemalloc.start()
    recorded = log.recorded()
    used, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(recorded.shards) == 2000
    assert used < 2000 * 1500
    assert peak < used + (2 << 20)
