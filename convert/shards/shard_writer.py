"""Writing a shard while its text is encoded: items go to the files as they come, so a shard needs no memory.

Much at once is written at once, from a buffer that is used again; little waits until there are FLUSH_BYTES of it. The
parts that have not so many at the end lie in one file together. All files are this attempt's own
(convert/shards/shard_files.py).
Which split a document in pieces falls in is known when it ends. Its ids go where they most likely belong; if they were
wrong there, they move, which costs one more copy.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe.end_tokens import NO_ENDS, EndTokens, put_around
from convert import _core
from convert.errors import BrokenInvariant, naming
from convert.planning.plan import ShardId
from convert.shards.part_writer import PartWriter
from convert.shards.shard import NOT_TRAINED, NOTHING, SPLITS, ShardRecord, SourceCounts, SplitCounts
from convert.shards.shard_files import attempt_names
from flat_tokens.storage.files import write_all
from tokenmill.inputs.buffers import thread_buffer

LONGEST_COUNT = 3
FIRST_IDS = 24
INLINE_BYTES = 1024  # of starts that go with the record


class ShardWriter:
    """One attempt at a shard, open as a context; without `finish` nothing stays of it.

    dtype: of the ids, uint16 or uint32. largest_id: of the tokenizer; a higher one is a bug and raises BrokenInvariant.
    ends: ids around each document that has ids. spares: the names of files in `folder` to write over; those that are
    used are taken out, another attempt may have taken them first. has_places: whether it is given where documents begin
    in their source, and keeps it. has_mask: whether ids have NOT_TRAINED (convert/shards/shard.py), which those in
    front of documents get; dtype is uint32 then. Splits: 0 train, 1 validation. OSError names the file. Up to 20 MiB of
    memory.
    """

    def __init__(
        self,
        folder: Path,
        shard: ShardId,
        dtype: np.dtype[Any],
        largest_id: int,
        ends: EndTokens = NO_ENDS,
        spares: list[str] | None = None,
        has_places: bool = False,
        has_mask: bool = False,
    ) -> None:
        self._shard, self._dtype = shard, dtype
        self.has_places, self.has_mask = has_places, has_mask
        front, back = (np.array(ids, dtype=np.uint32) for ids in (ends.front_ids, ends.back_ids))
        self._front, self._back = front | NOT_TRAINED if has_mask else front, back
        self._largest_id = largest_id
        self.folder = folder
        *names, self._small = attempt_names(shard)
        spares = [] if spares is None else spares
        self._parts = [PartWriter(folder, name, spares) for name in names]
        self._ids, self._starts, self._places = self._parts[:2], self._parts[2:4], self._parts[4:]
        self._counts = [NOTHING, NOTHING]  # of each split
        # Of the sequences so far, up to LONGEST_COUNT lengths in tokens, falling.
        self.longest: list[int] = []
        self.first_ids: list[int] = []  # with which the first sequence of train begins
        self._open_first: list[int] = []
        self._sources: list[SourceCounts] = []
        self._source_index = -1  # of what is added
        self._before_source = (0, 0, 0, 0)  # sequences and tokens that were there when it began
        self._guess: int | None = None  # the split in which the document lies that has not ended
        self._open = NOTHING  # of that document

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, *_: object) -> None:
        for part in self._parts:
            part.discard()

    def begin_source(self, source_index: int) -> None:
        """What is added from now on is of this source."""
        if source_index == self._source_index:
            return
        train, validation = self._counts
        now = (train.sequences, train.tokens, validation.sequences, validation.tokens)
        if now != self._before_source:
            own = (count - before for count, before in zip(now, self._before_source, strict=True))
            self._sources.append(SourceCounts(self._source_index, *own))
        self._source_index, self._before_source = source_index, now

    def add(
        self,
        tokens: NDArray[np.uint32],
        offsets: NDArray[np.uint64],
        validation: NDArray[np.bool_],
        places: NDArray[np.uint64] | None = None,
        has_ends: bool = False,
    ) -> None:
        """Add whole documents, each to the split it belongs to, in order. Copies.

        tokens, offsets: as `bpe.Ragged`, empty documents too; validation: bool[documents]; places: uint64[documents],
        where each begins in its source. has_ends: whether they need no tokens around them.
        """
        if self._guess is not None:
            raise BrokenInvariant("add() was called before end_document()")
        documents = len(validation)
        front, back = (self._front[:0], self._back[:0]) if has_ends else (self._front, self._back)
        if len(front) > 1 or len(back) > 1:
            tokens, offsets, _ = put_around(tokens, offsets, front, back)
            front, back = front[:0], back[:0]
        end_count = len(front) + len(back)
        ids = thread_buffer("narrow ids", len(tokens) + documents * end_count, self._dtype)
        starts = thread_buffer("starts", documents, np.uint64)
        before = (self._counts[0].tokens, self._counts[1].tokens)
        stats = _core.partition_by_split(
            tokens,
            offsets,
            validation,
            before,
            ids,
            starts,
            int(front[0]) if len(front) else None,
            int(back[0]) if len(back) else None,
        )
        self._see_lengths(max(stats[0][2], stats[1][2]), offsets, end_count)
        held_out = int(np.count_nonzero(validation))
        for split, (count, sequences, _, highest) in enumerate(stats):
            self._require_known(highest)
            own_ids, own_starts = ids[:count], starts[:sequences]
            if split == 0 and sequences and not self.first_ids:
                first = int(own_starts[1] - own_starts[0]) if sequences > 1 else count
                self.first_ids = (own_ids[: min(FIRST_IDS, first)] & ~NOT_TRAINED).tolist()
            self._ids[split].add(own_ids)
            self._starts[split].add(own_starts)
            taken = held_out if split else documents - held_out
            not_trained = self._count_not_trained(own_ids)
            self._count(split, SplitCounts(taken, taken - sequences, sequences, count, highest, not_trained))
            ids, starts = ids[count:], starts[sequences:]
        if self.has_places:
            if places is None or len(places) != documents:
                raise BrokenInvariant(
                    f"{documents} documents, but {0 if places is None else len(places)} source offsets"
                )
            is_sequence = offsets[1:] > offsets[:-1]
            for part, is_own in zip(self._places, (~validation, validation), strict=True):
                part.add(places[is_sequence & is_own])

    def extend(self, tokens: NDArray[np.uint32], guess: int = 0) -> None:
        """Add the next ids of a document that comes in pieces and most likely falls in the split `guess`. Copies."""
        if self._guess is None:
            if not len(tokens):
                return
            self._guess = guess
            self._open_first = []
            self._ids[guess].mark()
            self._extend(self._front)
        self._extend(tokens)

    def end_document(self, split: int, place: int = 0) -> None:
        """The document of the pieces since the last one ends and belongs to this split; without ids it is empty. place:
        where it begins in its source."""
        if self._guess is not None:
            self._extend(self._back)
        if self._guess not in (None, split):
            self._ids[1 - split].move_marked(self._ids[split])
        tokens = self._open.tokens
        if split == 0 and tokens and not self.first_ids:
            self.first_ids = self._open_first
        if tokens:
            self._see_lengths(tokens, np.array([0, tokens], dtype=np.uint64), 0)
            self._starts[split].add(np.array([self._counts[split].tokens], dtype=np.uint64))
            if self.has_places:
                self._places[split].add(np.array([place], dtype=np.uint64))
        self._count(split, self._open._replace(documents=1, empty=int(not tokens), sequences=int(tokens > 0)))
        self._guess, self._open = None, NOTHING

    def drop_document(self) -> None:
        """The document of the pieces since the last one is a bad record after all: nothing of it counts."""
        if self._guess is not None:
            self._ids[self._guess].drop_marked()
        self._guess, self._open = None, NOTHING

    def finish(self) -> ShardRecord:
        """Complete the files; the record, but for what is not in them."""
        if self._guess is not None:
            raise BrokenInvariant("finish() was called before end_document()")
        self.begin_source(-1)
        small = [part.take_small() for part in self._parts]
        inline = [b""] * len(small)
        for index in range(len(SPLITS), len(small)):
            if len(small[index]) <= INLINE_BYTES:
                inline[index], small[index] = small[index], b""
        if any(small):
            path = self.folder / self._small
            with naming(path):
                write_all(path, b"".join(small), os.O_EXCL)
        places, offset = [], 0
        for part, data in zip(self._parts, small, strict=True):
            places.append((self._small, offset) if data else part.finish())
            offset += len(data)
        train, validation = self._counts
        return ShardRecord(
            self._shard,
            self._dtype.itemsize,
            tuple(part.digests() for part in self._parts),
            train,
            validation,
            sources=tuple(self._sources),
            places=tuple(places),
            inline=tuple(inline),
        )

    def _extend(self, tokens: NDArray[np.uint32]) -> None:
        assert self._guess is not None
        if len(self._open_first) < FIRST_IDS:
            self._open_first += (tokens[: FIRST_IDS - len(self._open_first)] & ~NOT_TRAINED).tolist()
        highest = int((tokens & ~NOT_TRAINED).max(initial=0))
        self._require_known(highest)
        not_trained = self._count_not_trained(tokens)
        self._open = self._open.plus(SplitCounts(0, 0, 0, len(tokens), highest, not_trained))
        self._ids[self._guess].add(tokens.astype(self._dtype, copy=False))

    def _count(self, split: int, more: SplitCounts) -> None:
        self._counts[split] = self._counts[split].plus(more)

    def _count_not_trained(self, ids: NDArray[Any]) -> int:
        return int(np.count_nonzero(ids & NOT_TRAINED)) if self.has_mask else 0

    def _require_known(self, highest: int) -> None:
        if highest > self._largest_id:
            raise BrokenInvariant(
                f"the encoder returned ID {highest}, above the tokenizer's highest ID {self._largest_id}"
            )

    def _see_lengths(self, longest: int, offsets: NDArray[np.uint64], end_count: int) -> None:
        """Of most documents it is enough to know the longest: it is not among the LONGEST_COUNT of the shard."""
        if longest and (len(self.longest) < LONGEST_COUNT or longest > self.longest[-1]):
            lengths = np.diff(offsets)
            top = lengths if len(lengths) <= LONGEST_COUNT else np.partition(lengths, -LONGEST_COUNT)
            found = [length + end_count for length in top[-LONGEST_COUNT:].tolist() if length]
            self.longest = sorted(self.longest + found, reverse=True)[:LONGEST_COUNT]
