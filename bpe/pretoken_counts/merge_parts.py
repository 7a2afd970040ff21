"""Any number of counts added up, in memory or in files: some at once, more in several rounds through files.

How many at once: `FAN_IN`, or as many as the memory has room for. A stream takes a block of its file, and what its
last pretoken is compared with; a pretoken longer than a block is a block of its own.
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

FAN_IN: Final = 64  # streams merged at once: 40 MB of blocks, and far from any limit of open files
_STREAM_BYTES: Final = 1 << 18  # at least, for a file of few pretokens
_LONG_BYTES: Final = 1 << 20  # a block of more is one pretoken
_MERGE_BYTES: Final = 12 << 20  # the table that a round adds up in, and its result


class Counted(Protocol):
    """A part: counts that can be read block by block."""

    @property
    def total(self) -> int:
        """The sum of its counts."""
        ...

    def largest_block_bytes(self) -> int:
        """What the largest of its blocks takes in memory."""
        ...

    def blocks(self) -> Iterable[Arrays]:
        """Blocks that ascend, within and from one to the next, and no pretoken twice."""
        ...


def merge_parts(
    parts: Sequence[Counted],
    workspace: Workspace | None = None,
    budget: MemoryBudget | None = None,
    beside_bytes: int = 0,
) -> Iterator[Arrays]:
    """The sum of the parts, sorted, in blocks; BadArgument for more parts than are merged at once without a workspace.

    budget: as many at once as it has room for, at least two; NotEnoughMemory if there is none for those.
    beside_bytes: what the caller takes meanwhile.
    BadCounts if all counts together come to 2^63 or more.
    """
    parts = list(parts)
    check_total(sum(part.total for part in parts), f"{len(parts)} sets of counts")
    fan_in = FAN_IN
    if budget is not None and len(parts) > 1:
        largest = max(part.largest_block_bytes() for part in parts)
        # What is added up of a block takes three times as much on its way. Of long pretokens, each a block, it is one.
        is_long = largest > _LONG_BYTES
        stream_bytes = max(_STREAM_BYTES, (2 if is_long else 4) * largest)
        merge_bytes = _MERGE_BYTES + beside_bytes + (6 * largest if is_long else 0)
        fan_in = max(2, min(FAN_IN, (budget.free_bytes - merge_bytes) // stream_bytes))
        check_room(merge_bytes + min(fan_in, len(parts)) * stream_bytes, "merging counts files", budget)
    while len(parts) > fan_in:
        if workspace is None:
            raise BadArgument(f"workspace: required to merge more than {fan_in} parts")
        # The first ones only: when as many are left as are merged at once, none is copied twice in vain.
        group = min(fan_in, len(parts) - fan_in + 1)
        merged = workspace.new_file()
        write_counts_file(merged, _merge(parts[:group]), CountsFacts(), temporary=True)
        parts = [*parts[group:], CountsFile(merged)]
    return _merge(parts)


def facts_of(files: Sequence[CountsFile]) -> CountsFacts:
    """The facts of all files together; BadArgument naming two whose pattern or special tokens differ."""
    return merged_facts([(str(file.path), file.facts) for file in files])


def _merge(parts: Sequence[Counted]) -> Iterator[Arrays]:
    return merge_sorted([part.blocks() for part in parts])
