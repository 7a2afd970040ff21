"""The rules for documents: bad text, special tokens, and which documents are counted.

Documents come as whole text with separators, as a batch, or as one long document in pieces. Good ones go to a sink, bad
ones to the intake.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from bpe.tokenizer import Tokenizer
from convert.encode.document_encoder import DocumentEncoder
from convert.encode.held_out import DocumentHasher
from convert.encode.job import Clock, Job
from convert.shards.intake import END_TEXT, ShardIntake
from tokenmill.inputs._core import Xxh64, find_separators, find_special_tokens, rows_with_special_tokens
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.blocks import KEPT_BYTES
from tokenmill.inputs.documents import DAMAGE, Documents, Event, LongText, Reading, Text
from tokenmill.inputs.intake import BadRecord
from tokenmill.inputs.text_documents import PiecedText, SpecialSearch, checked_text, valid_documents

if TYPE_CHECKING:
    from typing_extensions import Buffer


class DocumentScreen:
    """Passes the documents of events to a sink and counts them."""

    def __init__(
        self, job: Job, intake: ShardIntake, sink: DocumentEncoder | DocumentHasher, clock: Clock
    ) -> None:
        self._intake, self._sink, self._clock = intake, sink, clock
        self._separator, self._seed = job.separator, job.options.seed
        self._special = intake.rules.special_in_text
        self._special_tokens = texts_of_special_tokens(job.tokenizer)
        # A tokenizer without this token encodes it as ordinary text, which is most likely a mistake.
        self._end_text = [] if END_TEXT in self._special_tokens else [END_TEXT]

    def add(self, reading: Reading, event: Event) -> None:
        """Pass on the documents of an event."""
        self._clock.lap("read")
        if isinstance(event, Text):
            self._text(reading, event)
        elif isinstance(event, Documents):
            self._batch(reading, event, self._special or "text")
        elif isinstance(event, LongText):
            self._long_text(reading, event, self._special or "encode")

    def _text(self, reading: Reading, event: Text) -> None:
        special, source, intake = self._special or "encode", reading.source, self._intake
        text, is_valid = checked_text(event, source, intake)
        if special != "encode" or not is_valid:
            documents = valid_documents(reading.source_index, source, event, text, self._separator, intake)
            self._batch(reading, documents, special)
            return
        if self._end_text and self._separator != END_TEXT:
            found = find_separators(text, END_TEXT)
            documents_with = find_separators(text, self._separator).searchsorted(found)
            intake.with_end_text += len(np.unique(documents_with))
        self._clock.lap("check")
        count = self._sink.text(source, text)
        intake.records += count
        intake.text_bytes += memoryview(text).nbytes - (count - 1) * len(self._separator)

    def _batch(self, reading: Reading, documents: Documents, special: str) -> None:
        """Pass on a batch. Its reader has counted the records."""
        batch = documents.batch
        if batch.marks is not None and batch.marks.of_chats:
            self._intake.with_special += int(np.count_nonzero(batch.marks.has_special))
            special = "encode"  # the template's special tokens; those in messages are cut
        if special != "encode" and self._special_tokens:
            rows = rows_with_special_tokens(batch.text, batch.offsets, self._special_tokens)
            if special == "text":
                self._intake.with_special += len(rows)
            elif len(rows):
                for row in rows.tolist():
                    self._bad_special(reading, documents, row)
                documents = documents.without(rows)
                batch = documents.batch
        if self._end_text:
            rows = rows_with_special_tokens(batch.text, batch.offsets, self._end_text)
            self._intake.with_end_text += len(rows)
        self._intake.text_bytes += int(batch.offsets[-1])
        self._clock.lap("check")
        for row in self._sink.batch(reading.source, batch, special == "encode").tolist():
            detail = "the tokenizer changes its text, so it is not known which tokens are to be learned"
            self._bad_row(reading, documents, row, "changed text", detail)

    def _bad_special(self, reading: Reading, documents: Documents, row: int) -> None:
        starts, which = find_special_tokens(_text_of(documents.batch, row), self._special_tokens)
        token = self._special_tokens[int(which[0])].decode()
        detail = f"the text holds the special token {token!r} at its byte {int(starts[0])}"
        self._bad_row(reading, documents, row, "special token", detail)

    def _bad_row(self, reading: Reading, documents: Documents, row: int, reason: str, detail: str) -> None:
        """Count a document of a batch as a bad record."""
        place, text = int(documents.places[row]), _text_of(documents.batch, row)
        line = None if documents.lines is None else int(documents.lines[row])
        record = BadRecord(reason, detail, place, text, len(text), line, documents.are_rows)
        self._intake.bad(reading.source_index, reading.source, record)

    def _long_text(self, reading: Reading, event: LongText, special: str) -> None:
        document = PiecedText(event, reading.source, self._intake.rules)
        search = SpecialSearch(self._special_tokens if special != "encode" else [])
        end_search = SpecialSearch(self._end_text)
        content = Xxh64(self._seed)
        text_bytes, head = 0, b""

        def texts() -> Iterator[Buffer]:
            nonlocal text_bytes, head
            for text in document.texts():
                view = memoryview(text)
                self._clock.lap("read")
                content.update(view)
                text_bytes += view.nbytes
                if len(head) < KEPT_BYTES:
                    head += bytes(view[: KEPT_BYTES - len(head)])
                self._clock.lap("check")
                yield view

        try:
            self._sink.pieces(
                reading.source, end_search.through(search.through(texts())), special == "encode"
            )
        except DAMAGE as error:
            self._sink.drop()
            if self._intake.rules.on_error == "fail":
                raise
            reading.damaged(error)  # its reader has no more events
            return
        self._intake.records += 1
        document.count_in(self._intake, reading.source_index, reading.source)
        if document.fault:
            self._sink.drop()
        elif search.found and special == "error":
            self._sink.drop()
            detail = f"the text holds the special token {search.found!r} at its byte {search.place}"
            record = BadRecord("special token", detail, event.start, head, text_bytes)
            self._intake.bad(reading.source_index, reading.source, record)
        else:
            self._intake.with_special += bool(search.found)
            self._intake.with_end_text += bool(end_search.found)
            self._intake.text_bytes += text_bytes
            self._sink.end(reading.source, content.digest())


def texts_of_special_tokens(tokenizer: Tokenizer) -> list[bytes]:
    """Return the added tokens that are special. The others are tokens in every text."""
    return [token.text.encode() for token in tokenizer.added_tokens if token.special]


def _text_of(batch: Batch, row: int) -> bytes:
    return bytes(memoryview(batch.rows(row, row + 1).text))
