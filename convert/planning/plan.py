"""The corpus as text chunks, by arithmetic alone.

The sources lie end to end in one line of bytes; text chunk k is [k * C, (k + 1) * C) of that line and owns the
documents whose first byte lies in it. So a large file is many chunks, many small files are one, nothing need be read
to plan, and any chunk can be found without looking at another. C depends on the size of the corpus, never on the
number of workers. The dataset's bytes do not depend on C at all; finished shards do, so it is part of the plan.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from corpus.digest import BLOCK_BYTES  # chunks of whole blocks read no byte twice
from corpus.source_list import Piece, SourceList

MIB = 1 << 20
# Of text, where a chunk gives several shards, a task each: with 4 MiB a conversion of gz took 6 % more processor time,
# with 16 MiB 1 to 2 %. The second is for who names the size of text chunks.
USUAL_SHARD_BYTES = 16 * MIB
LEAST_SHARD_BYTES = 64 << 10


class TextChunk(NamedTuple):
    """The unit of work: what becomes one shard, or several where a packed source holds much text. [start, stop): its
    place in the line of all sources."""

    index: int  # type: ignore[assignment]  # in place of a tuple's method that nobody calls
    start: int
    stop: int

    @property
    def text_bytes(self) -> int:
        """The length of the chunk in bytes; summed over all chunks it is the size of the corpus."""
        return self.stop - self.start


class ShardId(NamedTuple):
    """The `number`-th shard of a text chunk, from 0: where packed sources hold much text a chunk gives several."""

    chunk_index: int
    number: int = 0


class Plan(NamedTuple):
    """The sources and how long a text chunk is; chunks and their pieces are made when they are asked for."""

    sources: SourceList
    chunk_bytes: int
    source_starts: array[int]  # where each source starts in the line of all, and at last the total
    compressed_count: int  # of the files that nobody can begin in their middle
    # Behind so much text of packed sources a text chunk's shard ends and its next begins, whole documents each.
    shard_text_bytes: int

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

    def is_packed(self, chunk: TextChunk) -> bool:
        """Whether the chunk may hold many times its size of text, and so give several shards."""
        if not any(kind.is_decoded for kind in self.sources.kinds):
            return False
        return any(self._is_packed_piece(piece) for piece in self.pieces(chunk))

    def _is_packed_piece(self, piece: Piece) -> bool:
        kind = self.sources[piece.source_index].kind
        return kind.is_decoded and (kind.is_divisible or piece.start == 0)

    def is_compressed(self, chunk: TextChunk) -> bool:
        """Whether the chunk has all of a file to read that nobody can begin in its middle, a compressed one mostly."""
        return self.compressed_count > 0 and any(
            piece.start == 0 and not self.sources[piece.source_index].kind.is_divisible
            for piece in self.pieces(chunk)
        )

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

    def blocks(self, chunk: TextChunk) -> Iterator[tuple[int, int]]:
        """(source, block) of the blocks that begin in a text chunk, in order: those that its worker hashes."""
        for source_index, start, stop in self.pieces(chunk):
            if self.sources.is_remote(source_index):
                continue  # the version of an object says if its bytes are others
            for block in range(-(-start // BLOCK_BYTES), -(-stop // BLOCK_BYTES)):
                yield source_index, block

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


def make_plan(sources: SourceList, chunk_bytes: int | None = None) -> Plan:
    """The plan for `sources`; chunk_bytes None takes `default_chunk_bytes` of their total."""
    starts = sources.starts()
    compressed = sum(count for kind, (count, _) in sources.by_kind().items() if not kind.is_divisible)
    if chunk_bytes:
        return Plan(sources, chunk_bytes, starts, compressed, max(chunk_bytes, LEAST_SHARD_BYTES))
    usual = default_chunk_bytes(starts[-1])
    return Plan(sources, usual, starts, compressed, max(usual, USUAL_SHARD_BYTES))


def default_chunk_bytes(total_bytes: int) -> int:
    """A 64th of the corpus in whole blocks, from 4 to 32 MiB: 64 MB -> 4 MiB, 12 GB -> 32 MiB.

    64 chunks keep a few dozen workers busy to the end. Under 4 MiB the 0.5 ms a task costs would show against the
    10 ms of its encoding. A worker holds the text, its ids and their narrow copy: 200 MB for 32 MiB of usual text, and
    under the 350 MB a worker may take for a token a byte; 64 MiB took 430 MB and were no faster.
    """
    blocks = -(-total_bytes // (64 * BLOCK_BYTES))
    return min(max(blocks, 1), 8) * BLOCK_BYTES
