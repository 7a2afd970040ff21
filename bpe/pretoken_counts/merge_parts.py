"""Merge any number of counts, in memory or in files. Many parts are merged in several rounds through files.

A round merges up to `FAN_IN` parts, or as many as fit in memory. A stream holds a block of its file and copies of the
pretokens that are compared. A pretoken longer than a block has a separate block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from bpe.errors import BadArgument
from bpe.pretoken_counts.count_sums import check_total
from bpe.pretoken_counts.counts_facts import Arrays, CountsFacts, merged_facts
from bpe.pretoken_counts.counts_file import CountsFile
from bpe.pretoken_counts.counts_writer import write_counts_file
from bpe.pretoken_counts.memory import MemoryBudget, check_room
from bpe.pretoken_counts.merge_counts import merge_sorted
from bpe.pretoken_counts.workspace import Workspace

FAN_IN: Final = 64  # streams merged at once: 40 MB of blocks, far below any limit on open files
_STREAM_BYTES: Final = 1 << 18  # minimum, for files with few pretokens
_LONG_BYTES: Final = 1 << 20  # a larger block has one pretoken
_MERGE_BYTES: Final = 12 << 20  # hash table and result of a round


class Counted(Protocol):
    """Counts that can be read block by block."""

    @property
    def total(self) -> int:
        """Return the sum of the counts."""
        ...

    def largest_block_bytes(self) -> int:
        """Return the memory that the largest block takes."""
        ...

    def blocks(self) -> Iterable[Arrays]:
        """Return blocks of pretokens that ascend within and across blocks, without repeats."""
        ...


def merge_parts(
    parts: Sequence[Counted],
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
        write_counts_file(merged, _merge(parts[:group]), CountsFacts(), temporary=True)
        parts = [*parts[group:], CountsFile(merged)]
    return _merge(parts)


def facts_of(files: Sequence[CountsFile]) -> CountsFacts:
    """Return the facts of all files together. Raise BadArgument and name two files if they were counted differently."""
    return merged_facts([(str(file.path), file.facts) for file in files])


def _merge(parts: Sequence[Counted]) -> Iterator[Arrays]:
    return merge_sorted([part.blocks() for part in parts])
