"""The text chunks of a conversion (tokenmill/inputs/chunks.py), and which of them give several shards.

Their length depends on the size of the corpus, never on the number of workers. The dataset's bytes do not depend on it
at all; finished shards do, so it is part of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tokenmill.inputs.chunks import Chunks
from tokenmill.inputs.chunks import TextChunk as TextChunk
from tokenmill.inputs.digest import BLOCK_BYTES  # chunks of whole blocks read no byte twice
from tokenmill.inputs.source_list import Piece, SourceList

MIB = 1 << 20
# Of text, where a chunk gives several shards, a task each: with 4 MiB a conversion of gz took 6 % more processor time,
# with 16 MiB 1 to 2 %. The second is for who names the size of text chunks.
USUAL_SHARD_BYTES = 16 * MIB
LEAST_SHARD_BYTES = 64 << 10


class ShardId(NamedTuple):
    """The `number`-th shard of a text chunk, from 0: where packed sources hold much text a chunk gives several."""

    chunk_index: int
    number: int = 0


@dataclass(frozen=True, slots=True)
class Plan(Chunks):
    """The text chunks. A chunk becomes one shard, or several where a packed source holds much text."""

    # Behind so much text of packed sources a text chunk's shard ends and its next begins, whole documents each.
    shard_text_bytes: int
    source_count: int  # without those that are left out

    def may_expand(self, chunk: TextChunk) -> bool:
        """Whether the chunk may hold many times its size of text, and so give several shards."""
        if not any(kind.is_decoded for kind in self.sources.kinds):
            return False
        return any(self._piece_may_expand(piece) for piece in self.pieces(chunk))

    def _piece_may_expand(self, piece: Piece) -> bool:
        kind = self.sources[piece.source_index].kind
        return kind.is_decoded and (kind.is_divisible or piece.start == 0)

    def blocks(self, chunk: TextChunk) -> Iterator[tuple[int, int]]:
        """(source, block) of the blocks that begin in a text chunk, in order: those that its worker hashes."""
        for source_index, start, stop in self.pieces(chunk):
            if self.sources[source_index].version:
                continue  # the version of an object says if its bytes are others
            for block in range(-(-start // BLOCK_BYTES), -(-stop // BLOCK_BYTES)):
                yield source_index, block


def make_plan(sources: SourceList, chunk_bytes: int | None = None) -> Plan:
    """The plan for `sources`; chunk_bytes None takes `default_chunk_bytes` of their total."""
    starts = sources.starts()
    source_count = len(sources) - sources.left_out()[0]
    if chunk_bytes:
        return Plan(sources, chunk_bytes, starts, max(chunk_bytes, LEAST_SHARD_BYTES), source_count)
    usual = default_chunk_bytes(starts[-1])
    return Plan(sources, usual, starts, max(usual, USUAL_SHARD_BYTES), source_count)


def default_chunk_bytes(total_bytes: int) -> int:
    """A 64th of the corpus in whole blocks, from 4 to 32 MiB: 64 MB -> 4 MiB, 12 GB -> 32 MiB.

    64 chunks keep a few dozen workers busy to the end. Under 4 MiB the 0.5 ms a task costs would show against the
    10 ms of its encoding. A worker holds the text, its ids and their narrow copy: 200 MB for 32 MiB of usual text, and
    under the 350 MB a worker may take for a token a byte; 64 MiB took 430 MB and were no faster.
    """
    blocks = -(-total_bytes // (64 * BLOCK_BYTES))
    return min(max(blocks, 1), 8) * BLOCK_BYTES
