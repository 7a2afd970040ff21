"""Write a shard while its text is encoded. Memory holds the starts of its documents and a small buffer."""

from __future__ import annotations

from array import array
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe.end_tokens import NO_ENDS, EndTokens, put_around
from convert import _core
from convert.errors import BrokenInvariant, naming
from convert.planning.plan import ShardId
from convert.shards import shard as shard_format
from convert.shards.intake import ShardIntake
from convert.shards.shard import (
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

if TYPE_CHECKING:
    from typing_extensions import Buffer

FIRST_IDS = 24
COPIED_BYTES = 4 << 20


class ShardWriter:
    """Writes the files of a shard to `folder`. Always call `close` at the end.

    max_token_id: highest ID of the tokenizer; a higher ID raises BrokenInvariant.
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
        self._files = [_BlockFile(folder / (shard_name(shard) + suffix)) for suffix in (TRAIN, REST)]
        self._starts = [array("Q"), array("Q")]
        self._counts = [SplitCounts(), SplitCounts()]
        self._sources: list[SourceCounts] = []  # the counts at the beginning of each source
        self._long_path = folder / (shard_name(shard) + ".long")
        self._long: IO[bytes] | None = None  # tokens of the unfinished long document
        self._long_counts = SplitCounts()

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()
        self.drop_document()

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
            self._files[split].write(words[:count].data)
            self._starts[split].frombytes(starts[:sequences].tobytes())
            empty = documents[split] - sequences
            self._count(split, SplitCounts(documents[split], empty, sequences, count, highest, not_trained))
            words, starts = words[count:], starts[sequences:]

    def extend(self, tokens: NDArray[np.uint32]) -> None:
        """Add the next tokens of a long document."""
        if not len(tokens):
            return
        if self._long is None:
            with naming(self._long_path):
                self._long = self._long_path.open("x+b")
            self._append(np.concatenate([self._front, tokens]), first_flag=1)
        else:
            self._append(tokens)

    def end_document(self, split: int) -> None:
        """End the document of the last calls of `extend` and add it to a split. Without such calls it is empty."""
        if self._long is None:
            self._count(split, SplitCounts(documents=1, empty=1))
            return
        self._append(self._back)
        self._starts[split].append(self._counts[split].tokens)
        self._count(split, self._long_counts._replace(documents=1, sequences=1))
        with naming(self._long_path):
            self._long.seek(0)
            while data := self._long.read(COPIED_BYTES):
                self._files[split].write(data)
        self.drop_document()

    def drop_document(self) -> None:
        """Discard the document of the last calls of `extend`."""
        if self._long is not None:
            with suppress(OSError):  # a full disk rejects the buffered bytes
                self._long.close()
            self._long_path.unlink(missing_ok=True)
        self._long, self._long_counts = None, SplitCounts()

    def finish(self, intake: ShardIntake, is_last: bool, text_bytes: int) -> ShardRecord:
        """Complete the files and return the record. intake: counts of the shard's text. Others: see `ShardRecord`."""
        self.begin_source(-1)
        added = np.diff([counts[1:] for counts in self._sources], axis=0).tolist()
        sources = tuple(
            SourceCounts(before.source_index, *counts)
            for before, counts in zip(self._sources, added, strict=False)
            if any(counts)
        )
        train, validation = self._counts
        self._files[1].write(bytes(padding_bytes(validation.tokens)))
        for starts in self._starts:
            self._files[1].write(starts)
        digests = self._files[0].complete(), self._files[1].complete()
        if train.sequences:
            count = min(FIRST_IDS, self._starts[0][1] if train.sequences > 1 else train.tokens)
            with naming(self._files[0].path), self._files[0].path.open("rb") as file:
                first = np.frombuffer(file.read(4 * count), np.uint32)
            intake.first_ids = ((first & ~self._mask) >> np.uint32(1)).tolist()
        counts = intake.counts()
        return ShardRecord(self._shard, train, validation, digests, sources, counts, is_last, text_bytes)

    def _append(self, tokens: NDArray[np.uint32], first_flag: int = 0) -> None:
        """Append tokens of a long document."""
        assert self._long is not None
        ids, marks = tokens & ~self._mask, tokens & self._mask
        words = ids << np.uint32(1) | marks
        words[:1] |= np.uint32(first_flag)
        with naming(self._long_path):
            self._long.write(words.data)
        highest, not_trained = int(ids.max(initial=0)), int(np.count_nonzero(marks))
        more = SplitCounts(tokens=len(ids), max_token_id=highest, not_trained=not_trained)
        self._long_counts = self._long_counts.plus(more)

    def _count(self, split: int, more: SplitCounts) -> None:
        if more.max_token_id > self._max_token_id:
            raise BrokenInvariant(
                f"the encoder returned ID {more.max_token_id}, above the tokenizer's highest ID {self._max_token_id}"
            )
        self._counts[split] = self._counts[split].plus(more)


class _BlockFile:
    """Writes a file in blocks of BLOCK_BYTES, and computes the digest of each block while it is in the CPU cache."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("xb")
        self._block = memoryview(bytearray(shard_format.BLOCK_BYTES))
        self._filled = 0
        self._digests = bytearray()

    def write(self, data: Buffer) -> None:
        """Append bytes."""
        remaining = memoryview(data).cast("B")
        while len(remaining):
            part = remaining[: len(self._block) - self._filled]
            self._block[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
            remaining = remaining[len(part) :]
            if self._filled == len(self._block):
                self._flush()

    def complete(self) -> bytes:
        """Close the file and return the digests of its blocks. An empty file is removed."""
        if self._filled:
            self._flush()
        with naming(self.path):
            self._file.close()
            if not self._digests:
                self.path.unlink()
        return bytes(self._digests)

    def close(self) -> None:
        """Close the file, complete or not."""
        with suppress(OSError):  # a full disk rejects the buffered bytes
            self._file.close()

    def _flush(self) -> None:
        block, self._filled = self._block[: self._filled], 0
        self._digests += digest_of(block)
        with naming(self.path):
            self._file.write(block)
