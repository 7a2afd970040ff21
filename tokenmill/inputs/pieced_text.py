"""A document of text too long to be held, checked while it goes by; and which special token is in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tokenmill.errors import printable
from tokenmill.inputs import _core, utf8
from tokenmill.inputs.blocks import HEAD_BYTES
from tokenmill.inputs.documents import LongText
from tokenmill.inputs.errors import InvalidText
from tokenmill.inputs.intake import INVALID_UTF8, BadRecord, Intake
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Source
from tokenmill.inputs.utf8 import ValidPieces

if TYPE_CHECKING:
    from typing_extensions import Buffer


class PiecedText:
    """One document; `texts` is to be read to its end, then the rest is known. fault: why it is bad, "" if it is not.
    is_blank, line: see LongLine."""

    is_blank = False
    line = None

    def __init__(self, document: LongText, source: Source, rules: IntakeRules) -> None:
        mode: utf8.Invalid = "replace" if rules.invalid == "replace" else "error"
        self.start = document.start
        self._pieces, self._rules = document.pieces, rules
        self._valid = ValidPieces(printable(source.name), mode, document.start)
        self._length = 0
        self._head = b""
        self.fault = ""

    def texts(self) -> Iterator[Buffer]:
        """The document as valid UTF-8, cut between characters; InvalidText if the rules want that."""
        for piece, final in self._pieces:
            view = memoryview(piece)
            self._length += view.nbytes
            if len(self._head) < HEAD_BYTES:
                self._head += bytes(view[: HEAD_BYTES - len(self._head)])
            if not self.fault and (text := self._checked(piece, final)) is not None:
                yield text
                del text
            if final:
                return

    def _checked(self, piece: Buffer, final: bool) -> Buffer | None:
        try:
            return self._valid.take(piece, final)
        except InvalidText as error:
            if self._rules.on_error == "fail" and self._rules.invalid == "error":
                raise
            place, byte = self._valid.bad_place, self._valid.bad_byte
            self.fault = utf8.invalid_byte(place, byte) if place >= 0 else str(error)
            return None

    def count_in(self, intake: Intake, source_index: int, source: Source) -> None:
        """Count what was replaced in it, and it as a bad record if it is one."""
        intake.replaced += self._valid.replaced
        if self.fault:
            record = BadRecord(INVALID_UTF8, self.fault, self.start, self._head, self._length)
            intake.bad(source_index, source, record)


class SpecialSearch:
    """Whether a special token is in a text that comes in pieces. found: the first one, "" if there is none; place: its
    first byte in the text."""

    def __init__(self, special_tokens: list[bytes]) -> None:
        self._special_tokens = special_tokens
        self._reach = max((len(token) - 1 for token in special_tokens), default=0)
        self._tail = b""
        self._passed = 0  # bytes of the text before the tail
        self.found, self.place = "", -1

    def through(self, pieces: Iterator[Buffer]) -> Iterator[Buffer]:
        """The pieces as they are, each looked through first."""
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
    """Valid UTF-8 in pieces of about so many bytes, 4 or more, each of whole characters."""
    start = 0
    while start < len(text):
        stop = min(start + max(piece_bytes, 4), len(text))
        while stop < len(text) and text[stop] & 0xC0 == 0x80:
            stop -= 1
        yield text[start:stop]
        start = stop
