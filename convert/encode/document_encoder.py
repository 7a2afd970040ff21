"""Encodes documents into a shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.ragged import Ragged
from bpe.tokenizer import AllowedSpecial
from convert.encode.held_out import NO_ROWS, is_validation
from convert.encode.job import Clock, Job
from convert.encode.marked_text import MarkedText
from convert.errors import BrokenInvariant
from convert.shards.shard_writer import ShardWriter
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs._core import hash_documents, hash_ragged
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.buffers import thread_buffer
from tokenmill.inputs.documents import Reading
from tokenmill.inputs.text_documents import cut_between_characters

if TYPE_CHECKING:
    from typing_extensions import Buffer

# Longer documents are encoded in pieces, because their IDs take four times their size or more.
LONG_DOCUMENT_BYTES = 4 << 20
PIECE_BYTES = 1 << 20
Hashes = Callable[[], NDArray[np.uint64]]  # of the texts of documents, if they are needed


class DocumentEncoder:
    """Writes the tokens of good documents to a shard.

    threshold: for the split by hash (`is_validation`).
    """

    def __init__(self, job: Job, threshold: int, shard: ShardWriter, clock: Clock) -> None:
        self._job, self._tokenizer, self._marked_text = job, job.tokenizer, MarkedText(job.tokenizer)
        self._seed, self._threshold = job.options.seed, threshold
        self._shard, self._clock = shard, clock

    def text(self, reading: Reading, text: Buffer) -> int:
        """Add documents with separators between them, with special tokens. Return their number."""
        separator = self._job.separator
        documents = self._tokenizer.encode_documents(
            text, separator, threads=1, checked=True, out=_memory_for_ids(text)
        )
        self._add(reading, documents, lambda: hash_documents(text, separator, self._seed))
        return len(documents)

    def batch(self, reading: Reading, batch: Batch, with_special: bool) -> NDArray[np.int64]:
        """Add a batch. Return the rows without a loss mask, because the tokenizer changes their text.

        with_special: whether the text of a special token becomes that token.
        """
        allowed = "all" if with_special else self._tokenizer.non_special_added_tokens
        if batch.marks is not None:
            documents, kept, changed = self._marked_text.encode(batch, allowed, _memory_for_ids(batch.text))
            has_ends = self._job.options.template and batch.marks.of_chats
            self._add(reading, documents, lambda: self._hashes(kept), has_ends)
            return changed
        first = 0
        for row in np.flatnonzero(np.diff(batch.offsets) > LONG_DOCUMENT_BYTES).tolist():
            self._rows(reading, batch.rows(first, row), allowed)
            self._long_row(reading, batch.rows(row, row + 1), allowed)
            first = row + 1
        self._rows(reading, batch.rows(first, len(batch)), allowed)
        return NO_ROWS

    def _rows(self, reading: Reading, batch: Batch, allowed: AllowedSpecial) -> None:
        documents = self._tokenizer.encode_ragged(
            batch.text, batch.offsets, allowed_special=allowed, checked=True, out=_memory_for_ids(batch.text)
        )
        self._add(reading, documents, lambda: self._hashes(batch))

    def _long_row(self, reading: Reading, batch: Batch, allowed: AllowedSpecial) -> None:
        split = int(self._is_validation(reading, 1, lambda: self._hashes(batch))[0])

        def pieces() -> Iterator[memoryview]:
            for piece in cut_between_characters(memoryview(batch.text), PIECE_BYTES):
                take_step(done_bytes=reading.done_bytes)
                yield piece

        ids = self._tokenizer.encode_blocks(pieces(), allowed, PIECE_BYTES)
        self._shard.add_pieces(reading.source_index, split, ids)
        self._clock.lap("encode")

    def _add(self, reading: Reading, documents: Ragged, hashes: Hashes, has_ends: bool = False) -> None:
        """Add documents to the shard."""
        self._clock.lap("encode")
        if len(documents):
            validation = self._is_validation(reading, len(documents), hashes)
            self._shard.add(reading.source_index, documents, validation, has_ends)
            self._clock.lap("write")

    def _is_validation(self, reading: Reading, count: int, hashes: Hashes) -> NDArray[np.bool_]:
        """Return bool[documents], True for validation."""
        split = reading.source.split
        if split is not None or not self._threshold:
            return np.full(count, split == "validation")
        found = hashes()
        if len(found) != count:  # separators were found twice, to encode and to hash
            raise BrokenInvariant(f"encoded {count} documents, but hashed {len(found)}")
        return is_validation(found, self._threshold)

    def _hashes(self, batch: Batch) -> NDArray[np.uint64]:
        return hash_ragged(batch.text, batch.offsets, self._seed)


def _memory_for_ids(text: Any) -> NDArray[np.uint32]:
    """Return memory for the IDs of a text, valid until the next call."""
    return thread_buffer("ids", _core.TokenizerCore.out_tokens(memoryview(text).nbytes), np.uint32)
