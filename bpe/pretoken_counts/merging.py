"""Merge sorted counts into their sum: streams of blocks in memory, and any number of counts in memory or in files.

`merge_sorted` holds one block of each stream. The lowest of their last pretokens is a bound: later blocks have only
pretokens above it. The pretokens up to the bound are therefore summed in a hash table and yielded in order. Exhausted
streams then read their next block.

`merge_parts` merges many parts in several rounds through files. A round merges up to `FAN_IN` parts, or as many as fit
in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from bpe import _core
from bpe.errors import BadArgument
from bpe.pretoken_counts.count_sums import check_total
from bpe.pretoken_counts.counts_facts import Arrays, CountsFacts
from bpe.pretoken_counts.counts_file import CountsFile, write_counts_file
from bpe.pretoken_counts.memory import MemoryBudget, check_room
from bpe.pretoken_counts.workspace import Workspace

if TYPE_CHECKING:
    from bpe.pretoken_counts.counts import PretokenCounts

FAN_IN: Final = 64  # streams merged at once: 50 MB of blocks, far below any limit on open files
_STREAM_BYTES: Final = 1 << 18  # minimum, for files with few pretokens
_LONG_BYTES: Final = 1 << 20  # a larger block has one pretoken
_MERGE_BYTES: Final = 12 << 20  # hash table and result of a round


def merge_sorted(streams: Sequence[Iterable[Arrays]]) -> Iterator[Arrays]:
    """Yield blocks of (pretoken bytes, ends, counts) of all streams together, ascending, each pretoken once.

    streams: blocks of pretokens that ascend within and across blocks, without repeats.

    [{a: 1, c: 2}], [{b: 1}, {c: 3}] -> {a: 1, b: 1, c: 5}, in one or more blocks. Cost: about 0.2 µs per pretoken.
    """
    heads = [(block, rest) for rest in map(iter, streams) if (block := _next_block(rest)) is not None]
    while len(heads) > 1:
        bound = min(_pretoken(block, len(block[1]) - 1) for block, _ in heads)
        counter = _core.PretokenCounter(None)
        after: list[tuple[Arrays, Iterator[Arrays]]] = []
        for (text, ends, counts), rest in heads:
            stop = bisect_right(range(len(ends)), bound, key=partial(_pretoken, (text, ends, counts)))
            stop_byte = ends[stop - 1] if stop else np.uint64(0)
            counter.add(text[: int(stop_byte)].data, ends[:stop], counts[:stop])
            left: Arrays | None = (text[int(stop_byte) :], ends[stop:] - stop_byte, counts[stop:])
            if stop == len(ends):
                left = _next_block(rest)
            if left is not None:
                after.append((left, rest))
        yield counter.drain()
        heads = after
    for block, rest in heads:
        yield block
        yield from rest


def _next_block(blocks: Iterator[Arrays]) -> Arrays | None:
    return next((block for block in blocks if len(block[1])), None)


def _pretoken(block: Arrays, index: int) -> bytes:
    text, ends, _ = block
    return text[int(ends[index - 1]) if index else 0 : int(ends[index])].tobytes()


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


def merge_parts(
    parts: Sequence[PretokenCounts | CountsFile],
    workspace: Workspace | None = None,
    budget: MemoryBudget | None = None,
    beside_bytes: int = 0,
) -> Iterator[Arrays]:
    """Return the sorted sum of the parts in blocks.

    workspace: for intermediate files; required if one round cannot merge all parts.
    budget: limits the number of parts per round, which is at least two.
    beside_bytes: memory that the caller uses during the merge.

    Raise BadArgument if a workspace is required but missing, NotEnoughMemory if two parts do not fit in the budget, and
    BadCounts if the sum of all counts is 2^63 or more.
    """
    parts = list(parts)
    check_total(sum(part.total for part in parts), f"{len(parts)} sets of counts")
    fan_in = FAN_IN
    if budget is not None and len(parts) > 1:
        largest = max(part.largest_block_bytes() for part in parts)
        # Adding up a block takes three times its size. Blocks of one long pretoken are added one at a time.
        is_long = largest > _LONG_BYTES
        stream_bytes = max(_STREAM_BYTES, (2 if is_long else 4) * largest)
        merge_bytes = _MERGE_BYTES + beside_bytes + (6 * largest if is_long else 0)
        fan_in = max(2, min(FAN_IN, (budget.free_bytes - merge_bytes) // stream_bytes))
        check_room(merge_bytes + min(fan_in, len(parts)) * stream_bytes, "merging counts files", budget)
    while len(parts) > fan_in:
        if workspace is None:
            raise BadArgument(f"workspace: required to merge more than {fan_in} parts")
        # Merge only as many as needed, so that the last round merges all others and no part is copied needlessly.
        group = min(fan_in, len(parts) - fan_in + 1)
        merged = workspace.new_file()
        write_counts_file(
            merged, merge_sorted([part.blocks() for part in parts[:group]]), CountsFacts(), temporary=True
        )
        parts = [*parts[group:], CountsFile(merged)]
    return merge_sorted([part.blocks() for part in parts])
