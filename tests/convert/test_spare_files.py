"""Files that are written over: each is taken once, and nothing of what they held shows in a shard."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from shards import record_of

from convert.shards import spare_files
from convert.shards.shard import ShardReader, is_intact, part_path
from convert.shards.shard_writer import ShardWriter


def test_a_file_is_taken_once(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"old-{number}").write_text(str(number))
        spare_files.keep(tmp_path, tmp_path / f"old-{number}", number % 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spare-0", "spare-1"]
    spare_files.keep(tmp_path, tmp_path / "not-there", 1)
    assert spare_files.take(tmp_path, tmp_path / "a", 2)
    assert (tmp_path / "a").read_text() == "2"
    assert not spare_files.take(tmp_path, tmp_path / "b", 1)
    assert spare_files.take(tmp_path, tmp_path / "b", 2)
    assert not spare_files.take(tmp_path, tmp_path / "c", 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_of_many_that_want_one_each_gets_another(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"spare-{number}").write_text(str(number))
    taken: list[bool] = []

    def take_ten(taker: int) -> None:
        for number in range(10):
            taken.append(spare_files.take(tmp_path, tmp_path / f"{taker}-{number}", 50))

    threads = [threading.Thread(target=take_ten, args=(taker,)) for taker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken.count(True) == 50
    assert sorted(int(path.read_text()) for path in tmp_path.iterdir()) == list(range(50))


@pytest.mark.parametrize("old_bytes", [0, 1, 7, 8, 9, 5000])
def test_nothing_of_the_old_content_shows(old_bytes: int, tmp_path: Path) -> None:
    for index in range(2):
        (tmp_path / f"spare-{index}").write_bytes(b"\xee" * old_bytes)
    with ShardWriter(tmp_path, 0, np.dtype(np.uint16), 999, spares=2) as shard:
        shard.add(0, np.array([1, 2, 3, 4], dtype=np.uint32), np.array([1, 3], dtype=np.uint64))
        shard.extend(np.array([5, 6, 7], dtype=np.uint32), guess=0)
        shard.end_document(1)  # guessed wrong: its ids move
        record = record_of(shard)
    assert is_intact(tmp_path, record)
    assert part_path(tmp_path, 0, "train").stat().st_size == 8
    with ShardReader(tmp_path, record.shape) as reader:
        assert reader.tokens("train", 0, 4).tolist() == [1, 2, 3, 4]
        assert reader.tokens("validation", 0, 3).tolist() == [5, 6, 7]
