"""JSON Lines: a record a line, its text at --text-field; a line is checked to its end.

tokenmill/inputs/native/json_line.hpp says what a line must be.

Lines end in LF alone; white space and so CR around a record does not matter; lines of nothing else are blank, which
is counted. A UTF-8 mark at the beginning of the file is passed over. Invalid UTF-8 is looked for in whole lines. A line
of many MiB comes in pieces (tokenmill/inputs/long_line.py).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from tokenmill.inputs import _core, utf8
from tokenmill.inputs._core import json_texts
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.blocks import (
    HEAD_BYTES,
    Block,
    FileRange,
    FileStream,
    own_lines,
    pieces_of,
    record_blocks,
    watched,
)
from tokenmill.inputs.documents import Documents, Event, Reading
from tokenmill.inputs.intake import FIELD_MISSING, INVALID_UTF8, MALFORMED, TOO_LONG, BadRecord
from tokenmill.inputs.json_array import ArrayLines, is_array, may_be_array
from tokenmill.inputs.long_line import LongLine
from tokenmill.inputs.marked_records import RECORD_BYTES, MarkedBatch, MarkedRecords, RecordFault

_FAULTS = {
    "cut": (MALFORMED, "incomplete JSON"),
    "syntax": (MALFORMED, "invalid JSON: unexpected byte {place} (0x{byte:02x})"),
    "control": (MALFORMED, "invalid JSON: unescaped control character at byte {place} (0x{byte:02x})"),
    "escape": (MALFORMED, "invalid JSON: bad escape at byte {place}"),
    "number": (MALFORMED, "invalid JSON: bad number at byte {place}"),
    "trailing": (MALFORMED, "invalid JSON: extra data at byte {place}"),
    "not_object": ("not an object", "not a JSON object"),
    "missing": (FIELD_MISSING, "field {field} is missing"),
    "twice": ("field twice", "field {field} occurs twice"),
    "is_null": ("not a text", "field {field} is null, not text"),
    "is_bool": ("not a text", "field {field} is a boolean, not text"),
    "is_number": ("not a text", "field {field} is a number, not text"),
    "is_list": ("not a text", "field {field} is a list, not text"),
    "is_object": ("not a text", "field {field} is an object, not text"),
    "surrogate": ("invalid UTF-8", "unpaired surrogate at byte {place}"),
    "too_long": ("too long", TOO_LONG),
}


def reason_of(fault: str) -> str:
    """Under what the records with a fault of the core's are counted: "cut" -> "malformed"."""
    return _FAULTS[fault][0]


class _LineNumbers:
    """From the place where a line begins to its number; `text` begins at `start` with line `first_line`."""

    def __init__(self, text: memoryview, start: int, first_line: int) -> None:
        self._text, self._start, self._first_line = text, start, first_line
        self._ends: np.ndarray[Any, np.dtype[np.intp]] | None = None

    def __call__(self, place: int) -> int:
        if self._ends is None:
            self._ends = np.flatnonzero(np.frombuffer(self._text, dtype=np.uint8) == 0x0A)
        return self._first_line + int(np.searchsorted(self._ends, place - self._start))


def documents(reading: Reading) -> Iterator[Event]:
    """The documents of the piece: the lines that begin in it, all of a compressed file or an array."""
    start, source, buffers = reading.block_start, reading.source, reading.buffers
    with ExitStack() as stack:
        stream: FileStream
        file, path, piece = reading.file, source.shown, reading.piece
        if source.kind.is_divisible and not is_array(source, reading.rules):
            file.expect(max(0, piece.start - 1), piece.stop)
            start, stop = own_lines(file, path, source.size_bytes, piece.start, piece.stop)
            reading.need(piece.start - 1, stop)
            stream = FileRange(file, path, start, stop, reading.seen)
        elif piece.start > 0:  # an array is read from its beginning
            return
        else:
            reading.need(0, source.size_bytes)
            stream = stack.enter_context(reading.stream())
            if may_be_array(source, reading.rules):
                stream = ArrayLines(stream, path)
        lines = _Lines(reading)
        blocks = record_blocks(stream, b"\n", buffers.text, start, buffers.block_bytes)
        blocks = watched(blocks, stream, reading.block_seen)
        for block in blocks:
            if block.is_piece:
                yield from lines.long_line(block, blocks)
            else:
                yield from lines.batches(block)
            yield None
        if reading.piece.stop < source.size_bytes:
            reading.intake.add_lines(reading.source_index, lines.count)


class _Lines:
    """The lines of one piece, block after block."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._source_index, self._source = reading.source_index, reading.source
        self._intake, self._buffers = reading.intake, reading.buffers
        self._path = [name.encode() for name in reading.rules.text_path]
        self.count = 0
        self._marked = None if reading.rules.marks is None else MarkedRecords(reading.intake)

    def long_line(self, block: Block, blocks: Iterator[Block]) -> Iterator[LongLine | Documents]:
        text, start = self._without_mark(block)
        if self._marked is not None:
            yield from self._long_marked(block._replace(text=text), blocks, start)
            return
        pieces = pieces_of(block._replace(text=text), blocks)
        line = LongLine(pieces, start, self.count, self._intake.rules)
        yield line
        self.count += 1
        self._intake.replaced += line.replaced
        if line.is_blank:
            self._intake.blank += 1
            return
        self._intake.records += 1
        if line.fault == "invalid":
            detail = utf8.invalid_byte(line.place, line.byte)
            self._bad_record(INVALID_UTF8, detail, start, line.head, line.length, line.line)
        elif line.fault:
            self._bad(line.fault, start, line.place, line.head, line.length, line.line, line.byte)

    def _without_mark(self, block: Block) -> tuple[memoryview, int]:
        """The text of a block and its place in the source, less a UTF-8 mark there; InvalidText for what is no text."""
        text, start = block.text, block.start
        if start == 0:
            head = bytes(text[: utf8.HEAD_BYTES])
            self._reading.refuse_other_kind(head)
            if head.startswith(codecs.BOM_UTF8):
                return text[3:], 3
        return text, start

    def batches(self, block: Block) -> Iterator[Documents]:
        text, start = self._without_mark(block)
        ends_blank = block.closed and (not len(text) or text[-1] == 0x0A)  # its LF is not in the block
        if _core.validate_utf8(text) < 0:
            yield from self._texts(text, start)
        else:
            data = bytes(text)
            for run, run_start in self._valid_runs(data, start):
                yield from self._texts(memoryview(run), run_start)
        self.count += ends_blank
        self._intake.blank += ends_blank

    def _texts(self, text: memoryview, start: int) -> Iterator[Documents]:
        """The documents of lines that are valid UTF-8; `start`: of the text in the source."""
        if self._marked is not None:
            yield from self._marked_texts(self._marked, bytes(text), start)
            return
        rules = self._intake.rules
        out = self._buffers.values(len(text))
        offsets, line_starts, bad, lines, blank, replaced = json_texts(
            text, self._path, out, rules.invalid == "replace", rules.max_record_bytes
        )
        self._intake.records += lines - blank
        self._intake.blank += blank
        self._intake.replaced += replaced
        if bad:
            data = bytes(text)
            line, counted = self.count, 0
            for bad_start, bad_stop, place, fault in bad:
                line += data.count(b"\n", counted, bad_start)
                counted = bad_start
                kept_stop = bad_stop
                if fault == "too_long":  # as much of it as is kept where it is too long for a block
                    kept_stop = bad_start + min(HEAD_BYTES, rules.max_record_bytes)
                byte = data[place] if place < len(data) else 0
                length = bad_stop - bad_start
                record = data[bad_start:kept_stop]
                self._bad(fault, start + bad_start, start + place, record, length, line, byte)
        first_line = self.count
        self.count += lines
        if len(line_starts):
            text_view = out[: int(offsets[-1])].data
            line_of = _LineNumbers(text, start, first_line)
            yield Documents(Batch(text_view, offsets, line_of), line_starts + np.uint64(start))

    def _marked_texts(self, marked: MarkedRecords, data: bytes, start: int) -> Iterator[Documents]:
        """The same for records with a loss mask."""
        found, place, first_line = MarkedBatch(), 0, self.count
        for line in data.removesuffix(b"\n").split(b"\n") if data else ():
            if not line.strip(b" \t\r"):
                self._intake.blank += 1
            else:
                self._intake.records += 1
                try:
                    if len(line) > self._intake.rules.max_record_bytes:
                        limit = self._intake.rules.max_record_bytes
                        raise RecordFault("too long", TOO_LONG.format(limit=limit))
                    found.add(marked.text_of(marked.parsed(line)), start + place)
                except RecordFault as fault:
                    kept = line if fault.reason != "too long" else line[:HEAD_BYTES]
                    self._bad_record(fault.reason, str(fault), start + place, kept, len(line), self.count)
            self.count += 1
            place += len(line) + 1
        line_of = _LineNumbers(memoryview(data), start, first_line)
        for documents in found.documents():
            yield documents._replace(batch=replace(documents.batch, line_of=line_of))

    def _long_marked(self, block: Block, blocks: Iterator[Block], start: int) -> Iterator[Documents]:
        """A line that is longer than a block, held whole up to RECORD_BYTES."""
        held, length = bytearray(), 0
        for piece, _ in pieces_of(block, blocks):
            length += len(piece)
            held += piece[: max(0, RECORD_BYTES - len(held))]
        if length > RECORD_BYTES:
            self._intake.records += 1
            detail = f"longer than {RECORD_BYTES} bytes, the maximum for records with a loss mask"
            self._bad_record("too long", detail, start, bytes(held[:HEAD_BYTES]), length, self.count)
            self.count += 1
        elif _core.validate_utf8(held) < 0:
            yield from self._texts(memoryview(held), start)
        else:
            for run, run_start in self._valid_runs(bytes(held), start):
                yield from self._texts(memoryview(run), run_start)

    def _valid_runs(self, data: bytes, start: int) -> Iterator[tuple[bytes, int]]:
        """Runs of valid lines with their place in the source; bad ones between them are mended or set aside."""
        place = 0
        while place < len(data):
            bad = _core.validate_utf8(memoryview(data)[place:])
            if bad < 0:
                yield data[place:], start + place
                return
            bad += place
            line_start = data.rfind(b"\n", 0, bad) + 1
            line_stop = data.find(b"\n", bad)
            line_stop = len(data) if line_stop < 0 else line_stop + 1
            if line_start > place:
                yield data[place:line_start], start + place
            line = data[line_start:line_stop]
            if self._intake.rules.invalid == "replace":
                mended, replaced = utf8.replace_invalid(line)
                self._intake.replaced += replaced
                yield bytes(mended), start + line_start
            else:
                self._intake.records += 1
                self._bad_record(
                    INVALID_UTF8,
                    utf8.invalid_byte(start + bad, data[bad]),
                    start + line_start,
                    line.rstrip(b"\n"),
                    len(line.rstrip(b"\n")),
                    self.count,
                )
                self.count += 1
            place = line_stop

    def _bad(
        self, fault: str, start: int, place: int, record: bytes, length: int, line: int, byte: int = 0
    ) -> None:
        reason, detail = _FAULTS[fault]
        rules = self._intake.rules
        field = repr(rules.text_field)
        detail = detail.format(place=place, byte=byte, field=field, limit=rules.max_record_bytes)
        self._bad_record(reason, detail, start, record, length, line)

    def _bad_record(
        self, reason: str, detail: str, start: int, record: bytes, length: int, line: int
    ) -> None:
        self._intake.bad(
            self._source_index, self._source, BadRecord(reason, detail, start, record, length, line)
        )
