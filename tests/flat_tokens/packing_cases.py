"""Lengths of sequences that packing planners are tried with, and seq_starts made of them."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt

from flat_tokens.packs.packing_plan import Plan


class InMemory:
    """seq_starts as the planners see it, from lengths."""

    name = "train/seq_starts"

    def __init__(self, lengths: list[int]) -> None:
        self.values = np.cumsum([0, *lengths]).astype(np.uint64)

    def __len__(self) -> int:
        return len(self.values)

    def read(self, start: int, stop: int) -> npt.NDArray[np.uint64]:
        return self.values[start:stop].copy()


def lengths_of(kind: str, seed: int, count: int, limit: int) -> list[int]:
    rng = random.Random(seed)
    if kind == "equal":
        return [max(limit // 3, 1)] * count
    if kind == "short":
        return [1] * count
    if kind == "full":
        return [limit] * count
    if kind == "long tail":
        return [min(limit, max(1, int(rng.lognormvariate(2, 1.5)))) for _ in range(count)]
    if kind == "in turns":
        return [1 if index // 700 % 2 else rng.randint(1, limit) for index in range(count)]
    return [rng.randint(1, limit) for _ in range(count)]


def ranges_of(plan: Plan, *packs: int) -> list[tuple[int, int]]:
    """The ranges of tokens of some packs."""
    pieces = plan.pieces(np.array(packs, dtype=np.int64))
    assert pieces.counts.sum() == len(pieces.starts)
    return list(zip(pieces.starts.tolist(), pieces.stops.tolist(), strict=True))


def skipped_of(plan: Plan, *packs: int) -> list[int]:
    """How many tokens of its first sequence lie in front of each pack."""
    return plan.skipped(np.array(packs, dtype=np.int64)).tolist()
