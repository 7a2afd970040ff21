"""JSON Lines: one record per line, with its text at --text-field.

Only LF ends a line. White space around a record, such as CR, is ignored, and lines of white space are counted as
blank. A byte order mark at the beginning of the file is skipped. A line is held in memory, so lines are limited to
max_record_bytes.

The core reads usual lines (native/json_lines.hpp). Python's json module reads the lines that the core leaves, which are
bad or unusual, and all records with a loss mask.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tokenmill.inputs import utf8
from tokenmill.inputs._core import json_texts
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.blocks import KEPT_BYTES, Block, pieces_of
from tokenmill.inputs.documents import Documents, Event, Reading
from tokenmill.inputs.intake import INVALID_UTF8, TOO_LONG, BadRecord, RecordFault
from tokenmill.inputs.json_array import ArrayLines, is_array, may_be_array
from tokenmill.inputs.json_records import encoded, json_of, surrogate_count, text_at
from tokenmill.inputs.marked_records import MarkedRecords, MarkedText, marked_documents
from tokenmill.inputs.rules import MAX_MARKED_BYTES

if TYPE_CHECKING:
    from typing_extensions import Buffer

_Text = TypeVar("_Text")
_TOO_LONG = "too long"


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
        yield from lines.documents(block, blocks)
        yield None
    if reading.block is not None or reading.piece.stop < reading.source.size_bytes:
        reading.intake.add_lines(reading.source_index, lines.count)


class _Lines:
    """Turns the lines of one piece into documents. count: lines so far."""

    def __init__(self, reading: Reading) -> None:
        self.count = 0
        self._reading, self._intake, self._rules = reading, reading.intake, reading.rules
        self._path = [name.encode() for name in reading.rules.text_path]
        self._marked = None if reading.rules.marks is None else MarkedRecords(reading.intake)
        self._limit = reading.rules.max_record_bytes
        self._too_long = TOO_LONG.format(limit=self._limit)
        if self._marked is not None and self._limit > MAX_MARKED_BYTES:
            self._limit = MAX_MARKED_BYTES
            self._too_long = f"longer than {self._limit} bytes, the maximum for records with a loss mask"

    def documents(self, block: Block, blocks: Iterator[Block]) -> Iterator[Documents]:
        """Yield the documents of a block of lines, or of a line that comes in pieces."""
        data, start, length = block.data, block.start, len(block.data)
        if block.is_piece:
            held, length = bytearray(), 0
            for piece, _ in pieces_of(block, blocks):
                length += len(piece)
                held += piece[: self._limit + 4 - len(held)]  # more than a byte order mark and a record
            data = memoryview(held)
        if start == 0 and bytes(data[:3]) == codecs.BOM_UTF8:
            data, start, length = data[3:], 3, length - 3
        if length > len(data):
            self._intake.records += 1
            self._bad(RecordFault(_TOO_LONG, self._too_long), bytes(data), length, start, self.count)
            self.count += 1
            return
        if self._marked is not None:
            yield from self._marked_documents(self._marked, bytes(data), start)
            return
        out = self._reading.buffers.values.grow(len(data) + 1)
        offsets, places, numbers, left, lines, blank = json_texts(
            data, self._path, np.frombuffer(out, np.uint8), self._limit
        )
        self._intake.blank += blank
        self._intake.records += len(places)
        batch = Batch(memoryview(out)[: int(offsets[-1])], offsets)
        others: list[
            tuple[int, int, bytes]
        ] = []  # (offset in the block, number, text) of lines that were left
        for first, stop, number in left.reshape(-1, 3).tolist():
            text = self._record(bytes(data[first:stop]), start + first, self.count + number, self._text_of)
            if text is not None:
                others.append((first, number, text))
        if others:
            batch, places, numbers = _merged(batch, places, numbers, others)
        if len(batch):
            yield Documents(batch, places + np.uint64(start), lines=numbers + np.uint64(self.count))
        self.count += lines

    def _marked_documents(self, marked: MarkedRecords, data: bytes, start: int) -> Iterator[Documents]:
        """Yield the records with a loss mask."""
        texts: list[MarkedText] = []
        places: list[int] = []
        numbers: list[int] = []
        for line in data.removesuffix(b"\n").split(b"\n") if data else ():
            if len(line) <= self._limit and not line.strip(b" \t\r"):
                self._intake.blank += 1
            elif (text := self._record(line, start, self.count, marked.text_of)) is not None:
                texts.append(text)
                places.append(start)
                numbers.append(self.count)
            self.count += 1
            start += len(line) + 1
        return marked_documents(texts, places, numbers)

    def _text_of(self, record: Any) -> bytes:
        text = text_at(record, self._rules.text_path)
        data = encoded(text, self._rules.invalid == "replace")
        self._intake.replaced += surrogate_count(text)
        return data

    def _record(self, line: bytes, place: int, number: int, text_of: Callable[[Any], _Text]) -> _Text | None:
        """Return what `text_of` makes of the record in a line, or None for a bad record, which is reported."""
        self._intake.records += 1
        try:
            if len(line) > self._limit:
                raise RecordFault(_TOO_LONG, self._too_long)
            repaired, bad = self._intake.repair(line)
            if bad >= 0:
                raise RecordFault(INVALID_UTF8, utf8.invalid_byte(place + bad, line[bad]))
            return text_of(json_of(str(repaired, "utf-8"), place, allows_repeats=self._marked is None))
        except RecordFault as fault:
            self._bad(fault, line, len(line), place, number)
            return None

    def _bad(self, fault: RecordFault, line: bytes, length: int, place: int, number: int) -> None:
        kept = line[: min(KEPT_BYTES, self._limit)] if fault.reason == _TOO_LONG else line
        record = BadRecord(fault.reason, str(fault), place, kept, length, number)
        self._intake.bad(self._reading.source_index, self._reading.source, record)


def _merged(
    batch: Batch,
    places: NDArray[np.uint64],
    numbers: NDArray[np.uint64],
    others: list[tuple[int, int, bytes]],
) -> tuple[Batch, NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the texts of lines with the (place, number, text) of other lines, in order."""
    view = memoryview(batch.text)
    texts: list[Buffer] = [view[start:stop] for start, stop in pairwise(batch.offsets.tolist())]
    rows = sorted([*zip(places.tolist(), numbers.tolist(), texts, strict=True), *others], key=itemgetter(0))
    return (
        Batch.of([text for *_, text in rows]),
        np.array([place for place, *_ in rows], np.uint64),
        np.array([number for _, number, _ in rows], np.uint64),
    )
