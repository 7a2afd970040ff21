"""Plain text as valid UTF-8 documents: whole ones, and long ones in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tokenmill.errors import printable
from tokenmill.inputs import _core, utf8
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.blocks import KEPT_BYTES
from tokenmill.inputs.documents import Documents, LongText, Text
from tokenmill.inputs.intake import INVALID_UTF8, BadRecord, Intake
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Source

if TYPE_CHECKING:
    from typing_extensions import Buffer


def checked_text(text: Text, source: Source, intake: Intake) -> tuple[Buffer, bool]:
    """Return (the text, repaired if the rules say so, whether it is valid UTF-8), or raise InvalidText."""
    repaired, bad = intake.repair(text.text)
    if bad >= 0 and intake.rules.stops_at_invalid:
        where, flag = printable(source.name), intake.rules.replace_flag
        raise utf8.invalid_text(text.text, bad, where, text.start, flag)
    return repaired, bad < 0


def valid_documents(
    source_index: int, source: Source, text: Text, checked: Buffer, separator: bytes, intake: Intake
) -> Documents:
    """Return the valid documents of a text. The others are bad records. checked: the text of `checked_text`."""
    separators = _core.find_separators(
        text.text, separator
    )  # offsets are those in the source, before any repair
    places = np.insert(separators + np.uint64(len(separator)), 0, 0) + np.uint64(text.start)
    documents = bytes(checked).split(separator)
    intake.records += len(documents)
    bad_rows = []
    if _core.validate_utf8(checked) >= 0:
        for row, (document, place) in enumerate(zip(documents, places.tolist(), strict=True)):
            if (bad := _core.validate_utf8(document)) >= 0:
                detail = utf8.invalid_byte(place + bad, document[bad])
                record = BadRecord(INVALID_UTF8, detail, place, document, len(document))
                intake.bad(source_index, source, record)
                bad_rows.append(row)
    return Documents(Batch.of(documents), places).without(np.array(bad_rows, np.int64))


class PiecedText:
    """A document of plain text. Read `texts` to its end; then `fault` says why the document is bad, "" if it is not.

    start: offset of the document in its source.
    """

    def __init__(self, document: LongText, source: Source, rules: IntakeRules) -> None:
        self.start, self.fault = document.start, ""
        self._pieces, self._name, self._rules = document.pieces, printable(source.name), rules
        self._length = self._replaced = 0
        self._head = b""

    def texts(self) -> Iterator[Buffer]:
        """Yield the document as valid UTF-8, cut between characters. Raise InvalidText if the rules say so."""
        offset = self.start
        for text in utf8.whole_characters(self._measured()):
            if not self.fault:
                repaired, replaced, bad = utf8.repair(text, self._rules.invalid == "replace")
                self._replaced += replaced
                if bad < 0:
                    yield repaired
                elif self._rules.stops_at_invalid:
                    raise utf8.invalid_text(text, bad, self._name, offset, self._rules.replace_flag)
                else:
                    self.fault = utf8.invalid_byte(offset + bad, text[bad])
            offset += len(text)

    def _measured(self) -> Iterator[tuple[Buffer, bool]]:
        for piece, is_last in self._pieces:
            view = memoryview(piece)
            self._length += view.nbytes
            self._head += bytes(view[: KEPT_BYTES - len(self._head)])
            yield piece, is_last

    def count_in(self, intake: Intake, source_index: int, source: Source) -> None:
        """Count the replaced bytes of the document, and the document as a bad record if it is one."""
        intake.replaced += self._replaced
        if self.fault:
            record = BadRecord(INVALID_UTF8, self.fault, self.start, self._head, self._length)
            intake.bad(source_index, source, record)


def cut_between_characters(text: memoryview, piece_bytes: int) -> Iterator[memoryview]:
    """Yield valid UTF-8 in pieces of whole characters. piece_bytes: maximum size, at least 4."""
    start = 0
    while start < len(text):
        stop = min(start + max(piece_bytes, 4), len(text))
        while stop < len(text) and text[stop] & 0xC0 == 0x80:
            stop -= 1
        yield text[start:stop]
        start = stop
