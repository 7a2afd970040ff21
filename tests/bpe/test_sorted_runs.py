"""Sorted runs of pretokens, flushed, merged in levels and by range, equal a dict in sorted order."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from pretoken_ends import automaton_of

from bpe import _core

OWN_PRETOKENS = 3 << 15  # pretokens that a thread holds before it flushes a run
LETTERS = bytes.maketrans(b"0123456789", b"ghijklmnop")  # digits of hexadecimal numbers as letters


def listed(counter: _core.PretokenCounter) -> list[tuple[bytes, int]]:
    """List the contents of the counter, in its order."""
    text, ends, counts = counter.items()
    data, stops = text.tobytes(), ends.tolist()
    starts = [0, *stops][: len(stops)]
    return [(data[start:stop], int(count)) for start, stop, count in zip(starts, stops, counts, strict=True)]


def check_equal(items: list[tuple[bytes, int]]) -> None:
    """Check that counting the items three times gives their sums in byte order."""
    counter = _core.PretokenCounter(None)
    pretokens, counts = zip(*items, strict=True)
    ends = np.cumsum([len(pretoken) for pretoken in pretokens], dtype=np.uint64)
    expected: Counter[bytes] = Counter()
    for _ in range(3):
        counter.add(b"".join(pretokens), ends, np.array(counts, np.uint64))
        for pretoken, count in items:
            expected[pretoken] += count
        assert len(counter) == len(expected)
    assert listed(counter) == listed(counter) == sorted(expected.items())
    counter.drain()
    assert listed(counter) == []
    assert counter.memory_bytes() == 0


@pytest.mark.parametrize(
    "pretokens",
    [
        pytest.param([b"a", b"a\0", b"a\0\0", b"\0", b"b", b"\0a"], id="zero bytes"),
        pytest.param([b"x" * size for size in range(1, 40)], id="lengths"),
        pytest.param([b"\xff" * size for size in range(1, 40)], id="highest bytes"),
        pytest.param(
            [b"x" * 15 + bytes([i]) * j for i in range(5) for j in range(4) if i or not j], id="one prefix"
        ),
        pytest.param([b"x" * 14 + bytes([i]) for i in range(256)], id="the last byte of a key"),
        pytest.param([b"y" * size for size in (1 << 16, (1 << 18) - 17, 1 << 18, 3 << 18, 20)], id="large"),
    ],
)
def test_order_and_sums(pretokens: list[bytes]) -> None:
    items = [(pretoken, 2**60 - index) for index, pretoken in enumerate(pretokens)]
    random.Random(5).shuffle(items)
    check_equal(items)


@pytest.mark.slow
@pytest.mark.parametrize("size", [OWN_PRETOKENS - 1, OWN_PRETOKENS, OWN_PRETOKENS + 1, 4 * OWN_PRETOKENS])
def test_full_tables(size: int) -> None:
    rng = random.Random(size)
    check_equal([(rng.randbytes(rng.choice([2, 3, 5, 9, 15, 16, 40])), i + 1) for i in range(size)])


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "threads"), [(3, 2), (3, 3), (16, 1)])
def test_runs_are_merged_in_ranges(runs: int, threads: int) -> None:
    """A block of records that contains a range boundary is kept until both ranges are read."""
    values = np.random.default_rng(runs + threads).integers(0, 1 << 21, runs * OWN_PRETOKENS, dtype=np.uint32)
    text = b"".join(b" %x" % value for value in values.tolist()).translate(LETTERS)
    counter = _core.PretokenCounter(automaton_of("gpt2"))
    counter.count(text, [], threads=threads)
    expected = Counter(b" " + word for word in text.split())
    assert listed(counter) == sorted(expected.items())
    counter.count(text, [], threads=threads)
    assert listed(counter) == sorted((pretoken, 2 * count) for pretoken, count in expected.items())


@pytest.mark.parametrize("size", [20, 200])
def test_memory_is_used_again(size: int) -> None:
    """The merge writes into the memory it reads: counting the same text repeatedly takes no more memory."""
    rng = random.Random(size)
    text = b" ".join(rng.randbytes(size // 2).hex().encode() for _ in range((4 << 20) // size))
    counter = _core.PretokenCounter(automaton_of("gpt2"))
    sizes = []
    for _ in range(16):
        counter.count(text.translate(LETTERS), [], threads=1)
        sizes.append(counter.memory_bytes())
    assert max(sizes) < 20 * len(text) + (16 << 20)
