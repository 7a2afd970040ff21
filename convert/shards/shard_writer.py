"""Writing a shard while its text is encoded. Memory holds the starts of its documents and a small buffer."""

from __future__ import annotations

from array import array
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe.end_tokens import NO_ENDS, EndTokens, put_around
from convert import _core
from convert.errors import BrokenInvariant, naming
from convert.planning.plan import ShardId
from convert.shards.intake import ShardIntake
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
    shard_name,
)
from tokenmill.inputs.buffers import thread_buffer

FIRST_IDS = 24
BUFFER_BYTES = 128 << 10
MOVED_BYTES = 4 << 20


class ShardWriter:
    """Writes the files of a shard to `folder`. Call `close` at the end in any case.

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
        self._shard, self._max_token_id = shard, max_token_id
        self._mask = NOT_TRAINED if has_mask else np.uint32(0)
        self._front = np.array(ends.front_ids, dtype=np.uint32) | self._mask
        self._back = np.array(ends.back_ids, dtype=np.uint32)
        paths = (folder / (shard_name(shard) + suffix) for suffix in (TRAIN, REST))
        self._files = [path.open("x+b", buffering=BUFFER_BYTES) for path in paths]
        self._starts = [array("Q"), array("Q")]
        self._counts = [SplitCounts(), SplitCounts()]
        self._sources: list[SourceCounts] = []  # the counts at the beginning of each source
        # The unfinished long document: where it begins in the file of train, and its counts.
        self._mark: int | None = None
        self._open = SplitCounts()

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            with suppress(OSError):  # a full disk rejects the buffered bytes
                file.close()

    def begin_source(self, source_index: int) -> None:
        """Count the following documents for a source."""
        if not self._sources or self._sources[-1].source_index != source_index:
            train, validation = self._counts
            totals = (train.sequences, train.tokens, validation.sequences, validation.tokens)
            self._sources.append(SourceCounts(source_index, *totals))

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
        words = thread_buffer("words", len(tokens) + len(validation) * (len(front) + len(back)), np.uint32)
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
            bool(self._mask),
        )
        held_out = int(np.count_nonzero(validation))
        documents = (len(validation) - held_out, held_out)
        for split, (count, sequences, not_trained, highest) in enumerate(stats):
            self._write(split, words[:count])
            self._starts[split].frombytes(starts[:sequences].tobytes())
            empty = documents[split] - sequences
            self._count(split, SplitCounts(documents[split], empty, sequences, count, highest, not_trained))
            words, starts = words[count:], starts[sequences:]

    def extend(self, tokens: NDArray[np.uint32]) -> None:
        """Add the next tokens of a long document. Until its end it counts as train."""
        if not len(tokens):
            return
        if self._mark is None:
            self._mark = self._files[0].tell()
            self._append(np.concatenate([self._front, tokens]), first_flag=1)
        else:
            self._append(tokens)

    def end_document(self, split: int) -> None:
        """End the document of the last calls of `extend`. It belongs to this split; without tokens it is empty."""
        if self._mark is None:
            self._count(split, SplitCounts(documents=1, empty=1))
            return
        self._append(self._back)
        self._starts[split].append(self._counts[split].tokens)
        self._count(split, self._open._replace(documents=1, sequences=1))
        if split == 1:
            train, rest = self._files
            with naming(train.name):
                train.seek(self._mark)
                while data := train.read(MOVED_BYTES):
                    rest.write(data)
            self.drop_document()
        self._mark, self._open = None, SplitCounts()

    def drop_document(self) -> None:
        """Forget the document of the last calls of `extend`."""
        if self._mark is not None:
            with naming(self._files[0].name):
                self._files[0].seek(self._mark)
                self._files[0].truncate()
        self._mark, self._open = None, SplitCounts()

    def finish(self, intake: ShardIntake, is_last: bool, text_bytes: int) -> ShardRecord:
        """Complete the files and return the record, which has the other arguments. intake: of the shard's text."""
        self.begin_source(-1)
        added = np.diff([counts[1:] for counts in self._sources], axis=0).tolist()
        sources = tuple(
            SourceCounts(before.source_index, *counts)
            for before, counts in zip(self._sources, added, strict=False)
            if any(counts)
        )
        train, validation = self._counts
        starts = [np.asarray(own, dtype=np.uint64) for own in self._starts]
        lengths = [
            np.diff(own, append=np.uint64(counts.tokens))
            for own, counts in zip(starts, self._counts, strict=True)
        ]
        intake.longest = np.sort(np.concatenate(lengths))[: -LONGEST_COUNT - 1 : -1].tolist()
        if train.sequences:
            self._files[0].seek(0)
            first = self._files[0].read(4 * min(FIRST_IDS, int(lengths[0][0])))
            intake.first_ids = ((np.frombuffer(first, np.uint32) & ~self._mask) >> np.uint32(1)).tolist()
        self._write(1, np.zeros(padding_bytes(validation.tokens), dtype=np.uint8))
        for own in starts:
            self._write(1, own)
        digests, counts = (self._complete(0), self._complete(1)), intake.counts()
        return ShardRecord(self._shard, train, validation, digests, sources, counts, is_last, text_bytes)

    def _complete(self, split: int) -> bytes:
        """Close a file and return the digests of its blocks. An empty file is removed."""
        file, digests = self._files[split], bytearray()
        with naming(file.name):
            file.seek(0)
            while block := file.read(BLOCK_BYTES):
                digests += digest_of(block)
            file.close()
        if not digests:
            Path(file.name).unlink()
        return bytes(digests)

    def _write(self, split: int, values: NDArray[Any]) -> None:
        with naming(self._files[split].name):
            self._files[split].write(values.data)

    def _append(self, tokens: NDArray[np.uint32], first_flag: int = 0) -> None:
        """Append tokens of a long document."""
        ids, marks = tokens & ~self._mask, tokens & self._mask
        words = ids << np.uint32(1) | marks
        words[:1] |= np.uint32(first_flag)
        self._write(0, words)
        highest, not_trained = int(ids.max(initial=0)), int(np.count_nonzero(marks))
        more = SplitCounts(tokens=len(ids), max_token_id=highest, not_trained=not_trained)
        self._open = self._open.plus(more)

    def _count(self, split: int, more: SplitCounts) -> None:
        if more.max_token_id > self._max_token_id:
            raise BrokenInvariant(
                f"the encoder returned ID {more.max_token_id}, above the tokenizer's highest ID {self._max_token_id}"
            )
        self._counts[split] = self._counts[split].plus(more)
