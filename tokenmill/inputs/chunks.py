"""Text chunks: the corpus cut into units of work by arithmetic alone.

All sources, concatenated, are one range of bytes. Text chunk k is [k * C, (k + 1) * C) of that range and owns the
documents that begin in it. A large file is many chunks, and many small files are one chunk. Planning reads no file, and
any chunk can be found without looking at another.

    sources of 5 and 3 bytes, C = 4  ->  chunk 0: a[0:4]    chunk 1: a[4:5], b[0:3]
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tokenmill.inputs.source_list import Piece, SourceList


class TextChunk(NamedTuple):
    """Text chunk number `index`: [start, stop) of the concatenated sources."""

    index: int  # type: ignore[assignment]  # hides tuple.index
    start: int
    stop: int

    @property
    def text_bytes(self) -> int:
        """Length in bytes. The sum over all chunks is the size of the corpus."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Chunks:
    """The sources and their text chunks, which are computed on demand.

    source_starts: offset of each source in the concatenation, and last the total size (`SourceList.starts`).
    """

    sources: SourceList
    chunk_bytes: int
    source_starts: array[int]

    @property
    def total_bytes(self) -> int:
        """Size of the corpus."""
        return self.source_starts[-1]

    @property
    def chunk_count(self) -> int:
        """Number of text chunks, 0 for an empty corpus."""
        return -(-self.total_bytes // self.chunk_bytes)

    def chunk(self, index: int) -> TextChunk:
        """Text chunk `index`."""
        start = index * self.chunk_bytes
        return TextChunk(index, start, min(start + self.chunk_bytes, self.total_bytes))

    def chunks(self) -> Iterator[TextChunk]:
        """All text chunks in order."""
        return map(self.chunk, range(self.chunk_count))

    def source_at(self, offset: int) -> int:
        """Index of the source with the byte at an offset of the concatenation, in O(log sources)."""
        return bisect_right(self.source_starts, offset) - 1

    def pieces(self, chunk: TextChunk) -> Iterator[Piece]:
        """The pieces of a text chunk in order. None is empty."""
        offset, index = chunk.start, self.source_at(chunk.start)
        while offset < chunk.stop:
            start, stop = self.source_starts[index], min(self.source_starts[index + 1], chunk.stop)
            if offset < stop:
                yield Piece(index, offset - start, stop - start)
                offset = stop
            index += 1

    def work_bytes(self, chunk: TextChunk) -> int:
        """Bytes that the chunk's task reads, approximately. The sum over all chunks is the size of the corpus."""
        return sum(map(self.piece_work_bytes, self.pieces(chunk)))

    def piece_work_bytes(self, piece: Piece) -> int:
        """The same for a piece. A file that is not divisible belongs to the piece in which it begins."""
        source = self.sources[piece.source_index]
        if source.kind.is_divisible:
            return piece.stop - piece.start
        return source.size_bytes if piece.start == 0 else 0

    def describe(self, chunk: TextChunk) -> str:
        """Name of a chunk in errors: "text chunk 3 (en.txt, bytes 12582912 to 16777216)"."""
        pieces = list(self.pieces(chunk))
        first, last = pieces[0], pieces[-1]
        where = f"{self.sources[first.source_index].shown}, bytes {first.start} to {first.stop}"
        if last != first:
            where += f" up to {self.sources[last.source_index].shown}, bytes {last.start} to {last.stop}"
        return f"text chunk {chunk.index} ({where})"
