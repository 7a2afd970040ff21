"""A shard holds what was added, in order, however it was cut into segments."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from shards import add_rows, is_intact, items_of, record_of, writer_of

from convert.errors import BrokenInvariant
from convert.shards import shard as shard_module
from convert.shards.shard import NOWHERE, PARTS, SPLITS, STARTS_OF
from convert.shards.shard_reader import PartReader
from convert.shards.shard_store import shards_at


@pytest.fixture(autouse=True)
def starts_are_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convert.shards.shard_writer.INLINE_BYTES", 0)


def ids(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    return np.array(values, dtype=np.uint32)


@pytest.mark.parametrize("flush_bytes", [1, 8, 20, 1 << 20])
def test_whole_documents_and_documents_in_pieces(
    flush_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convert.shards.part_writer.FLUSH_BYTES", flush_bytes)
    monkeypatch.setattr("convert.shards.part_writer._MOVED_BYTES", 6)
    monkeypatch.setattr(shard_module, "DIGEST_BLOCK_BYTES", 32)
    rng = random.Random(flush_bytes)
    expected: tuple[list[list[int]], list[list[int]]] = ([], [])
    with writer_of(tmp_path) as shard:
        for _ in range(60):
            split = rng.randrange(2)
            if rng.random() < 0.5:
                rows = [[rng.randrange(1000) for _ in range(rng.randrange(4))] for _ in range(3)]
                add_rows(shard, split, rows)
                expected[split].extend(rows)
                continue
            row, guess = [], rng.randrange(2)
            for _ in range(rng.randrange(5)):
                part = [rng.randrange(1000) for _ in range(rng.randrange(4))]
                shard.extend(ids(part), guess)
                row += part
            shard.end_document(split)
            expected[split].append(row)
        record = record_of(shard)
    assert {path.name for path in tmp_path.iterdir()} == {name for name, _ in record.places}
    assert any(name.endswith(".small") for name, _ in record.places) == (flush_bytes > 20)
    assert is_intact(tmp_path, record)
    for split_name, rows in zip(SPLITS, expected, strict=True):
        counts, own, own_starts = (
            record.split(split_name),
            record.part(split_name),
            record.part(STARTS_OF[split_name]),
        )
        written = [row for row in rows if row]
        flat = [id_ for row in written for id_ in row]
        starts = np.cumsum([0, *map(len, written)])[:-1].tolist()
        assert (counts.documents, counts.empty) == (len(rows), len(rows) - len(written))
        assert (counts.sequences, counts.tokens) == (len(written), len(flat))
        assert counts.max_token_id == max(flat)
        assert items_of(tmp_path, own, 0, len(flat)) == flat
        assert items_of(tmp_path, own_starts, 0, len(written)) == starts
        with PartReader(shards_at(tmp_path), own_starts) as reader:
            for begin in range(0, len(flat), 7):
                end = min(len(flat), begin + rng.randrange(1, 12))
                assert items_of(tmp_path, own, begin, end) == flat[begin:end]
                within = reader.starts_within(begin, end).tolist()
                assert within == [start for start in starts if begin <= start < end]


def test_a_part_without_items_is_nowhere_and_small_ones_share_a_file(tmp_path: Path) -> None:
    with writer_of(tmp_path) as shard:
        shard.extend(ids([1, 2, 3]))
        shard.end_document(1)
        record = record_of(shard)
    (name,) = (path.name for path in tmp_path.iterdir())
    assert record.places == (NOWHERE, (name, 0), NOWHERE, (name, 6), NOWHERE, (name, 14))
    assert is_intact(tmp_path, record)


def test_what_was_in_a_file_for_a_moment_leaves_none(tmp_path: Path) -> None:
    with writer_of(tmp_path) as shard:
        add_rows(shard, 0, [[1, 2]])
        shard.extend(ids([3, 4, 5]))  # the ids before it go to the file: this place is remembered
        shard.end_document(1)
        shard.extend(ids([6]), guess=1)
        shard.drop_document()
        record = record_of(shard)
    kinds = [name.rpartition(".")[2] for name, _ in record.places]
    assert kinds == ["train", "validation", *["small"] * 4]
    assert is_intact(tmp_path, record)
    with writer_of(tmp_path, 1) as shard:
        shard.extend(ids([3, 4, 5]))
        shard.drop_document()
        record = record_of(shard)
    assert record.places == (NOWHERE,) * len(PARTS)


@pytest.mark.parametrize("old_bytes", [0, 1, 7, 8, 9, 5000])
def test_nothing_of_a_spare_shows(old_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convert.shards.part_writer.FLUSH_BYTES", 1)
    (tmp_path / "spare").write_bytes(b"\xee" * old_bytes)
    with writer_of(tmp_path, spares=["spare"]) as shard:
        add_rows(shard, 0, [[1], [2, 3, 4]])
        shard.extend(ids([5, 6, 7]), guess=0)
        shard.end_document(1)  # guessed wrong: its ids move
        record = record_of(shard)
    assert is_intact(tmp_path, record)
    assert not (tmp_path / "spare").exists()
    assert (tmp_path / record.places[0][0]).stat().st_size == 8
    assert items_of(tmp_path, record.part("train"), 0, 4) == [1, 2, 3, 4]
    assert items_of(tmp_path, record.part("validation"), 0, 3) == [5, 6, 7]


def test_two_attempts_at_one_shard_have_no_file_in_common(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convert.shards.part_writer.FLUSH_BYTES", 1)
    (tmp_path / "spare").write_bytes(b"\xee" * 100)
    records = []
    with writer_of(tmp_path, spares=["spare"]) as one, writer_of(tmp_path, spares=["spare"]) as other:
        for first in range(5):  # in turns; one of them gets the spare
            add_rows(one, 0, [[first, 1]])
            add_rows(other, 0, [[first, 2]])
        records = [record_of(one), record_of(other)]
    assert not {name for name, _ in records[0].places if name} & {name for name, _ in records[1].places}
    assert all(is_intact(tmp_path, record) for record in records)


def test_an_id_above_the_vocabulary_never_wraps(tmp_path: Path) -> None:
    with (
        pytest.raises(BrokenInvariant, match="65536.*65535"),
        writer_of(tmp_path, largest_id=65535) as shard,
    ):
        add_rows(shard, 0, [[5, 65536]])
    assert list(tmp_path.iterdir()) == []  # nothing stays of a shard that failed


def test_a_document_in_pieces_must_end(tmp_path: Path) -> None:
    with writer_of(tmp_path, largest_id=9) as shard:
        shard.extend(ids([1]))
        with pytest.raises(BrokenInvariant):
            shard.finish()
        with pytest.raises(BrokenInvariant):
            add_rows(shard, 0, [[1]])
    assert list(tmp_path.iterdir()) == []
