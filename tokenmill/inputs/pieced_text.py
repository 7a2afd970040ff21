"""Documents that come in pieces: checked for valid UTF-8 and searched for special tokens while they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tokenmill.errors import printable
from tokenmill.inputs import _core, utf8
from tokenmill.inputs.blocks import KEPT_BYTES
from tokenmill.inputs.documents import LongText
from tokenmill.inputs.intake import INVALID_UTF8, BadRecord, Intake
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Source

if TYPE_CHECKING:
    from typing_extensions import Buffer


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


class SpecialSearch:
    """Finds the first special token in a text that comes in pieces.

    found: the token, "" if there is none so far.
    place: its offset in the text, -1 if there is none.
    """

    def __init__(self, special_tokens: list[bytes]) -> None:
        self._special_tokens = special_tokens
        self._reach = max((len(token) - 1 for token in special_tokens), default=0)
        self._tail = b""
        self._passed = 0  # bytes of the text before the tail
        self.found, self.place = "", -1

    def through(self, pieces: Iterator[Buffer]) -> Iterator[Buffer]:
        """Yield the pieces unchanged, each after the search."""
        for piece in pieces:
            if self._special_tokens and not self.found:
                text = self._tail + bytes(piece)
                starts, which = _core.find_special_tokens(text, self._special_tokens)
                if len(which):
                    self.found = self._special_tokens[int(which[0])].decode()
                    self.place = self._passed + int(starts[0])
                self._tail = text[max(0, len(text) - self._reach) :]
                self._passed += len(text) - len(self._tail)
            yield piece


def cut_between_characters(text: memoryview, piece_bytes: int) -> Iterator[memoryview]:
    """Yield valid UTF-8 in pieces of whole characters. piece_bytes: maximum size, at least 4."""
    start = 0
    while start < len(text):
        stop = min(start + max(piece_bytes, 4), len(text))
        while stop < len(text) and text[stop] & 0xC0 == 0x80:
            stop -= 1
        yield text[start:stop]
        start = stop
