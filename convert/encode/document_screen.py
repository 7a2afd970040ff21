"""The rules for documents: bad text, special tokens, and which documents are counted.

Documents come as whole text with separators, as a batch, or as one long document in pieces. Good ones go to a sink, bad
ones to the intake.
"""

from __future__ import annotations

import tempfile
from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np

from convert.encode.document_encoder import DocumentEncoder
from convert.encode.held_out import DocumentHasher
from convert.encode.job import Clock, Job
from convert.errors import naming
from convert.shards.intake import END_TEXT, ShardIntake
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs._core import find_separators, find_special_tokens, rows_with_special_tokens
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.blocks import KEPT_BYTES
from tokenmill.inputs.documents import DAMAGE, Documents, Event, LongText, Reading, Text
from tokenmill.inputs.intake import BadRecord, RecordFault
from tokenmill.inputs.text_documents import PiecedText, checked_text, valid_documents


class DocumentScreen:
    """Passes the documents of events to a sink and counts them. folder: for the text of a long document."""

    def __init__(
        self,
        job: Job,
        intake: ShardIntake,
        sink: DocumentEncoder | DocumentHasher,
        clock: Clock,
        folder: Path,
    ) -> None:
        self._intake, self._sink, self._clock, self._folder = intake, sink, clock, folder
        self._separator = job.separator
        self._special = intake.rules.special_in_text
        # Added tokens that are not special are tokens in every text.
        self._special_tokens = [own.text.encode() for own in job.tokenizer.added_tokens if own.special]
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
            self._long_text(reading, event)

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
        count = self._sink.text(reading, text)
        intake.records += count
        intake.text_bytes += memoryview(text).nbytes - (count - 1) * len(self._separator)

    def _long_text(self, reading: Reading, event: LongText) -> None:
        """Pass on a long document as a batch of one. Its text is in a file, so it takes no memory."""
        document = PiecedText(event, reading.source, self._intake.rules)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            try:
                for piece in document.texts():
                    take_step(done_bytes=reading.done_bytes)
                    with naming(self._folder):
                        file.write(piece)
            except DAMAGE as error:
                if self._intake.rules.on_error == "fail":
                    raise
                reading.damaged(error)  # its reader has no more events
                return
            self._intake.records += 1
            document.count_in(self._intake, reading.source_index, reading.source)
            if document.fault:
                return
            with naming(self._folder):
                file.flush()
            text = mmap(file.fileno(), 0, access=ACCESS_READ)
        batch = Batch(text, np.array([0, len(text)], np.uint64))
        documents = Documents(batch, np.array([event.start], np.uint64))
        self._batch(reading, documents, self._special or "encode", KEPT_BYTES)

    def _batch(
        self, reading: Reading, documents: Documents, special: str, kept_bytes: int | None = None
    ) -> None:
        """Pass on a batch. Its reader has counted the records. kept_bytes: of a bad document (default: all)."""
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
                    starts, which = find_special_tokens(batch.rows(row, row + 1).text, self._special_tokens)
                    token = self._special_tokens[int(which[0])].decode()
                    detail = f"the text holds the special token {token!r} at its byte {int(starts[0])}"
                    self._bad_row(reading, documents, row, RecordFault("special token", detail), kept_bytes)
                documents = documents.without(rows)
                batch = documents.batch
        if self._end_text:
            rows = rows_with_special_tokens(batch.text, batch.offsets, self._end_text)
            self._intake.with_end_text += len(rows)
        self._intake.text_bytes += int(batch.offsets[-1])
        self._clock.lap("check")
        for row in self._sink.batch(reading, batch, special == "encode").tolist():
            detail = "the tokenizer changes its text, so it is not known which tokens are to be learned"
            self._bad_row(reading, documents, row, RecordFault("changed text", detail))

    def _bad_row(
        self, reading: Reading, documents: Documents, row: int, fault: RecordFault, kept: int | None = None
    ) -> None:
        """Count a document of a batch as a bad record."""
        text = memoryview(documents.batch.rows(row, row + 1).text)
        line = None if documents.lines is None else int(documents.lines[row])
        about = (int(documents.places[row]), bytes(text[:kept]), len(text), line, documents.are_rows)
        self._intake.bad(reading.source_index, reading.source, BadRecord(fault.reason, str(fault), *about))
