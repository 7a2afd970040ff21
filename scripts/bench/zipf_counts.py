"""How fast, and in how much memory, does the trainer merge a set as large as OpenWebText's?

That corpus has 6.6 million distinct pretokens with 2.47 billion occurrences. This grows such a set from a seed: words
from a chain of letters, counts that fall with the rank first as 1/r and then steeper, so that half of the words occur
once or twice. It trains on one thread and prints seconds and memory.

    python scripts/bench/zipf_counts.py [--distinct 6600000] [--vocab-size 32000] [--threads 1] [--seed 0]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Final

import harness
import numpy as np
from numpy.typing import NDArray

LETTERS: Final = b"etaoinshrdlucmfgypwbvkxjqz"
MAX_WORD_BYTES: Final = 20
# Counts: TOP / (rank + SHIFT) down to rank BEND, then falling by the power that ends at half an occurrence.
TOP, SHIFT, BEND = 2.3e8, 2.7, 8_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--distinct", type=int, default=6_600_000)
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from bpe import _core

    pretoken_bytes, ends, counts = grown(options.distinct, options.seed)
    print(
        f"{len(ends):,} distinct pretokens, {int(counts.sum()):,} occurrences, {len(pretoken_bytes):,} bytes"
    )
    print(f"once: {np.mean(counts == 1):.0%}; held before the training: {resident_mb():.0f} MB")
    started, cpu_started = time.perf_counter(), time.process_time()
    pairs, _ = _core.train_merges(
        pretoken_bytes.data, ends, counts, options.vocab_size - 256, "lexicographic", 1, options.threads, None
    )
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu_started
    print(f"{len(pairs):,} merges in {seconds:.2f} s, {cpu:.2f} s of CPU")
    print(f"peak of the process {harness.peak_bytes() / 1e6:.0f} MB, growing the set included")


def grown(distinct: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint64], NDArray[np.uint64]]:
    """(bytes end to end, ends, counts) of so many distinct pretokens, ascending as byte strings."""
    rng = np.random.default_rng(seed)
    words = np.zeros(0, dtype=f"S{MAX_WORD_BYTES}")
    while len(words) < distinct:
        words = np.unique(np.concatenate([words, chained(rng, max(10_000, distinct // 4))]))
    words = np.sort(rng.permutation(words)[:distinct])
    # Short words are the common ones, with some disorder.
    lengths = np.char.str_len(words)
    ranks = np.empty(distinct, np.int64)
    ranks[np.argsort(lengths + rng.normal(0, 1.5, distinct), kind="stable")] = np.arange(distinct)
    counts = expected_counts(distinct)[ranks]
    ends = np.cumsum(lengths, dtype=np.uint64)
    return np.frombuffer(b"".join(words.tolist()), np.uint8), ends, counts


def chained(rng: np.random.Generator, size: int) -> NDArray[np.bytes_]:
    """Words of which each letter depends on the one before; four in five start with a space, some with a capital."""
    letters = np.frombuffer(LETTERS, np.uint8)
    weights = np.random.default_rng(1).gamma(0.35, size=(26, 26)) / (np.arange(26) + 4)
    steps = np.cumsum(weights / weights.sum(1, keepdims=True), axis=1)
    words = np.zeros((size, MAX_WORD_BYTES), np.uint8)
    place = rng.integers(0, 26, size)
    lengths = np.minimum(2 + rng.poisson(rng.gamma(4.0, 1.6, size)), MAX_WORD_BYTES - 1)
    for column in range(1, MAX_WORD_BYTES):
        words[:, column] = np.where(column <= lengths, letters[place], 0)
        place = np.minimum((rng.random(size)[:, None] > steps[place]).sum(1), 25)
    words[:, 1] -= np.where(rng.random(size) < 0.2, 32, 0).astype(np.uint8)
    words[:, 0] = 32
    bare = rng.random(size) < 0.2
    words[bare] = np.roll(words[bare], -1, axis=1)
    words[bare, -1] = 0
    return words.view(f"S{MAX_WORD_BYTES}").ravel()


def expected_counts(distinct: int) -> NDArray[np.uint64]:
    """The count of each rank, falling, at least 1."""
    ranks = np.arange(1, distinct + 1, dtype=np.float64)
    counts = TOP / (ranks + SHIFT)
    if distinct > BEND:
        bend = counts[BEND - 1]
        power = np.log(2 * bend) / np.log(distinct / BEND)
        counts[BEND:] = bend * (ranks[BEND:] / BEND) ** -power
    whole: NDArray[np.uint64] = np.maximum(1, np.round(counts)).astype(np.uint64)
    return whole


def resident_mb() -> float:
    """Megabytes this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


if __name__ == "__main__":
    main()
