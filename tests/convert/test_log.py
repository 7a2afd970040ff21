"""The log: what it says is what was noted, whatever was torn or damaged in it."""

from __future__ import annotations

from pathlib import Path

from stopped_runs import records_of

from convert.places.log import Log, merge_entry, threshold_entry
from convert.planning.plan import ShardId
from convert.shards.intake_counts import IntakeCounts
from convert.shards.shard import ShardRecord, SourceCounts, SplitCounts
from convert.shards.write_units import MergeTask
from convert.shards.written_files import WrittenFiles
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.token_facts import TokenFacts

Said = tuple[dict[ShardId, ShardRecord], list[WrittenFiles] | None, int | None]


def said(log: Log, task: MergeTask) -> Said:
    recorded = log.recorded()
    return records_of(log.path.parent), recorded.files(task), recorded.threshold(7)


def shard_of(index: int, name: str = "a") -> ShardRecord:
    train, validation = SplitCounts(3, 1, 2, 5, 9), SplitCounts(1, 0, 1, 4, 7, 2)
    intake = IntakeCounts(5, 50, {"malformed": 1}, lines=((0, 3),), longest=(4, 3), unreadable=((1, "x"),))
    digests = (bytes(range(8)), bytes(16))
    sources = (SourceCounts(0, 2, 5, 1, 4),)
    return ShardRecord(ShardId(index, 2), name, train, validation, digests, sources, intake, True, 60)


def test_the_log_says_what_was_finished_and_nothing_of_torn_lines(tmp_path: Path) -> None:
    records = [shard_of(3, "3.2-ab"), shard_of(1, "1.2-cd")]
    run = MergeTask("train", "tokens", 8, ())
    written = [
        (FileRecord("train/c/9", 5, f"{2**64 - 1:x}"), TokenFacts(4, 2, 2**64 - 1, 9)),
        (FileRecord("train/c/10", 2**33, "0" * 15 + "d"), None),
    ]
    files = [WrittenFiles.pack(written)]
    assert list(zip(files[0].records(), [facts for _, facts in written], strict=True)) == written
    assert list(files[0].facts()) == [("train/c/9", written[0][1])]
    assert (len(files[0]), files[0].byte_count) == (2, 2**33 + 5)
    log = Log(tmp_path)
    assert not log.holds_work
    assert said(log, run) == ({}, None, None)
    sizes = [0]
    for write in (
        lambda: log.append([records[0].as_json()]),
        lambda: log.append([merge_entry(run, files)]),
        lambda: log.append([threshold_entry(7, 2**64)]),
        lambda: log.append([records[1].as_json()]),
    ):
        write()
        sizes.append(log.path.stat().st_size)
    assert log.holds_work
    everything = ({record.id: record for record in records}, files, 2**64)
    assert said(log, run) == everything
    assert list(log.recorded().shards) == [(3, 2), (1, 2)]  # the order in which they were finished
    assert [record.name for record in records_of(tmp_path).values()] == ["3.2-ab", "1.2-cd"]
    longer = MergeTask("train", "tokens", 8, (), closing=9)
    assert said(log, longer)[1] is said(log, MergeTask("train", "starts", 8, ()))[1] is None

    data = log.path.read_bytes()
    for length in range(
        len(data)
    ):  # cut anywhere, the lines before the cut count, and those that come after it
        log.path.write_bytes(data[:length])
        whole = sum(size <= length for size in sizes[1:])
        shards = {record.id: record for record in records[: (whole >= 1) + (whole >= 4)]}
        assert said(log, run)[0] == shards
        log.append([threshold_entry(7, 5)])
        assert said(log, run) == (shards, files if whole >= 2 else None, 5)
    for place in range(len(data)):  # one line at most is lost, and no other is made up
        log.path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        found = said(log, run)
        assert all(record in records for record in found[0].values())
        assert len(found[0]) + (found[1] == files) + (found[2] == 2**64) >= 3 - (data[place] == 10)
    log.path.write_bytes(bytes(5000))
    assert said(log, run) == ({}, None, None)


def test_the_last_line_about_a_shard_counts(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for record in (shard_of(0, "first"), shard_of(1), shard_of(0, "last")):
        log.append([record.as_json()])
    found = [(shard.chunk_index, record.name) for shard, record in records_of(tmp_path).items()]
    assert found == [(1, "a"), (0, "last")]
