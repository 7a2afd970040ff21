"""Files that are written over: no two chunks have one at a time, and nothing of what they held shows in a shard."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from shards import add_rows, record_of, slots_of

from convert.plan import ShardId
from convert.shards.shard import PARTS, ShardReader, is_intact
from convert.shards.shard_writer import ShardWriter
from convert.shards.slots import SlotFiles


def test_no_two_chunks_hold_a_file_and_few_are_made(tmp_path: Path) -> None:
    rng = random.Random(2)
    files = SlotFiles(tmp_path)
    held: dict[int, set[str]] = {}
    seen: set[str] = set()
    for chunk in range(300):
        slots = files.take(chunk)
        names = {*slots.parts, slots.small}
        assert len(names) == len(PARTS) + 1
        assert not any(names & other for other in held.values())
        held[chunk] = names
        seen |= names
        while len(held) > 3 or (held and rng.random() < 0.5):
            owner = rng.choice(list(held))
            name = rng.choice(sorted(held[owner]))
            files.give_back(name, owner + 1)  # by somebody who does not hold it: nothing happens
            files.give_back(name, owner)
            files.give_back(name, owner)
            held[owner].discard(name)
            if not held[owner]:
                del held[owner]
    assert len(seen) <= 4 * (len(PARTS) + 1)


def test_of_an_earlier_run_only_what_is_needed_stays_and_is_not_dealt_out(tmp_path: Path) -> None:
    for name in ("train-0", "train-1", "validation-starts-0", "small-2", "journal", "00000001.quarantine"):
        (tmp_path / name).touch()
    files = SlotFiles(tmp_path, {"train-0": ShardId(4), "small-2": ShardId(4)})
    left = ["00000001.quarantine", "journal", "small-2", "train-0"]
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    assert files.take(9).parts[0] == "train-1"
    files.give_back("train-0", 3)
    assert files.take(10).parts[0] == "train-2"
    files.give_back("train-0", 4)
    assert files.take(11).parts[0] == "train-0"


@pytest.mark.parametrize("old_bytes", [0, 1, 7, 8, 9, 5000])
def test_nothing_of_the_old_content_shows(
    old_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convert.shards.shard_writer.FLUSH_BYTES", 1)
    for name in (*slots_of(0).parts, "small-0"):
        (tmp_path / name).write_bytes(b"\xee" * old_bytes)
    with ShardWriter(tmp_path, slots_of(0), np.dtype(np.uint16), 999) as shard:
        add_rows(shard, 0, [[1], [2, 3, 4]])
        shard.extend(np.array([5, 6, 7], dtype=np.uint32), guess=0)
        shard.end_document(1)  # guessed wrong: its ids move
        record = record_of(shard)
    assert is_intact(tmp_path, record)
    assert (tmp_path / "train-0").stat().st_size == 8
    with ShardReader(tmp_path, record.shape) as reader:
        assert reader.tokens("train", 0, 4).tolist() == [1, 2, 3, 4]
        assert reader.tokens("validation", 0, 3).tolist() == [5, 6, 7]


def test_shards_behind_the_first_of_a_chunk_have_files_of_their_own_which_do_not_stay(tmp_path: Path) -> None:
    (tmp_path / "train-7.9").touch()
    (tmp_path / "train-7.4").touch()
    files = SlotFiles(tmp_path, {"train-7.4": ShardId(7, 4)})
    assert [path.name for path in tmp_path.iterdir()] == ["train-7.4"]
    slots = files.take(7)
    assert slots.of(ShardId(7)) == slots
    fifth = slots.of(ShardId(7, 5))
    assert fifth.small == slots.small
    assert not {*fifth.parts} & {*slots.parts, *slots.of(ShardId(7, 6)).parts, *slots.of(ShardId(8, 5)).parts}
    for name in ("train-7.4", *fifth.parts[:2]):
        (tmp_path / name).touch()
        files.give_back(name, 7)
        assert not (tmp_path / name).exists()
    files.give_back(fifth.parts[2], 7)  # a part without items has no file
    assert not {*files.take(8).parts} & {*slots.parts, "train-7.4", *fifth.parts}


def test_what_is_given_back_when_no_shard_comes_is_deleted(tmp_path: Path) -> None:
    files = SlotFiles(tmp_path)
    slots = [files.take(chunk) for chunk in (0, 1)]
    for chunk in slots:
        for name in (*chunk.parts, chunk.small):
            (tmp_path / name).touch()
    train, small = slots[0].parts[0], slots[0].small
    files.give_back(train, 0)
    files.give_back(small, 0)
    assert (tmp_path / train).exists()
    files.end_reuse()
    assert not (tmp_path / train).exists()
    for name in (*slots[1].parts[1:], slots[1].small):
        files.give_back(name, 1)
    (tmp_path / slots[0].parts[2]).unlink()  # a part without items has no file
    files.give_back(slots[0].parts[2], 0)
    left = {slots[0].parts[1], slots[0].parts[3], small, slots[1].parts[0], slots[1].small}
    assert {path.name for path in tmp_path.iterdir()} == left  # small ones may hold parts of other shards
