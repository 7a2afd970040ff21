"""The text chunks of a conversion, which are its units of work.

Chunk boundaries depend on the sources alone. Temporary shards depend on them, so they are part of the plan; the
dataset's bytes do not.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import NamedTuple

from tokenmill.inputs.chunks import Chunks
from tokenmill.inputs.chunks import TextChunk as TextChunk
from tokenmill.inputs.source_list import SourceList

MIB = 1 << 20
CHUNK_BYTES = (4 * MIB, 32 * MIB)
# Decoded text per shard, with the default chunk size and with a given one. Smaller shards cost CPU time per task.
MIN_SHARD_BYTES = 16 * MIB
MIN_GIVEN_SHARD_BYTES = 64 << 10
# A compressed file of this size is one text chunk, which several workers can share.
LARGE_FILE_BYTES = 16 * MIB
UNPACKED_FORMATS = ("text", "jsonl")


class ShardId(NamedTuple):
    """Shard `number` of a text chunk, counted from 0. A chunk of decoded sources may give several shards."""

    chunk_index: int
    number: int = 0


@dataclass(frozen=True, slots=True)
class Plan(Chunks):
    """The text chunks of a corpus.

    chunk_starts: offset of each chunk in the concatenated sources.
    shard_text_bytes: a shard ends at the first document boundary after this much decoded text.
    """

    chunk_starts: array[int]
    shard_text_bytes: int

    @property
    def chunk_count(self) -> int:
        """The number of text chunks."""
        return len(self.chunk_starts)

    def chunk(self, index: int) -> TextChunk:
        """Return text chunk `index`."""
        is_last = index + 1 == len(self.chunk_starts)
        stop = self.total_bytes if is_last else self.chunk_starts[index + 1]
        return TextChunk(index, self.chunk_starts[index], stop)

    def share(self, task: tuple[int, int] | None) -> range:
        """Return the indexes of the text chunks of a task (index, count) of a job array; of all for None."""
        index, count = task or (0, 1)
        return range(index, self.chunk_count, count)

    def can_unpack(self, chunk: TextChunk) -> bool:
        """Return whether the chunk is one large compressed file of text or JSON Lines."""
        number = self.source_at(chunk.start)
        if chunk.text_bytes < LARGE_FILE_BYTES or self.source_starts[number + 1] != chunk.stop:
            return False
        kind = self.sources[number].kind
        return kind.compression != "none" and kind.format in UNPACKED_FORMATS


def make_plan(sources: SourceList, chunk_bytes: int | None = None) -> Plan:
    """Return the plan for some sources. chunk_bytes: text per chunk (default: `default_chunk_bytes`)."""
    starts = sources.starts()
    size = chunk_bytes or default_chunk_bytes(starts[-1])
    return Plan(
        sources,
        size,
        starts,
        _chunk_starts(sources, starts, size),
        max(size, MIN_GIVEN_SHARD_BYTES if chunk_bytes else MIN_SHARD_BYTES),
    )


def _chunk_starts(sources: SourceList, starts: array[int], chunk_bytes: int) -> array[int]:
    """Cut the corpus every chunk_bytes, and around each large file that cannot be divided."""
    found = array("q")
    start = 0
    if any(not kind.is_divisible for kind in sources.kinds):
        for number, source in enumerate(sources):
            if source.size_bytes >= LARGE_FILE_BYTES and not source.kind.is_divisible:
                found.extend(range(start, starts[number], chunk_bytes))
                found.append(starts[number])
                start = starts[number + 1]
    found.extend(range(start, starts[-1], chunk_bytes))
    return found


def default_chunk_bytes(total_bytes: int) -> int:
    """Return a 64th of the corpus in steps of 4 MiB, from 4 to 32 MiB: 64 MB -> 4 MiB, 12 GB -> 32 MiB.

    64 chunks keep a few dozen workers busy to the end. Smaller chunks would make the cost per task visible; larger ones
    would take more memory per worker and are no faster.
    """
    smallest, largest = CHUNK_BYTES
    steps = -(-total_bytes // (64 * smallest))
    return min(max(steps, 1) * smallest, largest)
