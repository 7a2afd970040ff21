"""Sorted runs of pretokens, flushed, merged in levels and by range, equal a dict in sorted order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from pretoken_ends import automaton_of

from bpe import _core

OWN_PRETOKENS = 3 << 15  # pretokens that a thread holds before it flushes a run


def added(items: Iterable[tuple[bytes, int]], counter: _core.PretokenCounter) -> None:
    """Add the pretokens to the counter in this order, in one call."""
    pretokens, counts = zip(*items, strict=True)
    ends = np.cumsum([len(pretoken) for pretoken in pretokens], dtype=np.uint64)
    counter.add(b"".join(pretokens), ends, np.array(counts, np.uint64))


def listed(counter: _core.PretokenCounter) -> list[tuple[bytes, int]]:
    """List the contents of the counter, in its order."""
    text, ends, counts = counter.items()
    data, stops = text.tobytes(), ends.tolist()
    return [
        (data[start:stop], count)
        for start, stop, count in zip([0, *stops][: len(stops)], stops, counts.tolist(), strict=True)
    ]


def check_equal(items: list[tuple[bytes, int]], again: int = 1) -> None:
    """Check that counting the items `again` times gives their sums in byte order."""
    counter = _core.PretokenCounter(None)
    wanted: Counter[bytes] = Counter()
    for _ in range(again):
        added(items, counter)
        for pretoken, count in items:
            wanted[pretoken] += count
        assert len(counter) == len(wanted)
    assert listed(counter) == sorted(wanted.items())
    assert listed(counter) == sorted(wanted.items())
    counter.drain()
    assert listed(counter) == []


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
    items = [(pretoken, 3 + place) for place, pretoken in enumerate(pretokens)]
    random.Random(5).shuffle(items)
    check_equal(items, again=3)


def test_counts_of_64_bits() -> None:
    items = [(b"short", 2**62), (b"one that is longer than a key", 2**62)]
    check_equal(items, again=3)


@pytest.mark.parametrize("size", [OWN_PRETOKENS - 1, OWN_PRETOKENS, OWN_PRETOKENS + 1, 5 * OWN_PRETOKENS])
def test_poured_runs(size: int) -> None:
    numbers = random.Random(size)
    items = [(numbers.randbytes(numbers.choice([2, 3, 5, 9, 15, 16, 40])), i + 1) for i in range(size)]
    check_equal(items, again=2)


def test_many_runs() -> None:
    # 24 runs, merged at each flush and at the end.
    numbers = np.random.default_rng(7)
    values = numbers.integers(0, 1 << 21, 24 * OWN_PRETOKENS, dtype=np.uint32)
    counter = _core.PretokenCounter(automaton_of("gpt2"))
    text = b"".join(b" %x" % value for value in values.tolist())
    text = text.translate(bytes.maketrans(b"0123456789", b"ghijklmnop"))  # letters only: one pretoken each
    for part in range(2):
        counter.count(text, [], threads=1 + part)
    wanted = Counter(b" " + word for word in text.split())
    items = listed(counter)
    assert items == sorted((pretoken, 2 * count) for pretoken, count in wanted.items())
    assert len(counter) == len(wanted)


@pytest.mark.parametrize("seed", range(3))
def test_ranges_that_share_blocks(seed: int) -> None:
    """A block of records that contains a range boundary is kept until both ranges are read."""
    values = np.random.default_rng(seed).integers(0, 1 << 17, 3 * OWN_PRETOKENS)
    text = b"".join(b" %x" % value for value in values.tolist())
    text = text.translate(bytes.maketrans(b"0123456789", b"ghijklmnop"))
    counter = _core.PretokenCounter(automaton_of("gpt2"))
    counter.count(text, [], threads=2)
    assert listed(counter) == sorted(Counter(b" " + word for word in text.split()).items())


@pytest.mark.parametrize("size", [20, 200])
def test_memory_is_used_again(size: int) -> None:
    """The merge writes into the memory it reads: counting the same text repeatedly takes no more memory."""
    numbers = random.Random(size)
    text = b" ".join(numbers.randbytes(size // 2).hex().encode() for _ in range((6 << 20) // size))
    text = text.translate(bytes.maketrans(b"0123456789", b"ghijklmnop"))
    counter = _core.PretokenCounter(automaton_of("gpt2"))
    sizes = []
    for _ in range(24):
        counter.count(text, [], threads=1)
        sizes.append(counter.memory_bytes())
    assert max(sizes) < 20 * len(text) + (16 << 20)
    counter.drain()
    assert counter.memory_bytes() == 0
