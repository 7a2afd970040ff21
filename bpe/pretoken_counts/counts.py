"""Counted pretokens in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.errors import BadArgument
from bpe.pretoken_counts.count_sums import exact_sum
from bpe.pretoken_counts.counts_facts import Arrays, CountsFacts, merged_facts
from bpe.pretoken_counts.counts_file import CountsFile, cut_in_blocks, write_counts_file
from bpe.pretoken_counts.merging import collected, merge_parts
from bpe.pretoken_counts.workspace import Workspace
from tokenmill.inputs.sizes import counted
from tokenmill.stores import NO_OPTIONS, StorageOptions


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
        files = [CountsFile(path, storage_options) for path in paths]
        with Workspace() as workspace:
            distinct = sum(map(len, files))
            pretoken_bytes = sum(file.pretoken_bytes for file in files)
            facts = merged_facts([(file.path, file.facts) for file in files])
            return PretokenCounts(*collected(merge_parts(files, workspace), distinct, pretoken_bytes), facts)

    @staticmethod
    def from_mapping(counts: Mapping[bytes, int], facts: CountsFacts | None = None) -> PretokenCounts:
        """Return the counts of {pretoken: count}. Raise BadArgument for an invalid count."""
        counter = _core.PretokenCounter(None)
        add_mapping(counter, counts)
        return PretokenCounts(*counter.items(), facts or CountsFacts())


def add_mapping(counter: _core.PretokenCounter, counts: Mapping[bytes, int]) -> None:
    """Add the counts of {pretoken: count} to the core's counter. Raise BadArgument for an invalid count."""
    weights = np.array(list(counts.values()) or [0])
    if weights.dtype.kind not in "iu" or weights.min() < 0:
        raise BadArgument("counts: must be integers from 0 to 2^64 - 1")
    ends = np.cumsum([len(pretoken) for pretoken in counts], dtype=np.uint64)
    counter.add(b"".join(counts), ends, weights[: len(counts)].astype(np.uint64))
