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
from tokenmill.inputs._core import hash_documents, hash_ragged, xxh64
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.buffers import thread_buffer
from tokenmill.inputs.source_list import Source
from tokenmill.inputs.text_documents import cut_between_characters

if TYPE_CHECKING:
    from typing_extensions import Buffer

# Longer documents are encoded in pieces, because their IDs take four times their size or more.
LONG_DOCUMENT_BYTES = 4 << 20
PIECE_BYTES = 1 << 20
Hashes = NDArray[np.uint64]


class DocumentEncoder:
    """Writes the tokens of good documents to a shard.

    threshold: for the split by hash (`is_validation`).

    with_special: whether the text of a special token becomes that token.
    """

    def __init__(self, job: Job, threshold: int, shard: ShardWriter, clock: Clock) -> None:
        self._tokenizer, self._marked_text = job.tokenizer, MarkedText(job.tokenizer)
        self._separator, self._seed, self._threshold = job.separator, job.options.seed, threshold
        self._has_template = job.options.template
        self._shard, self._clock = shard, clock

    def text(self, source: Source, text: Buffer) -> int:
        """Add documents with separators between them, with special tokens. Return their number."""
        ragged = self._tokenizer.encode_documents(
            text, self._separator, threads=1, checked=True, out=_memory_for_ids(text)
        )
        self._clock.lap("encode")
        self._add(source, ragged, lambda: hash_documents(text, self._separator, self._seed))
        return len(ragged)

    def batch(self, source: Source, batch: Batch, with_special: bool) -> NDArray[np.int64]:
        """Add a batch. Return the rows without a loss mask, because the tokenizer changes their text."""
        if batch.marks is not None:
            return self._marked(source, batch, with_special)
        first = 0
        for row in np.flatnonzero(np.diff(batch.offsets) > LONG_DOCUMENT_BYTES).tolist():
            self._rows(source, batch.rows(first, row), with_special)
            text = memoryview(batch.rows(row, row + 1).text)
            self.pieces(source, cut_between_characters(text, PIECE_BYTES), with_special)
            self.end(source, xxh64(text, self._seed))
            first = row + 1
        self._rows(source, batch.rows(first, len(batch)), with_special)
        return NO_ROWS

    def pieces(self, source: Source, pieces: Iterator[Buffer], with_special: bool) -> None:
        """Add one document in pieces. `end` or `drop` follows."""
        for tokens in self._tokenizer.encode_blocks(pieces, self._allowed(with_special), PIECE_BYTES):
            self._clock.lap("encode")
            self._shard.extend(tokens)
            self._clock.lap("write")

    def end(self, source: Source, content_hash: int) -> None:
        """Complete the document of the last pieces. content_hash: XXH64 of its text with the seed."""
        split = self._is_validation(source, 1, lambda: np.array([content_hash], dtype=np.uint64))
        self._shard.end_document(int(split[0]))

    def drop(self) -> None:
        """Forget the document of the last pieces."""
        self._shard.drop_document()

    def _rows(self, source: Source, batch: Batch, with_special: bool) -> None:
        if len(batch):
            ragged = self._tokenizer.encode_ragged(
                batch.text,
                batch.offsets,
                allowed_special=self._allowed(with_special),
                checked=True,
                out=_memory_for_ids(batch.text),
            )
            self._clock.lap("encode")
            self._add(source, ragged, lambda: hash_ragged(batch.text, batch.offsets, self._seed))

    def _marked(self, source: Source, batch: Batch, with_special: bool) -> NDArray[np.int64]:
        """Add documents with a loss mask."""
        memory = _memory_for_ids(batch.text)
        documents, kept, changed = self._marked_text.encode(batch, self._allowed(with_special), memory)
        self._clock.lap("encode")
        if len(documents):
            has_ends = self._has_template and batch.marks is not None and batch.marks.of_chats
            self._add(source, documents, lambda: hash_ragged(kept.text, kept.offsets, self._seed), has_ends)
        return changed

    def _add(
        self, source: Source, documents: Ragged, hashes: Callable[[], Hashes], has_ends: bool = False
    ) -> None:
        """Add documents to the shard."""
        validation = self._is_validation(source, len(documents), hashes)
        self._shard.add(documents.tokens, documents.offsets, validation, has_ends)
        self._clock.lap("write")

    def _is_validation(self, source: Source, count: int, hashes: Callable[[], Hashes]) -> NDArray[np.bool_]:
        """Return bool[documents], True for validation. hashes: of the documents, unless the source decides."""
        if source.split is not None or not self._threshold:
            return np.full(count, source.split == "validation")
        found = hashes()
        if len(found) != count:  # separators were found twice, to encode and to hash
            raise BrokenInvariant(f"encoded {count} documents, but hashed {len(found)}")
        return is_validation(found, self._threshold)

    def _allowed(self, with_special: bool) -> AllowedSpecial:
        return "all" if with_special else self._tokenizer.non_special_added_tokens


def _memory_for_ids(text: Any) -> NDArray[np.uint32]:
    """Return memory for the IDs of a text, valid until the next call."""
    return thread_buffer("ids", _core.TokenizerCore.out_tokens(memoryview(text).nbytes), np.uint32)
