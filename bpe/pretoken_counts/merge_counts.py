"""Merge sorted streams of counts into one, in memory that depends only on the number of streams.

One block of each stream is held. The lowest of their last pretokens is a bound: later blocks have only pretokens above
it. The pretokens up to the bound are therefore summed in a hash table and yielded in order. Exhausted streams then read
their next block. `merge_sorted` of any streams equals the sum of their counts as dicts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.pretoken_counts.counts_facts import Arrays


def merge_sorted(streams: Sequence[Iterable[Arrays]]) -> Iterator[Arrays]:
    """Yield blocks of (pretoken bytes, ends, counts) of all streams together, ascending, each pretoken once.

    streams: blocks of pretokens that ascend within and across blocks, without repeats.

    [{a: 1, c: 2}], [{b: 1}, {c: 3}] -> {a: 1, b: 1, c: 5}, in one or more blocks. Cost: about 0.2 µs per pretoken.
    """
    heads = [head for head in map(_Head, streams) if head.holds_some()]
    while len(heads) > 1:
        bound = min(head.last for head in heads)
        counter = _core.PretokenCounter(None)
        for head in heads:
            text, ends, counts = head.take(bound)
            counter.add(text.data, ends, counts)
        yield counter.drain()
        heads = [head for head in heads if head.holds_some()]
    for head in heads:
        while head.holds_some():
            yield head.take(head.last)


class _Head:
    """The current block of a stream, and the pretokens left in it."""

    def __init__(self, stream: Iterable[Arrays]) -> None:
        self._blocks = iter(stream)
        self._first = 0  # index of the first pretoken that is left
        self._text: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._ends = self._counts = np.zeros(0, np.uint64)
        self.last = b""

    def holds_some(self) -> bool:
        """Return whether pretokens are left. Reads the next block if needed."""
        while self._first == len(self._ends):
            block = next(self._blocks, None)
            if block is None:
                return False
            self._text, self._ends, self._counts = block
            self._first = 0
            self.last = self._pretoken(len(self._ends) - 1) if len(self._ends) else b""
        return True

    def take(self, bound: bytes) -> Arrays:
        """Remove and return the pretokens of the block up to and including `bound`."""
        first, stop = self._first, len(self._ends)
        if self.last > bound:
            stop = bisect_right(range(stop), bound, lo=first, key=self._pretoken)
        start_byte = self._start(first)
        self._first = stop
        return (
            self._text[start_byte : self._start(stop)],
            self._ends[first:stop] - np.uint64(start_byte),
            self._counts[first:stop],
        )

    def _start(self, place: int) -> int:
        return int(self._ends[place - 1]) if place else 0

    def _pretoken(self, place: int) -> bytes:
        return self._text[self._start(place) : self._start(place + 1)].tobytes()


def joined(blocks: Iterable[Arrays]) -> Arrays:
    """Concatenate the blocks of one stream."""
    texts, ends, counts = [], [], []
    offset = 0
    for text, block_ends, block_counts in blocks:
        texts.append(text)
        ends.append(block_ends + np.uint64(offset))
        counts.append(block_counts)
        offset += text.nbytes
    if len(texts) == 1:
        return texts[0], ends[0], counts[0]
    if not texts:
        return np.zeros(0, np.uint8), np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    return np.concatenate(texts), np.concatenate(ends), np.concatenate(counts)


def collected(blocks: Iterable[Arrays], most_distinct: int, most_bytes: int) -> Arrays:
    """Concatenate the blocks of one stream, holding each pretoken once.

    most_distinct, most_bytes: upper bounds for the pretokens and their bytes. A loose bound costs nothing, because
        reserved pages use memory only when they are written.
    """
    text, ends = np.empty(most_bytes, np.uint8), np.empty(most_distinct, np.uint64)
    counts = np.empty(most_distinct, np.uint64)
    distinct = pretoken_bytes = 0
    for block_text, block_ends, block_counts in blocks:
        start, first = pretoken_bytes, distinct
        pretoken_bytes, distinct = start + block_text.nbytes, first + len(block_ends)
        text[start:pretoken_bytes] = block_text
        np.add(block_ends, np.uint64(start), out=ends[first:distinct])
        counts[first:distinct] = block_counts
    return text[:pretoken_bytes], ends[:distinct], counts[:distinct]
