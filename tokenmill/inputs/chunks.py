"""The corpus as text chunks, by arithmetic alone.

The sources lie end to end in one line of bytes; text chunk k is [k * C, (k + 1) * C) of that line and owns the
documents whose first byte lies in it. So a large file is many chunks, many small files are one, nothing need be read
to plan, and any chunk can be found without looking at another.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tokenmill.inputs.source_list import Piece, SourceList

_MOST_LANES = 8


class TextChunk(NamedTuple):
    """The unit of work. [start, stop): its place in the line of all sources."""

    index: int  # type: ignore[assignment]  # in place of a tuple's method that nobody calls
    start: int
    stop: int

    @property
    def text_bytes(self) -> int:
        """The length of the chunk in bytes; summed over all chunks it is the size of the corpus."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Chunks:
    """The sources and how long a text chunk is; chunks and their pieces are made when they are asked for."""

    sources: SourceList
    chunk_bytes: int
    source_starts: array[int]  # where each source starts in the line of all, and at last the total
    compressed_count: int  # of the files that nobody can begin in their middle

    @property
    def total_bytes(self) -> int:
        """The size of the corpus."""
        return self.source_starts[-1]

    @property
    def chunk_count(self) -> int:
        """How many text chunks there are, none for an empty corpus."""
        return -(-self.total_bytes // self.chunk_bytes)

    def chunk(self, index: int) -> TextChunk:
        """Text chunk `index`."""
        start = index * self.chunk_bytes
        return TextChunk(index, start, min(start + self.chunk_bytes, self.total_bytes))

    def chunks(self) -> Iterator[TextChunk]:
        """All text chunks in order."""
        return map(self.chunk, range(self.chunk_count))

    def source_at(self, place: int) -> int:
        """The number of the source that has the byte at `place` in the line of all; O(log sources)."""
        return bisect_right(self.source_starts, place) - 1

    def pieces(self, chunk: TextChunk) -> Iterator[Piece]:
        """The pieces of a text chunk in order, none empty."""
        starts = self.source_starts
        place, source_index = chunk.start, self.source_at(chunk.start)
        while place < chunk.stop:
            source_start = starts[source_index]
            stop = min(starts[source_index + 1], chunk.stop)
            if place < stop:
                yield Piece(source_index, place - source_start, stop - source_start)
                place = stop
            source_index += 1

    def work_bytes(self, chunk: TextChunk) -> int:
        """How many bytes the chunk's tasks read, about. Summed over all chunks it is the size of the corpus."""
        if all(kind.is_divisible for kind in self.sources.kinds):
            return chunk.text_bytes
        return sum(map(self.piece_work_bytes, self.pieces(chunk)))

    def piece_work_bytes(self, piece: Piece) -> int:
        """The same of a piece: of a compressed file all or none, as it begins there or not."""
        source = self.sources[piece.source_index]
        if source.kind.is_divisible:
            return piece.stop - piece.start
        return source.size_bytes if piece.start == 0 else 0

    def is_compressed(self, chunk: TextChunk) -> bool:
        """Whether the chunk has all of a file to read that nobody can begin in its middle, a compressed one mostly."""
        return self.compressed_count > 0 and any(
            piece.start == 0 and not self.sources[piece.source_index].kind.is_divisible
            for piece in self.pieces(chunk)
        )

    def lane_count(self, chunk: TextChunk, worker_count: int) -> int:
        """How many workers share a chunk: each of n reads all that is compressed in it, and works on every n-th part.

        Half of them, shared out over the compressed files, for they all decompress.
        """
        if not self.is_compressed(chunk):
            return 1
        return min(max(worker_count // (2 * self.compressed_count), 1), _MOST_LANES)

    def describe(self, chunk: TextChunk) -> str:
        """For errors: "text chunk 3 (en.txt, bytes 12582912 to 16777216)"."""
        first, last = self.source_at(chunk.start), self.source_at(chunk.stop - 1)
        first_start, last_start = self.source_starts[first], self.source_starts[last]
        stop = min(chunk.stop, self.source_starts[first + 1]) - first_start
        where = f"{self.sources[first].shown}, bytes {chunk.start - first_start} to {stop}"
        if last != first:
            start = max(chunk.start - last_start, 0)
            where += f" up to {self.sources[last].shown}, bytes {start} to {chunk.stop - last_start}"
        return f"text chunk {chunk.index} ({where})"


def compressed_count(sources: SourceList) -> int:
    """How many of the sources nobody can begin in their middle."""
    return sum(count for kind, (count, _) in sources.by_kind().items() if not kind.is_divisible)
