"""JSON Lines: one record per line, with its text at --text-field. json_lines.hpp defines a valid line.

Only LF ends a line. White space around a record, such as CR, is ignored, and lines of white space are counted as
blank. A byte order mark at the beginning of the file is skipped. Invalid UTF-8 anywhere in a line is a fault of the
line. A line is held in memory, so lines are limited to max_record_bytes.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tokenmill.inputs import _core, utf8
from tokenmill.inputs._core import json_texts
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.blocks import HEAD_BYTES, Block, pieces_of
from tokenmill.inputs.documents import Documents, Event, Reading
from tokenmill.inputs.intake import FIELD_MISSING, INVALID_UTF8, MALFORMED, TOO_LONG, BadRecord
from tokenmill.inputs.json_array import ArrayLines, is_array, may_be_array
from tokenmill.inputs.marked_records import MarkedBatch, MarkedRecords, RecordFault
from tokenmill.inputs.rules import MAX_MARKED_BYTES

if TYPE_CHECKING:
    from typing_extensions import Buffer

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
    "surrogate": (INVALID_UTF8, "unpaired surrogate at byte {place}"),
    "too_long": ("too long", TOO_LONG),
}


def line_blocks(reading: Reading) -> Iterator[Block]:
    """Return the lines of the piece as blocks. A JSON array becomes JSON Lines (json_array.py)."""
    source, rules, block_bytes = reading.source, reading.rules, reading.buffers.block_bytes
    if reading.block is not None:
        return reading.blocks(b"\n", block_bytes, is_divided=False)
    if source.kind.is_divisible and not is_array(source, rules):
        return reading.blocks(b"\n", block_bytes, is_divided=True)
    if reading.piece.start > 0:  # an array is read from its beginning
        return iter(())
    wrap = partial(ArrayLines, path=source.shown) if may_be_array(source, rules) else None
    return reading.blocks(b"\n", block_bytes, is_divided=False, wrap=wrap)


def documents(reading: Reading) -> Iterator[Event]:
    """Yield the documents of the piece."""
    lines = _Lines(reading)
    blocks = line_blocks(reading)
    for block in blocks:
        if lines.count == 0:
            reading.intake.lines_start = block.start
        if block.is_piece:
            yield from lines.long_line(block, blocks)
        else:
            yield from lines.whole(block.data, block.start)
        yield None
    if reading.block is not None or reading.piece.stop < reading.source.size_bytes:
        reading.intake.add_lines(reading.source_index, lines.count)


def _without_mark(data: memoryview, start: int) -> tuple[memoryview, int]:
    """Skip a byte order mark at the beginning of the source."""
    return (data[3:], 3) if start == 0 and bytes(data[:3]) == codecs.BOM_UTF8 else (data, start)


class _LineNumbers:
    """Maps the offset of a line to its index. text: begins at `start` with line `first_line`."""

    def __init__(self, text: memoryview, start: int, first_line: int) -> None:
        self._text, self._start, self._first_line = text, start, first_line
        self._ends: np.ndarray[Any, np.dtype[np.intp]] | None = None

    def __call__(self, offset: int) -> int:
        if self._ends is None:
            self._ends = np.flatnonzero(np.frombuffer(self._text, dtype=np.uint8) == 0x0A)
        return self._first_line + int(np.searchsorted(self._ends, offset - self._start))


class _Lines:
    """Turns the lines of one piece into documents. count: lines so far."""

    def __init__(self, reading: Reading) -> None:
        self.count = 0
        self._reading, self._intake, self._rules = reading, reading.intake, reading.rules
        self._path = [name.encode() for name in reading.rules.text_path]
        self._marked = None if reading.rules.marks is None else MarkedRecords(reading.intake)
        self._limit, self._too_long = reading.rules.max_record_bytes, TOO_LONG
        if self._marked is not None and self._limit > MAX_MARKED_BYTES:
            self._limit = MAX_MARKED_BYTES
            self._too_long = "longer than {limit} bytes, the maximum for records with a loss mask"

    def long_line(self, block: Block, blocks: Iterator[Block]) -> Iterator[Documents]:
        """Yield the document of a line that comes in pieces."""
        held, length, is_blank = bytearray(), 0, True
        space = b" \t\r" + (codecs.BOM_UTF8 if block.start == 0 else b"")
        for piece, _ in pieces_of(block, blocks):
            length += len(piece)
            is_blank = is_blank and not bytes(piece).strip(space)
            held += piece[: max(0, self._limit + len(codecs.BOM_UTF8) - len(held))]
        if length <= len(held):
            held += b"\n"
            yield from self.whole(memoryview(held), block.start)
            return
        data, start = _without_mark(memoryview(held), block.start)
        self.count += 1
        if is_blank:
            self._intake.blank += 1
        else:
            self._intake.records += 1
            length -= start - block.start
            self._bad_line("too_long", data, length, start, start, self.count - 1)

    def whole(self, data: memoryview, start: int) -> Iterator[Documents]:
        """Yield the documents of whole lines. start: offset of `data` in the source."""
        data, start = _without_mark(data, start)
        if _core.validate_utf8(data) < 0:
            yield from self._valid(data, start)
            return
        for run, offset in self._valid_runs(bytes(data), start):
            yield from self._valid(memoryview(run), offset)

    def _valid_runs(self, data: bytes, start: int) -> Iterator[tuple[Buffer, int]]:
        """Yield (valid lines, their offset in the source). Invalid lines are repaired or counted as bad."""
        done = 0
        while (bad := _core.validate_utf8(memoryview(data)[done:])) >= 0:
            bad += done
            line_start = data.rfind(b"\n", 0, bad) + 1
            line_stop = data.find(b"\n", bad) + 1 or len(data)
            if line_start > done:
                yield data[done:line_start], start + done
            line = data[line_start:line_stop]
            repaired, is_bad = self._intake.repair(line)
            if is_bad < 0:
                yield repaired, start + line_start
            else:
                detail = utf8.invalid_byte(start + bad, data[bad])
                record = line.rstrip(b"\n")
                self._intake.records += 1
                self._bad_record(INVALID_UTF8, detail, start + line_start, record, len(record), self.count)
                self.count += 1
            done = line_stop
        if done < len(data):
            yield data[done:], start + done

    def _valid(self, text: memoryview, start: int) -> Iterator[Documents]:
        """Yield the documents of lines that are valid UTF-8. start: offset of the text in the source."""
        if self._marked is not None:
            yield from self._marked_documents(self._marked, bytes(text), start)
            return
        out = self._reading.buffers.values(len(text))
        offsets, line_starts, bad, lines, blank, replaced = json_texts(
            text, self._path, out, self._rules.invalid == "replace", self._limit
        )
        self._intake.records += lines - blank
        self._intake.blank += blank
        self._intake.replaced += replaced
        line_of = _LineNumbers(text, start, self.count)
        for line_start, line_stop, fault_at, fault in bad:
            record, place = text[line_start:line_stop], start + line_start
            byte = text[fault_at] if fault_at < len(text) else 0
            self._bad_line(fault, record, len(record), place, start + fault_at, line_of(place), byte)
        self.count += lines
        if len(line_starts):
            texts = out[: int(offsets[-1])].data
            yield Documents(Batch(texts, offsets, line_of), line_starts + np.uint64(start))

    def _marked_documents(self, marked: MarkedRecords, data: bytes, start: int) -> Iterator[Documents]:
        """The same for records with a loss mask."""
        found, place = MarkedBatch(), start
        line_of = _LineNumbers(memoryview(data), start, self.count)
        for line in data.removesuffix(b"\n").split(b"\n") if data else ():
            if not line.strip(b" \t\r"):
                self._intake.blank += 1
            else:
                self._intake.records += 1
                try:
                    if len(line) > self._limit:
                        self._bad_line("too_long", memoryview(line), len(line), place, place, self.count)
                    else:
                        found.add(marked.text_of(marked.parsed(line)), place)
                except RecordFault as fault:
                    self._bad_record(fault.reason, str(fault), place, line, len(line), self.count)
            self.count += 1
            place += len(line) + 1
        for documents in found.documents():
            yield documents._replace(batch=replace(documents.batch, line_of=line_of))

    def _bad_line(
        self, fault: str, record: memoryview, length: int, start: int, place: int, line: int, byte: int = 0
    ) -> None:
        """Report a fault of the core. record: the line, or its beginning. place: offset of the fault."""
        reason, detail = _FAULTS[fault]
        kept = bytes(record)
        if fault == "too_long":
            detail, kept = self._too_long, bytes(record[: min(HEAD_BYTES, self._limit)])
        field = repr(self._rules.text_field)
        detail = detail.format(place=place, byte=byte, field=field, limit=self._limit)
        self._bad_record(reason, detail, start, kept, length, line)

    def _bad_record(self, reason: str, detail: str, start: int, data: bytes, length: int, line: int) -> None:
        record = BadRecord(reason, detail, start, data, length, line)
        self._intake.bad(self._reading.source_index, self._reading.source, record)
