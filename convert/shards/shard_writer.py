"""Writes a shard while its text is encoded, with a small buffer per file."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe.end_tokens import NO_ENDS, EndTokens, put_around
from convert import _core
from convert.errors import BrokenInvariant, naming
from convert.planning.plan import ShardId
from convert.shards import shard as shard_format
from convert.shards.shard import (
    ARRAYS,
    NOT_TRAINED,
    QUARANTINE,
    SPLITS,
    IntakeCounts,
    ShardRecord,
    SourceCounts,
    SplitCounts,
    digest_of,
    file_name,
)
from tokenmill.inputs.buffers import thread_buffer

if TYPE_CHECKING:
    from typing_extensions import Buffer

FIRST_IDS = 24


class ShardWriter:
    """Writes the files of a shard to `folder`. Always call `close` at the end.

    max_token_id: highest ID of the tokenizer; a higher ID raises BrokenInvariant.
    ends: tokens to add around each document that has tokens.
    has_mask: whether bit 31 of an ID marks tokens that are not trained; tokens before a document are not.

    quarantine: the file of bad records.

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
        self._folder, self._shard, self._max_token_id = folder, shard, max_token_id
        self._mask = NOT_TRAINED if has_mask else np.uint32(0)
        self._front = np.array(ends.front_ids, dtype=np.uint32) | self._mask
        self._back = np.array(ends.back_ids, dtype=np.uint32)
        self._files = [
            [BlockFile(folder / file_name(shard, f"{split}.{array}")) for array in ARRAYS] for split in SPLITS
        ]
        self.quarantine = BlockFile(folder / file_name(shard, QUARANTINE))
        self._counts = [SplitCounts(), SplitCounts()]
        self._sources: list[SourceCounts] = []  # the counts at the beginning of each source
        self._long: IO[bytes] | None = None  # tokens of the unfinished long document
        self._long_counts = SplitCounts()

    def close(self) -> None:
        """Close the files."""
        for file in (*self._files[0], *self._files[1], self.quarantine):
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
            for file, values in zip(self._files[split], (words[:count], starts[:sequences]), strict=True):
                file.write(values.data)
            empty = documents[split] - sequences
            self._count(split, SplitCounts(documents[split], empty, sequences, count, highest, not_trained))
            words, starts = words[count:], starts[sequences:]

    def extend(self, tokens: NDArray[np.uint32]) -> None:
        """Add the next tokens of a long document."""
        if not len(tokens):
            return
        first_flag = 0
        if self._long is None:
            with naming(self._folder):
                self._long = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed by drop_document
            tokens, first_flag = np.concatenate([self._front, tokens]), 1
        self._append(tokens, first_flag)

    def end_document(self, split: int) -> None:
        """End the document of the last calls of `extend` and add it to a split. Without such calls it is empty."""
        if self._long is None:
            self._count(split, SplitCounts(documents=1, empty=1))
            return
        self._append(self._back)
        tokens, starts = self._files[split]
        starts.write(np.uint64(self._counts[split].tokens).data)
        self._count(split, self._long_counts._replace(documents=1, sequences=1))
        with naming(self._folder):
            self._long.seek(0)
        shutil.copyfileobj(self._long, tokens)
        self.drop_document()

    def drop_document(self) -> None:
        """Discard the document of the last calls of `extend`."""
        if self._long is not None:
            with suppress(OSError):  # a full disk rejects the buffered bytes
                self._long.close()
        self._long, self._long_counts = None, SplitCounts()

    def finish(self, counts: IntakeCounts, is_last: bool, text_bytes: int) -> ShardRecord:
        """Complete the files and return the record. counts: of the shard's text. Others: see `ShardRecord`."""
        self.begin_source(-1)
        added = np.diff([counts[1:] for counts in self._sources], axis=0).tolist()
        sources = tuple(
            SourceCounts(before.source_index, *counts)
            for before, counts in zip(self._sources, added, strict=False)
            if any(counts)
        )
        train, validation = self._counts
        digests = tuple(tuple(file.complete() for file in files) for files in self._files)
        quarantine = (self.quarantine.size, self.quarantine.complete())
        counts = replace(counts, first_ids=self._first_ids())
        return ShardRecord(
            self._shard, train, validation, digests, sources, counts, is_last, text_bytes, quarantine
        )

    def _first_ids(self) -> tuple[int, ...]:
        """Return the first IDs of the first sequence of train."""
        tokens = self._files[0][0]
        if not tokens.size:
            return ()
        with naming(tokens.path), tokens.path.open("rb") as file:
            words = np.frombuffer(file.read(4 * FIRST_IDS), np.uint32)
        starts = np.flatnonzero(words & np.uint32(1))
        first = words[: starts[1] if len(starts) > 1 else None] & ~self._mask
        return tuple((first >> np.uint32(1)).tolist())

    def _append(self, tokens: NDArray[np.uint32], first_flag: int = 0) -> None:
        """Append tokens of a long document."""
        assert self._long is not None
        ids, marks = tokens & ~self._mask, tokens & self._mask
        words = ids << np.uint32(1) | marks
        words[:1] |= np.uint32(first_flag)
        with naming(self._folder):
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


class BlockFile:
    """Writes a file in blocks of BLOCK_BYTES, and computes the digest of each block while it is in the CPU cache.

    A file without bytes is not made.

    size: bytes written.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, 0
        self._file: IO[bytes] | None = None
        self._block = memoryview(bytearray(shard_format.BLOCK_BYTES))
        self._filled = 0
        self._digests: list[str] = []

    def write(self, data: Buffer) -> None:
        """Append bytes."""
        remaining = memoryview(data).cast("B")
        self.size += len(remaining)
        while len(remaining):
            part = remaining[: len(self._block) - self._filled]
            self._block[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
            remaining = remaining[len(part) :]
            if self._filled == len(self._block):
                self._flush()

    def complete(self) -> str:
        """Close the file and return the digests of its blocks."""
        if self._filled:
            self._flush()
        with naming(self.path):
            if self._file is not None:
                self._file.close()
        return "".join(self._digests)

    def close(self) -> None:
        """Close the file, complete or not."""
        with suppress(OSError):  # a full disk rejects the buffered bytes
            if self._file is not None:
                self._file.close()

    def _flush(self) -> None:
        block, self._filled = self._block[: self._filled], 0
        self._digests.append(digest_of(block))
        with naming(self.path):
            self._file = self._file or self.path.open("xb")
            self._file.write(block)
