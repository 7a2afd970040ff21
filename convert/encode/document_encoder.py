"""Documents to a shard: the rules for bad text and special tokens, the encoder, the split.

Documents come in three forms: a stretch of text with separators between them, the way of plain text that the core
takes whole; a batch, end to end, from JSON Lines and Parquet, or from a stretch in which not all is well; and in
pieces, where one is too long to be held.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.long_text.long_document import encode_pieces
from bpe.tokenizer import AllowedSpecial, Tokenizer
from convert.encode.clock import Clock
from convert.encode.job import Job
from convert.encode.marked_text import MarkedText
from convert.encode.read_chunk import Found
from convert.encode.splitting import is_validation
from convert.errors import BrokenInvariant
from convert.shards.intake import END_TEXT, ShardIntake
from convert.shards.shard import NOT_TRAINED
from convert.shards.shard_writer import ShardWriter
from tokenmill.inputs._core import (
    Xxh64,
    find_separators,
    find_special_tokens,
    hash_documents,
    hash_ragged,
    rows_with_special_tokens,
    xxh64,
)
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.blocks import HEAD_BYTES
from tokenmill.inputs.buffers import thread_buffer
from tokenmill.inputs.documents import DAMAGE, Documents, LongText, Text
from tokenmill.inputs.intake import BadRecord
from tokenmill.inputs.pieced_text import PiecedText, SpecialSearch, cut_between_characters
from tokenmill.inputs.read_text import TEXT_BLOCK_BYTES as STRETCH_BYTES
from tokenmill.inputs.source_list import Source
from tokenmill.inputs.text_documents import checked_text, places_of_documents, valid_documents

if TYPE_CHECKING:
    from typing_extensions import Buffer

# A document of a batch that is longer is encoded in pieces: all its ids at once may take four times its room and more.
LONG_DOCUMENT_BYTES = 4 << 20


class DocumentEncoder:
    """Encodes the documents of one text chunk into its shard, in order, and counts them in its intake.

    threshold: of the hash that decides the split of a document whose source does not.
    """

    def __init__(
        self, job: Job, threshold: int, shard: ShardWriter, intake: ShardIntake, clock: Clock
    ) -> None:
        self._tokenizer = job.tokenizer
        self._marked_text = MarkedText(job.tokenizer)
        self._special_tokens = texts_of_special_tokens(job.tokenizer)
        # What stays a token where the text of special tokens is ordinary text.
        self._plain_tokens = job.tokenizer.non_special_added_tokens
        self._separator, self._seed, self._threshold = job.separator, job.seed, threshold
        # Text that most likely should be a special token and is none.
        self._end_text = [] if END_TEXT in self._special_tokens else [END_TEXT]
        self._shard, self._intake, self._clock = shard, intake, clock
        self._has_places = shard.has_places
        self._rules = intake.rules
        self._has_template = job.has_template

    def take(self, found: Found) -> None:
        """The documents of an event."""
        index, source, event = found
        if isinstance(event, Text):
            self.stretch(index, source, event)
        elif isinstance(event, Documents):
            self.batch(index, source, event)
        elif isinstance(event, LongText):
            text = PiecedText(event, source, self._rules)
            self.long_document(index, source, text, self._rules.special_in_text or "encode")
            self._intake.records += 1  # not one that a damaged file ends within
            text.count_in(self._intake, index, source)

    def stretch(self, source_index: int, source: Source, stretch: Text) -> None:
        """Whole documents with separators between them."""
        special = self._rules.special_in_text or "encode"
        text, is_valid = checked_text(stretch, source, self._intake)
        self._clock.lap("check")
        # Of the text as it is in the source: what is mended may be longer.
        if special == "encode" and is_valid:
            places = places_of_documents(stretch, self._separator) if self._has_places else None
            self._whole(source, text, places)
            return
        places = places_of_documents(stretch, self._separator)
        documents = valid_documents(source_index, source, text, self._separator, places, self._intake)
        self.batch(source_index, source, documents, special)

    def _whole(self, source: Source, text: Buffer, places: NDArray[np.uint64] | None) -> None:
        ragged = self._tokenizer.encode_documents(
            text, self._separator, threads=1, checked=True, out=_token_room(text)
        )
        self._intake.records += len(ragged)
        self._intake.text_bytes += memoryview(text).nbytes - (len(ragged) - 1) * len(self._separator)
        self._clock.lap("encode")
        if self._end_text and self._separator != END_TEXT:
            held = find_separators(text, END_TEXT)
            documents = find_separators(text, self._separator).searchsorted(held)
            self._intake.with_end_text += len(np.unique(documents))
            self._clock.lap("check")
        hashes = None
        if self._splits_by_hash(source):
            hashes = hash_documents(text, self._separator, self._seed)
        self._partition_by_split(source, ragged.tokens, ragged.offsets, hashes, places)

    def batch(
        self,
        source_index: int,
        source: Source,
        documents: Documents,
        special: str | None = None,
    ) -> None:
        """Documents end to end.

        Their reader has counted them as records. special: what the text of a special token is, None as the rules say.
        """
        batch, places = documents.batch, documents.places
        special = special or self._rules.special_in_text or "text"
        if batch.marks is not None and batch.marks.of_chats:
            self._intake.with_special += int(np.count_nonzero(batch.marks.has_special))
            special = "encode"  # those of the template; the text of others is cut
        if special != "encode" and self._special_tokens:
            rows = rows_with_special_tokens(batch.text, batch.offsets, self._special_tokens)
            if special == "text":
                self._intake.with_special += len(rows)
            elif len(rows):
                self._refuse_special(source_index, source, documents, rows.tolist())
                batch, places = batch.without(rows), np.delete(places, rows.astype(np.int64))
        if self._end_text:
            rows = rows_with_special_tokens(batch.text, batch.offsets, self._end_text)
            self._intake.with_end_text += len(rows)
        self._intake.text_bytes += int(batch.offsets[-1])
        self._clock.lap("check")
        if batch.marks is not None:
            self._marked(source_index, source, documents._replace(batch=batch, places=places), special)
            return
        first = 0
        for row in np.flatnonzero(np.diff(batch.offsets) > LONG_DOCUMENT_BYTES).tolist():
            if first < row:
                self._batch(source, batch.rows(first, row), places[first:row], special)
            text = memoryview(batch.rows(row, row + 1).text)
            self._encode_pieces(source, cut_between_characters(text, STRETCH_BYTES), special)
            self._end_document(source, xxh64(text, self._seed), int(places[row]))
            first = row + 1
        if first < len(batch):
            self._batch(source, batch.rows(first, len(batch)), places[first:], special)

    def _batch(self, source: Source, batch: Batch, places: NDArray[np.uint64], special: str) -> None:
        allowed = self._allowed(special)
        ragged = self._tokenizer.encode_ragged(
            batch.text, batch.offsets, allowed_special=allowed, checked=True, out=_token_room(batch.text)
        )
        self._clock.lap("encode")
        self._partition_by_split(source, ragged.tokens, ragged.offsets, self._hashes(source, batch), places)

    def _hashes(self, source: Source, batch: Batch) -> NDArray[np.uint64] | None:
        return hash_ragged(batch.text, batch.offsets, self._seed) if self._splits_by_hash(source) else None

    def _marked(self, source_index: int, source: Source, documents: Documents, special: str) -> None:
        """Documents with a loss mask."""
        batch, places = documents.batch, documents.places
        allowed = self._allowed(special)
        found = self._marked_text.encode(batch, allowed, _token_room(batch.text))
        self._clock.lap("encode")
        for row in found.changed.tolist():
            detail = "the tokenizer changes its text, so it is not known which tokens are to be learned"
            self._bad_row(source_index, source, documents, row, "changed text", detail)
        if len(found.changed):
            batch, places = batch.without(found.changed), np.delete(places, found.changed)
            found = self._marked_text.encode(batch, allowed, _token_room(batch.text))
        found.tokens[~found.is_trained] |= NOT_TRAINED
        if len(batch):
            hashes = self._hashes(source, batch)
            has_ends = self._has_template and batch.marks is not None and batch.marks.of_chats
            self._partition_by_split(source, found.tokens, found.offsets, hashes, places, has_ends)

    def _refuse_special(
        self, source_index: int, source: Source, documents: Documents, rows: list[int]
    ) -> None:
        for row in rows:
            starts, which = find_special_tokens(_text_of(documents.batch, row), self._special_tokens)
            token = self._special_tokens[int(which[0])].decode()
            detail = f"the text holds the special token {token!r} at its byte {int(starts[0])}"
            self._bad_row(source_index, source, documents, row, "special token", detail)

    def _bad_row(
        self, source_index: int, source: Source, documents: Documents, row: int, reason: str, detail: str
    ) -> None:
        """A document of a batch is a bad record after all."""
        batch, place, text = documents.batch, int(documents.places[row]), _text_of(documents.batch, row)
        line = None if batch.line_of is None else batch.line_of(place)
        record = BadRecord(reason, detail, place, text, len(text), line, documents.are_rows)
        self._intake.bad(source_index, source, record)

    def long_document(self, source_index: int, source: Source, found: PiecedText, special: str) -> None:
        """A document in pieces, which is counted as a record by now; nothing if it turns out to be bad."""
        search = SpecialSearch(self._special_tokens if special != "encode" else [])
        end = SpecialSearch(self._end_text)
        content = Xxh64(self._seed)
        text_bytes, head = 0, b""

        def texts() -> Iterator[Buffer]:
            nonlocal text_bytes, head
            for text in found.texts():
                view = memoryview(text)
                self._clock.lap("read")
                content.update(view)
                text_bytes += view.nbytes
                if len(head) < HEAD_BYTES:
                    head += bytes(view[: HEAD_BYTES - len(head)])
                self._clock.lap("check")
                yield view

        try:
            self._encode_pieces(source, end.through(search.through(texts())), special)
        except DAMAGE:
            self._drop_document()
            raise
        if found.fault:
            self._drop_document()
        elif search.found and special == "error":
            self._drop_document()
            detail = f"the text holds the special token {search.found!r} at its byte {search.place}"
            record = BadRecord("special token", detail, found.start, head, text_bytes)
            self._intake.bad(source_index, source, record)
        else:
            self._intake.with_special += bool(search.found)
            self._intake.with_end_text += bool(end.found)
            self._intake.text_bytes += text_bytes
            self._end_document(source, content.digest(), found.start)

    def _encode_pieces(self, source: Source, pieces: Iterator[Buffer], special: str) -> None:
        allowed = self._allowed(special)
        for tokens in encode_pieces(self._tokenizer, pieces, allowed, STRETCH_BYTES):
            self._clock.lap("encode")
            self._shard.extend(tokens, _split_of(source))
            self._clock.lap("split")

    def _allowed(self, special: str) -> AllowedSpecial:
        return "all" if special == "encode" else self._plain_tokens

    def _end_document(self, source: Source, content_hash: int, place: int) -> None:
        if self._splits_by_hash(source):
            hashes = np.array([content_hash], dtype=np.uint64)
            self._shard.end_document(int(is_validation(hashes, self._threshold)[0]), place)
        else:
            self._shard.end_document(_split_of(source), place)

    def _drop_document(self) -> None:
        self._shard.drop_document()

    def _splits_by_hash(self, source: Source) -> bool:
        return source.split is None and self._threshold > 0

    def _partition_by_split(
        self,
        source: Source,
        tokens: NDArray[np.uint32],
        offsets: NDArray[np.uint64],
        hashes: NDArray[np.uint64] | None,
        places: NDArray[np.uint64] | None,
        has_ends: bool = False,
    ) -> None:
        if hashes is None:
            held_out = np.full(len(offsets) - 1, _split_of(source), dtype=np.bool_)
            self._shard.add(tokens, offsets, held_out, places, has_ends)
        elif len(hashes) != len(offsets) - 1:
            # Two scans of the core found the separators, one to encode and one to hash: they must agree.
            raise BrokenInvariant(f"encoded {len(offsets) - 1} documents, but hashed {len(hashes)}")
        else:
            self._shard.add(tokens, offsets, is_validation(hashes, self._threshold), places, has_ends)
        self._clock.lap("split")


def texts_of_special_tokens(tokenizer: Tokenizer) -> list[bytes]:
    """Those of the added tokens that are special: the others are tokens in every text."""
    return [token.text.encode() for token in tokenizer.added_tokens if token.special]


def _text_of(batch: Batch, row: int) -> bytes:
    return bytes(memoryview(batch.rows(row, row + 1).text))


def _split_of(source: Source) -> int:
    return 1 if source.split == "validation" else 0


def _token_room(text: Any) -> NDArray[np.uint32]:
    """Where the ids of a text may go, until the next call."""
    return thread_buffer("ids", _core.TokenizerCore.out_tokens(memoryview(text).nbytes), np.uint32)
