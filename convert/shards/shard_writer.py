"""Writing a shard while its text is encoded. Memory holds the starts of its documents and a small buffer."""

from __future__ import annotations

import os
from array import array
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bpe.end_tokens import NO_ENDS, EndTokens, put_around
from convert import _core
from convert.errors import BrokenInvariant, naming
from convert.planning.plan import ShardId
from convert.shards.intake_counts import LONGEST_COUNT
from convert.shards.shard import (
    BLOCK_BYTES,
    NOT_TRAINED,
    REST,
    TRAIN,
    ShardRecord,
    SourceCounts,
    SplitCounts,
    digest_of,
    padding_bytes,
)
from tokenmill.inputs.buffers import thread_buffer

FIRST_IDS = 24
BUFFER_BYTES = 128 << 10
MOVED_BYTES = 4 << 20


class ShardWriter:
    """One attempt at a shard. Use it as a context manager: without `finish` its files are deleted.

    max_token_id: of the tokenizer; a higher ID raises BrokenInvariant.
    ends: tokens to add around each document that has tokens.
    has_mask: whether bit 31 of an ID marks tokens that are not trained; tokens before a document are not.

    Splits: 0 is train, 1 is validation. OSErrors name the file.
    """

    def __init__(
        self,
        folder: Path,
        shard: ShardId,
        max_token_id: int,
        ends: EndTokens = NO_ENDS,
        has_mask: bool = False,
    ) -> None:
        self._shard, self._max_token_id, self._has_mask = shard, max_token_id, has_mask
        front, back = (np.array(ids, dtype=np.uint32) for ids in (ends.front_ids, ends.back_ids))
        self._front, self._back = front | NOT_TRAINED if has_mask else front, back
        self.name = f"{shard.chunk_index}.{shard.number}-{os.urandom(8).hex()}"
        self._paths = [folder / (self.name + suffix) for suffix in (TRAIN, REST)]
        self._files: list[BinaryIO] = []  # open ones, by split
        self._starts = [array("Q"), array("Q")]
        self._counts = [SplitCounts(), SplitCounts()]
        self.longest: list[int] = []  # lengths of the longest sequences, in tokens
        self.first_ids: list[int] = []  # of the first sequence of train
        self._sources: list[SourceCounts] = []
        self._source_index = -1
        self._before_source = (0, 0, 0, 0)
        # The unfinished long document: the split that was guessed, its first byte in the file, counts, first IDs.
        self._guess: int | None = None
        self._mark = 0
        self._open = SplitCounts()
        self._open_ids: list[int] = []
        self._is_finished = False

    def __enter__(self) -> ShardWriter:
        for path in self._paths:
            self._files.append(path.open("x+b", buffering=BUFFER_BYTES))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for path, file in zip(self._paths, self._files, strict=True):
            with suppress(OSError):  # a full disk rejects the buffered bytes
                file.close()
            if not self._is_finished:
                path.unlink(missing_ok=True)

    def begin_source(self, source_index: int) -> None:
        """Count the following documents for a source."""
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
        has_ends: bool = False,
    ) -> None:
        """Add whole documents in order. The arrays are copied.

        tokens, offsets: as in `bpe.Ragged`; documents may be empty.
        validation: bool[documents].
        has_ends: the documents contain their end tokens.
        """
        front, back = (self._front[:0], self._back[:0]) if has_ends else (self._front, self._back)
        if max(len(front), len(back)) > 1:
            tokens, offsets, _ = put_around(tokens, offsets, front, back)
            front, back = front[:0], back[:0]
        ends = len(front) + len(back)
        words = thread_buffer("words", len(tokens) + len(validation) * ends, np.uint32)
        starts = thread_buffer("starts", len(validation), np.uint64)
        stats = _core.partition_by_split(
            tokens,
            offsets,
            validation,
            (self._counts[0].tokens, self._counts[1].tokens),
            words,
            starts,
            int(front[0]) if len(front) else None,
            int(back[0]) if len(back) else None,
            self._has_mask,
        )
        lengths = np.diff(offsets)
        self._note_lengths(lengths[lengths > 0] + np.uint64(ends))
        held_out = int(np.count_nonzero(validation))
        documents = (len(validation) - held_out, held_out)
        for split, (count, sequences, not_trained, highest) in enumerate(stats):
            own_starts = starts[:sequences]
            if split == 0 and sequences and not self.first_ids:
                first = int(own_starts[1] - own_starts[0]) if sequences > 1 else count
                stored = words[: min(first, FIRST_IDS)]
                self.first_ids = (
                    (stored & ~NOT_TRAINED if self._has_mask else stored) >> np.uint32(1)
                ).tolist()
            self._write(split, words[:count])
            self._starts[split].frombytes(own_starts.tobytes())
            empty = documents[split] - sequences
            self._count(split, SplitCounts(documents[split], empty, sequences, count, highest, not_trained))
            words, starts = words[count:], starts[sequences:]

    def extend(self, tokens: NDArray[np.uint32], guess: int = 0) -> None:
        """Add the next tokens of a long document. guess: the split that it most likely belongs to."""
        if not len(tokens):
            return
        is_first = self._guess is None
        if is_first:
            self._guess, self._mark, self._open_ids = guess, self._files[guess].tell(), []
            tokens = np.concatenate([self._front, tokens])
        self._append(tokens, is_first)

    def end_document(self, split: int) -> None:
        """End the document of the last calls of `extend`. It belongs to this split; without tokens it is empty."""
        if self._guess is None:
            self._count(split, SplitCounts(documents=1, empty=1))
            return
        self._append(self._back, is_first=False)
        if self._guess != split:
            file = self._files[self._guess]
            with naming(self._paths[self._guess]):
                file.seek(self._mark)
                while data := file.read(MOVED_BYTES):
                    self._files[split].write(data)
            self._cut()
        self._starts[split].append(self._counts[split].tokens)
        self._note_lengths(np.array([self._open.tokens], dtype=np.uint64))
        if split == 0 and not self.first_ids:
            self.first_ids = self._open_ids
        self._count(split, self._open._replace(documents=1, sequences=1))
        self._guess, self._open = None, SplitCounts()

    def drop_document(self) -> None:
        """Forget the document of the last calls of `extend`."""
        if self._guess is not None:
            self._cut()
        self._guess, self._open = None, SplitCounts()

    def finish(self) -> ShardRecord:
        """Complete the files and return the record, without the facts about the chunk."""
        if self._guess is not None:
            raise BrokenInvariant("finish() was called before end_document()")
        self.begin_source(-1)
        train, validation = self._counts
        self._write(1, np.zeros(padding_bytes(validation.tokens), dtype=np.uint8))
        for starts in self._starts:
            self._write(1, np.asarray(starts, dtype=np.uint64))
        first, second = map(self._complete, self._paths, self._files)
        self._is_finished = True
        return ShardRecord(self._shard, self.name, train, validation, (first, second), tuple(self._sources))

    def _complete(self, path: Path, file: BinaryIO) -> bytes:
        """Close a file and return the digests of its blocks. An empty file is removed."""
        digests = bytearray()
        with naming(path):
            file.seek(0)
            while block := file.read(BLOCK_BYTES):
                digests += digest_of(block)
            file.close()
        if not digests:
            path.unlink()
        return bytes(digests)

    def _write(self, split: int, values: NDArray[Any]) -> None:
        with naming(self._paths[split]):
            self._files[split].write(values.data)

    def _append(self, tokens: NDArray[np.uint32], is_first: bool) -> None:
        """Append tokens of a long document, which never has a loss mask."""
        assert self._guess is not None
        words = tokens << np.uint32(1)
        if is_first:
            words[0] |= np.uint32(1)
        self._open_ids += tokens[: FIRST_IDS - len(self._open_ids)].tolist()
        self._write(self._guess, words)
        highest = int(tokens.max(initial=0))
        self._open = self._open.plus(SplitCounts(tokens=len(tokens), max_token_id=highest))

    def _cut(self) -> None:
        """Remove the unfinished document from its file."""
        assert self._guess is not None
        file = self._files[self._guess]
        with naming(self._paths[self._guess]):
            file.seek(self._mark)
            file.truncate()

    def _count(self, split: int, more: SplitCounts) -> None:
        if more.max_token_id > self._max_token_id:
            raise BrokenInvariant(
                f"the encoder returned ID {more.max_token_id}, above the tokenizer's highest ID {self._max_token_id}"
            )
        self._counts[split] = self._counts[split].plus(more)

    def _note_lengths(self, lengths: NDArray[np.uint64]) -> None:
        top = (
            np.partition(lengths, -LONGEST_COUNT)[-LONGEST_COUNT:]
            if len(lengths) > LONGEST_COUNT
            else lengths
        )
        self.longest = sorted(self.longest + top.tolist(), reverse=True)[:LONGEST_COUNT]
