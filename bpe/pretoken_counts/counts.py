"""Counted pretokens: in memory (`PretokenCounts`), and in any number of parts that are added up when they are read.

`blocks()` of a `CountSet` equals the sum of its parts as dicts. Its memory depends neither on the sizes of the parts
nor, beyond `merging.FAN_IN`, on their number. `load()` returns the counts for training, or raises NotEnoughMemory
before it loads them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.errors import BadArgument, check_whole, shown
from bpe.pretoken_counts.count_sums import exact_sum
from bpe.pretoken_counts.counts_facts import Arrays, CountsFacts, merged_facts
from bpe.pretoken_counts.counts_file import CountsFile, cut_in_blocks, write_counts_file
from bpe.pretoken_counts.memory import MemoryBudget, refused_training, training_bytes, ways_out
from bpe.pretoken_counts.merging import collected, merge_parts
from bpe.pretoken_counts.workspace import Workspace
from tokenmill.inputs.sizes import counted
from tokenmill.stores import NO_OPTIONS, StorageOptions

if TYPE_CHECKING:
    from bpe.progress import Progress

_BINS: Final = 1 << 16  # of the histograms, so also the minimum counts that `fit` tries
# Share of all occurrences. If more are left out, the vocabulary does not represent the text.
_MAX_LEFT_OUT: Final = 0.9

MinCount = int | Literal["fit"]


@dataclass(frozen=True, slots=True, eq=False)
class PretokenCounts:
    """Distinct pretokens, ascending as byte strings, and how often each occurs.

    pretoken_bytes: uint8[sum of lengths], end to end. ends, counts: uint64[pretokens].
    {b"a": 2, b"bc": 1} -> pretoken_bytes b"abc", ends [1, 3], counts [2, 1].
    """

    pretoken_bytes: NDArray[np.uint8]
    ends: NDArray[np.uint64]
    counts: NDArray[np.uint64]
    facts: CountsFacts = field(default_factory=CountsFacts)

    def __repr__(self) -> str:
        return f"<PretokenCounts {counted(len(self), 'pretoken')}, {self.total:,} occurrences>"

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def total(self) -> int:
        """Return the number of occurrences of all pretokens."""
        return exact_sum(self.counts)

    @property
    def text_bytes(self) -> int:
        """Return the number of bytes of text read."""
        return self.facts.text_bytes

    @property
    def replaced(self) -> int:
        """Return the number of U+FFFD inserted for invalid UTF-8."""
        return self.facts.replaced

    @property
    def memory_bytes(self) -> int:
        """Return the bytes of the arrays."""
        return self.pretoken_bytes.nbytes + self.ends.nbytes + self.counts.nbytes

    @property
    def arrays(self) -> Arrays:
        """Return (pretoken_bytes, ends, counts)."""
        return self.pretoken_bytes, self.ends, self.counts

    def blocks(self) -> Iterator[Arrays]:
        """Return views of the counts in blocks, split as in a counts file."""
        return cut_in_blocks(self.arrays)

    def largest_block_bytes(self) -> int:
        """Return the memory that the largest block takes when it is read from a counts file."""
        return max((text.nbytes + 32 * len(ends) for text, ends, _ in self.blocks()), default=0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a counts file (format: `bpe.pretoken_counts.counts_file`). It appears complete or not at all."""
        write_counts_file(path, self.blocks(), self.facts)

    def as_dict(self) -> dict[bytes, int]:
        """Return {pretoken: count}, ascending. Takes about 200 bytes per pretoken, so use it for small sets."""
        text = self.pretoken_bytes.tobytes()
        ends = self.ends.tolist()
        spans = zip([0, *ends[:-1]], ends, self.counts.tolist(), strict=True) if ends else ()
        return {text[start:stop]: count for start, stop, count in spans}

    @staticmethod
    def load(*paths: str | os.PathLike[str], storage_options: StorageOptions = NO_OPTIONS) -> PretokenCounts:
        """Return the sum of the counts in files, or in objects of stores.

        Raise MissingInput or BadCounts with the faulty file, and BadArgument with two files that were counted
        differently.
        """
        counted = CountSet.of_files(paths, storage_options)
        with Workspace() as workspace:
            blocks = counted.blocks(workspace)
            return PretokenCounts(
                *collected(blocks, counted.most_distinct, counted.most_bytes), counted.facts
            )

    @staticmethod
    def from_mapping(counts: Mapping[bytes, int], facts: CountsFacts | None = None) -> PretokenCounts:
        """Return the counts of {pretoken: count}. Raise BadArgument for an invalid count."""
        counter = _core.PretokenCounter(None)
        add_mapping(counter, counts)
        return PretokenCounts(*counter.drain(), facts or CountsFacts())


def add_mapping(counter: _core.PretokenCounter, counts: Mapping[bytes, int]) -> None:
    """Add the counts of {pretoken: count} to the core's counter. Raise BadArgument for an invalid count."""
    weights = np.array(list(counts.values()) or [0])
    if weights.dtype.kind not in "iu" or weights.min() < 0:
        raise BadArgument("counts: must be integers from 0 to 2^64 - 1")
    ends = np.cumsum([len(pretoken) for pretoken in counts], dtype=np.uint64)
    counter.add(b"".join(counts), ends, weights[: len(counts)].astype(np.uint64))


class CountSet:
    """Counts in several parts, and the facts of their sum."""

    def __init__(self, parts: Sequence[PretokenCounts | CountsFile], facts: CountsFacts) -> None:
        self.parts = list(parts)
        self.facts = facts

    @staticmethod
    def of_files(
        paths: Iterable[str | os.PathLike[str]], storage_options: StorageOptions = NO_OPTIONS
    ) -> CountSet:
        """Open counts files or objects as one set. Raise BadArgument with two files that were counted differently."""
        files = [CountsFile(path, storage_options) for path in paths]
        return CountSet(files, merged_facts([(file.path, file.facts) for file in files]))

    def with_parts_of(self, other: CountSet, name: str, other_name: str) -> CountSet:
        """Return both sets as one. Raise BadArgument with the names if they were counted differently."""
        facts = merged_facts([(name, self.facts), (other_name, other.facts)])
        return CountSet([*self.parts, *other.parts], facts)

    @property
    def most_distinct(self) -> int:
        """Return an upper bound of the number of distinct pretokens: a pretoken counts once per part."""
        return sum(map(len, self.parts))

    @property
    def most_bytes(self) -> int:
        """Return an upper bound of the bytes of the distinct pretokens."""
        return sum(
            part.pretoken_bytes.nbytes if isinstance(part, PretokenCounts) else part.pretoken_bytes
            for part in self.parts
        )

    def blocks(
        self, workspace: Workspace | None = None, budget: MemoryBudget | None = None
    ) -> Iterator[Arrays]:
        """Return the sorted sum in blocks.

        workspace: for intermediate files; required for more than 64 parts.
        budget: limits the number of parts that are merged at once.

        Raise BadCounts if the sum is 2^63 or more.
        """
        return merge_parts(self.parts, workspace, budget)

    def check(self) -> None:
        """Read all files. Raise BadCounts for the first damaged one."""
        for part in self.parts:
            for _ in part.blocks():
                pass

    def save(
        self,
        path: str | os.PathLike[str],
        workspace: Workspace | None = None,
        budget: MemoryBudget | None = None,
        storage_options: StorageOptions = NO_OPTIONS,
    ) -> None:
        """Write the sum as one counts file or, at a URL, one object. It appears complete or not at all."""
        folder = None if workspace is None else workspace.folder
        blocks = self.parts[0].blocks() if len(self.parts) == 1 else self.blocks(workspace, budget)
        write_counts_file(path, blocks, self.facts, storage_options=storage_options, spool_folder=folder)

    def load(
        self,
        budget: MemoryBudget,
        workspace: Workspace,
        min_count: MinCount = 1,
        progress: Progress | None = None,
        vocab_size: int = 1 << 15,
    ) -> PretokenCounts:
        """Return the sum in memory, without the pretokens that occur less than `min_count` times.

        min_count: "fit" for the lowest count with which merging to `vocab_size` fits in memory for any text.
        progress: gets a note about the pretokens that were left out.

        Raise BadArgument if all pretokens are left out, and NotEnoughMemory if merging the others does not fit, or if
        "fit" would leave out nearly all text.
        """
        check_min_count(min_count)
        needed = training_bytes(self.most_distinct, self.most_bytes, vocab_size, at_most=True)
        fits = needed <= budget.free_bytes + self._held_bytes
        if fits and min_count in (1, "fit"):
            return self._collected(1, self.most_distinct, self.most_bytes, budget, workspace)
        if not fits and len(self.parts) > 1:  # a pretoken of several parts counts once in their sum
            merged = workspace.new_file()
            write_counts_file(merged, self.blocks(workspace, budget), self.facts, temporary=True)
            once = CountSet([CountsFile(merged)], self.facts)
            return once.load(budget, workspace, min_count, progress, vocab_size)
        lowest, distinct, pretoken_bytes = self._survey(budget, workspace, min_count, progress, vocab_size)
        return self._collected(lowest, distinct, pretoken_bytes, budget, workspace)

    @property
    def _held_bytes(self) -> int:
        """Return the bytes of the sum that are already in memory: all of a single part that was never spilled, or 0."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return only.memory_bytes if isinstance(only, PretokenCounts) else 0

    def _collected(
        self, lowest: int, distinct: int, pretoken_bytes: int, budget: MemoryBudget, workspace: Workspace
    ) -> PretokenCounts:
        """Load pretokens that occur at least `lowest` times. distinct, pretoken_bytes: upper bounds for the result."""
        only = self.parts[0] if len(self.parts) == 1 else None
        if lowest == 1 and isinstance(only, PretokenCounts):
            return only
        blocks = merge_parts(self.parts, workspace, budget, pretoken_bytes + 16 * distinct)
        if lowest > 1:
            blocks = (_at_least(block, lowest) for block in blocks)
        return PretokenCounts(*collected(blocks, distinct, pretoken_bytes), self.facts)

    def _survey(
        self,
        budget: MemoryBudget,
        workspace: Workspace,
        min_count: MinCount,
        progress: Progress | None,
        vocab_size: int,
    ) -> tuple[int, int, int]:
        """Return (lowest count to keep, number of pretokens kept, their bytes).

        Bin 0 of the histograms has the counts below the minimum, bin 1 the minimum itself, and the last bin all above.

        Raise NotEnoughMemory if leaving out rare pretokens does not help.
        """
        lowest = 1 if min_count == "fit" else min_count
        numbers, sizes, sums = (np.zeros(_BINS, np.int64) for _ in range(3))
        pairs = np.zeros(1 << 16, np.int64)  # of adjacent bytes, also across the ends of pretokens
        for text, ends, counts in self.blocks(workspace, budget):
            for start in range(0, len(text) - 1, 1 << 16):
                piece = text[start : start + (1 << 16) + 1].astype(np.uint16)
                pairs += np.bincount(piece[:-1] << np.uint16(8) | piece[1:], minlength=len(pairs))
            above = np.minimum(counts - np.uint64(lowest - 1), np.uint64(_BINS - 1))
            bins = np.where(counts < np.uint64(lowest), 0, above).astype(np.int64)
            np.add.at(numbers, bins, 1)
            np.add.at(sizes, bins, np.diff(ends, prepend=np.uint64(0)).astype(np.int64))
            np.add.at(sums, bins, counts.astype(np.int64))  # merge_parts checks for overflow
        kept, kept_bytes = (column[::-1].cumsum()[::-1] for column in (numbers, sizes))

        def needed(first: int, at_most: bool = True) -> int:
            """Return the additional memory for merging the pretokens of bin `first` and above."""
            held = self._held_bytes if first == lowest == 1 else 0  # leaving out pretokens copies the others
            size = int(kept[first]), int(kept_bytes[first])
            return training_bytes(*size, vocab_size, at_most, int(pairs.max())) - held

        free = budget.free_bytes
        fitting = next((first for first in range(1, _BINS - 1) if needed(first) <= free), _BINS - 1)
        helps = fitting > 1 and int(sums[:fitting].sum()) <= _MAX_LEFT_OUT * int(sums.sum())
        first = fitting if min_count == "fit" and helps else 1
        if needed(first, at_most=min_count == "fit") > free:
            distinct = int(kept[first])
            estimates = needed(first, at_most=False), needed(first)
            helps = helps and min_count != "fit"
            raise refused_training(distinct, *estimates, budget, ways_out(helps, distinct))
        lowest += first - 1
        left_out, every = int(numbers[:first].sum()), int(numbers.sum())
        if every and left_out == every:
            raise BadArgument(
                f"min_pretoken_count: leaves out all {every:,} distinct pretokens (got {lowest}). Lower it, or allow "
                "more memory."
            )
        if progress is not None and lowest > 1:
            share = 100 * int(sums[:first].sum()) / max(1, int(sums.sum()))
            progress.note(
                f"min_pretoken_count: left out {left_out:,} of {every:,} distinct pretokens, which occur less than "
                f"{lowest} times ({share:.3g} % of all occurrences)"
            )
        return lowest, int(kept[first]), int(kept_bytes[first])


def check_min_count(min_count: MinCount) -> None:
    """Raise BadArgument unless it is "fit" or an integer of at least 1."""
    if min_count == "fit":
        return
    check_whole("min_pretoken_count", min_count)
    if not 1 <= min_count < 2**63:
        raise BadArgument(
            f'min_pretoken_count: must be "fit", or at least 1 and below 2^63 (got {shown(min_count)})'
        )


def _at_least(block: Arrays, lowest: int) -> Arrays:
    """Return the pretokens of the block that occur at least `lowest` times."""
    pretoken_bytes, ends, counts = block
    kept = counts >= np.uint64(lowest)
    if kept.all():
        return block
    lengths = np.diff(ends, prepend=np.uint64(0))
    text = pretoken_bytes[np.repeat(kept, lengths.astype(np.int64))]
    return text, np.cumsum(lengths[kept], dtype=np.uint64), counts[kept]
