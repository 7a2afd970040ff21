"""The rule that holds documents out, and shards, which return all documents in order, separated by split."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.end_tokens import EndToken, EndTokens
from convert import _core
from convert.encode.splitting import hash_threshold, is_validation
from convert.errors import BrokenInvariant, DataLost
from convert.planning.plan import ShardId
from convert.shards.shard import SPLITS, ShardRecord
from convert.shards.shard_reader import read_slice
from convert.shards.shard_store import shards_at
from convert.shards.shard_writer import ShardWriter
from flat_tokens.format import encode_tokens

Rows = list[list[int]]
MAX_ID = 2**30 - 1
IDS = st.lists(st.integers(0, MAX_ID), max_size=5)
# (documents with their splits), or a long document: its parts, the guessed split, its split or None to drop it.
WHOLE = st.lists(st.tuples(IDS, st.integers(0, 1)), max_size=4)
LONG = st.tuples(st.lists(IDS, max_size=4), st.integers(0, 1), st.sampled_from([0, 1, None]))
ENDS = [EndTokens(), EndTokens((EndToken(7, "a"),)), EndTokens((EndToken(1, "a"),), (EndToken(2, "b"),) * 2)]


@pytest.mark.parametrize(
    ("fraction", "threshold"),
    [(0.0, 0), (2.0**-64, 1), (0.5, 2**63), (1.0, 2**64), (0.005, int(0.005 * 2.0**64))],
)
def test_threshold(fraction: float, threshold: int) -> None:
    assert hash_threshold(fraction) == threshold
    hashes = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert is_validation(hashes, threshold).tolist() == [int(value) < threshold for value in hashes]


@settings(deadline=None, max_examples=60)
@given(st.lists(WHOLE | LONG, max_size=8), st.sampled_from(ENDS), st.sampled_from([8, 16, 64, 1 << 18]))
def test_a_shard_holds_what_was_added(steps: list[Any], ends: EndTokens, block_bytes: int) -> None:
    expected: tuple[Rows, Rows] = ([], [])
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.multiple(
            "convert.shards.shard_writer", BLOCK_BYTES=block_bytes, BUFFER_BYTES=32, MOVED_BYTES=16
        ),
    ):
        with ShardWriter(Path(folder), ShardId(3, 1), MAX_ID, ends) as shard:
            for step in steps:
                if isinstance(step, list):
                    rows = [row for row, _ in step]
                    tokens = np.array([id_ for row in rows for id_ in row], np.uint32)
                    offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
                    shard.add(tokens, offsets, np.array([split for _, split in step], np.bool_))
                    for row, split in step:
                        expected[split].append(row)
                else:
                    parts, guess, split = step
                    for part in parts:
                        shard.extend(np.array(part, np.uint32), guess)
                    if split is None:
                        shard.drop_document()
                    else:
                        shard.end_document(split)
                        expected[split].append([id_ for part in parts for id_ in part])
            record = shard.finish()
        assert {file.name for file in record.files()} == {path.name for path in Path(folder).iterdir()}
        assert ShardRecord.from_json(record.as_json()) == record
        for split, rows in zip(SPLITS, expected, strict=True):
            written = [[*ends.front_ids, *row, *ends.back_ids] for row in rows if row]
            tokens = np.array([id_ for row in written for id_ in row], np.uint32)
            starts = np.cumsum([0, *map(len, written)]).astype(np.uint64)
            counts = record.split(split)
            assert (counts.documents, counts.empty) == (len(rows), len(rows) - len(written))
            assert (counts.sequences, counts.tokens) == (len(written), len(tokens))
            assert counts.max_token_id == tokens.max(initial=0)
            assert (
                read(folder, record, split, "tokens", block_bytes) == encode_tokens(tokens, starts).tolist()
            )
            assert read(folder, record, split, "starts", block_bytes) == starts[:-1].tolist()


def read(folder: str, record: ShardRecord, split: str, array: str, block_bytes: int) -> list[int]:
    """Read an array of a shard in two slices, and find any flipped bit in them."""
    counts = record.split(split)
    count = counts.tokens if array == "tokens" else counts.sequences
    items: list[int] = []
    patch = {
        name: mock.patch(f"convert.shards.{name}.BLOCK_BYTES", block_bytes)
        for name in ("shard", "shard_reader")
    }
    with patch["shard"], patch["shard_reader"]:
        for start, stop in ((0, count // 3), (count // 3, count)):
            if start == stop:
                continue
            own = record.slice(split, array, start, stop, 0)
            dtype = np.uint32 if array == "tokens" else np.uint64
            items += [
                item for data in read_slice(shards_at(folder), own) for item in data.view(dtype).tolist()
            ]
            path = Path(folder, own.file.name)
            data = path.read_bytes()
            path.write_bytes(data[: own.start] + bytes([data[own.start] ^ 1]) + data[own.start + 1 :])
            with pytest.raises(DataLost, match="checksum mismatch"):
                list(read_slice(shards_at(folder), own))
            assert not path.exists()  # so that the next run encodes the shard again
            path.write_bytes(data)
    return items


def test_the_loss_mask_is_bit_31_of_a_stored_word() -> None:
    ids = np.array([5, 6 | 1 << 31, 7 | 1 << 31, 2**30 - 1], dtype=np.uint32)
    offsets, validation = np.array([0, 2, 4], dtype=np.uint64), np.array([True, False])
    words, starts = np.zeros(6, dtype=np.uint32), np.zeros(2, dtype=np.uint64)
    stats = _core.partition_by_split(
        ids, offsets, validation, (100, 0), words, starts, front=9 | 1 << 31, has_mask=True
    )
    bit = 1 << 31
    assert words.tolist() == [19 | bit, 14 | bit, 2**31 - 2, 19 | bit, 10, 12 | bit]
    assert starts.tolist() == [100, 0]
    assert stats == ((3, 1, 2, 2**30 - 1), (3, 1, 2, 9))


def test_arguments_that_do_not_fit_are_refused() -> None:
    ids, words, starts = np.zeros(4, np.uint32), np.zeros(4, np.uint32), np.zeros(2, np.uint64)
    offsets, validation = np.array([0, 1, 4], np.uint64), np.zeros(2, np.bool_)
    with pytest.raises(ValueError, match="words: must have room for 4"):
        _core.partition_by_split(ids, offsets, validation, (0, 0), words[:3], starts)
    with pytest.raises(ValueError, match="words: must have room for 6"):
        _core.partition_by_split(ids, offsets, validation, (0, 0), words, starts, front=1)
    with pytest.raises(ValueError, match="starts: must have room for 2"):
        _core.partition_by_split(ids, offsets, validation, (0, 0), words, starts[:1])
    with pytest.raises(ValueError, match="validation: must have 2"):
        _core.partition_by_split(ids, offsets, validation[:1], (0, 0), words, starts)
    with pytest.raises(ValueError, match="offsets end at 4"):
        _core.partition_by_split(ids[:3], offsets, validation, (0, 0), words, starts)


def test_an_id_above_the_vocabulary_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(BrokenInvariant, match="65536.*65535"),
        ShardWriter(tmp_path, ShardId(0), 65535) as shard,
    ):
        shard.add(np.array([65536], np.uint32), np.array([0, 1], np.uint64), np.zeros(1, np.bool_))
    assert list(tmp_path.iterdir()) == []  # nothing remains of a shard that failed
