"""The log: what it says is what was noted, whatever was torn or damaged in it."""

from __future__ import annotations

from pathlib import Path

from shards import records_of, shard_of

from convert.places.log import Log, Recorded, run_entry, threshold_entry
from convert.planning.plan import ShardId
from convert.shards.runs import Run
from convert.shards.shard import ShardRecord
from convert.shards.write_run import WrittenFile
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.token_facts import TokenFacts


def said(
    recorded: Recorded, run: Run
) -> tuple[dict[ShardId, ShardRecord], list[WrittenFile] | None, int | None]:
    files = recorded.run(run)
    return records_of(recorded), files, recorded.threshold(7)


def test_the_log_says_what_was_finished_and_nothing_of_torn_lines(tmp_path: Path) -> None:
    records = [shard_of(tmp_path, index, {"train": [[1, 2], [3]], "validation": [[4]]}) for index in (3, 1)]
    run = Run("train", "tokens", 8, ())
    files = [
        WrittenFile(FileRecord("train/0", 5, "ab"), TokenFacts(4, 2, 2**64 - 1, 9)),
        WrittenFile(FileRecord("train/1", 6, "cd")),
    ]
    log = Log(tmp_path)
    assert not log.holds_work
    assert said(log.recorded(), run) == ({}, None, None)
    sizes = [0]
    for write in (
        lambda: log.append([records[0].as_json()]),
        lambda: log.append([run_entry(run, files)]),
        lambda: log.append([threshold_entry(7, 2**64)]),
        lambda: log.append([records[1].as_json()]),
    ):
        write()
        sizes.append(log.path.stat().st_size)
    assert log.holds_work
    everything = ({ShardId(3): records[0], ShardId(1): records[1]}, files, 2**64)
    assert said(log.recorded(), run) == everything
    assert list(log.recorded().shards) == [(3, 0), (1, 0)]  # the order in which they were finished
    assert [record.places for record in records_of(log.recorded()).values()] == [r.places for r in records]
    longer = Run("train", "tokens", 8, (), closing=9)
    assert said(log.recorded(), longer)[1] is said(log.recorded(), Run("train", "starts", 8, ()))[1] is None

    data = log.path.read_bytes()
    for length in range(
        len(data)
    ):  # cut anywhere, the lines before the cut count, and those that come after it
        log.path.write_bytes(data[:length])
        whole = sum(size <= length for size in sizes[1:])
        shards = {record.id: record for record in records[: (whole >= 1) + (whole >= 4)]}
        assert said(log.recorded(), run)[0] == shards
        log.append([threshold_entry(7, 5)])
        assert said(log.recorded(), run) == (shards, files if whole >= 2 else None, 5)
    for place in range(len(data)):  # one line at most is lost, and no other is made up
        log.path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        found = said(log.recorded(), run)
        assert all(record in records for record in found[0].values())
        assert len(found[0]) + (found[1] == files) + (found[2] == 2**64) >= 3 - (data[place] == 10)
    log.path.write_bytes(bytes(5000))
    assert said(log.recorded(), run) == ({}, None, None)


def test_the_last_line_about_a_shard_counts(tmp_path: Path) -> None:
    log = Log(tmp_path)
    records = [shard_of(tmp_path, index, {"train": [[1]], "validation": []}) for index in (0, 1, 0)]
    assert len({record.places[0] for record in records}) == 3
    for record in records:
        log.append([record.as_json()])
    found = records_of(log.recorded())
    assert [(shard, record.places) for shard, record in found.items()] == [
        ((1, 0), records[1].places),
        ((0, 0), records[2].places),
    ]
