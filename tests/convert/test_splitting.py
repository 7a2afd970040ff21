"""The rule that holds documents out, and how a chunk's ids are put apart."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from shards import items_of, record_of, writer_of

from convert.encode.splitting import hash_threshold, is_validation
from convert.shards.shard import SPLITS, STARTS_OF


@pytest.mark.parametrize(
    ("fraction", "threshold"),
    [(0.0, 0), (2.0**-64, 1), (0.5, 2**63), (1.0, 2**64), (0.005, int(0.005 * 2.0**64))],
)
def test_threshold(fraction: float, threshold: int) -> None:
    assert hash_threshold(fraction) == threshold
    hashes = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert is_validation(hashes, threshold).tolist() == [int(value) < threshold for value in hashes]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("count", [0, 1, 2, 63, 64, 65])
def test_documents_keep_their_order_within_their_split(count: int, share: float, tmp_path: Path) -> None:
    rng = random.Random(f"{count} {share}")
    expected: tuple[list[list[int]], list[list[int]]] = ([], [])
    with writer_of(tmp_path) as shard:
        for _ in range(3):  # several pieces of one chunk
            rows = [[rng.randrange(1000) for _ in range(rng.choice([0, 1, 5]))] for _ in range(count)]
            held_out = np.array([rng.random() < share for _ in rows], dtype=np.bool_)
            offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
            shard.add(
                np.array([i for row in rows for i in row], dtype=np.uint32),
                offsets,
                held_out,
                np.arange(count, dtype=np.uint64),
            )
            for row, out in zip(rows, held_out.tolist(), strict=True):
                expected[out].append(row)
        record = record_of(shard)
    for split, rows in zip(SPLITS, expected, strict=True):
        counts = record.split(split)
        starts = items_of(tmp_path, record.part(STARTS_OF[split]), 0, counts.sequences)
        tokens = np.array(items_of(tmp_path, record.part(split), 0, counts.tokens))
        written = [row for row in rows if row]
        assert [row.tolist() for row in np.split(tokens, starts)[1:]] == written
        assert counts.documents == len(rows)
        assert (counts.sequences, counts.empty) == (len(written), len(rows) - len(written))
        assert counts.max_token_id == max((max(row) for row in written), default=0)
