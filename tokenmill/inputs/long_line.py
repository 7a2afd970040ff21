"""A JSON line too long to be held: its text goes to the encoder while the line goes by.

Whether a line is good is known at its end. So its text is taken as a document in pieces, and the document is dropped if
the line turns out bad: with the fault and the place that the line would have had as a whole
(read_jsonl.py), where invalid UTF-8 anywhere in the line comes before all else. Of a bad line its first
bytes are kept, and its length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tokenmill.inputs import _core
from tokenmill.inputs.blocks import HEAD_BYTES
from tokenmill.inputs.errors import InvalidText
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.utf8 import ValidPieces

if TYPE_CHECKING:
    from typing_extensions import Buffer


class LongLine:
    """One line; `texts` is to be read to its end, then the rest is known.

    pieces: of the line, without its LF, and whether each is the last; start: of the line in its source; line: its
    number, from 0 in the piece of the source. fault: "" if the line is good, or why it gives no text: "invalid" for
    invalid UTF-8, "too_long" beyond max_record_bytes, else as the core names it, at `place` of the source, byte `byte`.
    """

    def __init__(
        self, pieces: Iterator[tuple[Buffer, bool]], start: int, line: int, rules: IntakeRules
    ) -> None:
        self.start, self.line = start, line
        self.head = b""
        self.length = 0
        self.fault, self.place, self.byte = "", start, 0
        self._pieces = pieces
        self._limit = rules.max_record_bytes
        self._replaces = rules.invalid == "replace"
        # Of its error only the place is used, so the source needs no name.
        self._valid = ValidPieces("", "replace" if self._replaces else "error", start)
        self._json = _core.JsonLongLine([name.encode() for name in rules.text_path], self._replaces)
        self._out = np.empty(0, dtype=np.uint8)
        self._rest = b""
        self._fed = 0  # bytes of the line that the parser has used

    @property
    def is_blank(self) -> bool:
        """Whether it is no record at all."""
        return self.fault == "" and self._json.is_blank

    @property
    def replaced(self) -> int:
        """How many U+FFFD were put into the line and, if it is good, for surrogates into its text."""
        return self._valid.replaced + (self._json.replaced if not self.fault else 0)

    def texts(self) -> Iterator[NDArray[np.uint8]]:
        """The text: valid UTF-8, cut between characters, each piece valid until the next."""
        for piece, final in self._pieces:
            self._see(piece)
            if self.fault in ("invalid", "too_long"):
                continue
            try:
                text = self._valid.take(piece, final)
            except InvalidText:
                self.fault, self.place, self.byte = "invalid", self._valid.bad_place, self._valid.bad_byte
                continue
            if not self.fault:
                yield from self._parse(text, final)
            del text

    def _parse(self, text: Buffer, final: bool) -> Iterator[NDArray[np.uint8]]:
        data = self._rest + bytes(text) if self._rest else text
        size = memoryview(data).nbytes
        if len(self._out) < size + 16:
            self._out = np.empty(size + 16, dtype=np.uint8)
        used, written = self._json.feed(data, final, self._out)
        if self._json.fault != "none":
            self.fault = self._json.fault
            self.place = self.start + self._json.place
            inside = self._json.place - self._fed
            self.byte = memoryview(data)[inside] if 0 <= inside < size else 0
        self._rest = bytes(memoryview(data)[used:])
        self._fed += used
        if written:
            yield self._out[:written]

    def _see(self, piece: Buffer) -> None:
        view = memoryview(piece)
        self.length += view.nbytes
        kept = min(HEAD_BYTES, self._limit) - len(self.head)
        if kept > 0:
            self.head += bytes(view[:kept])
        if self.length > self._limit:
            self.fault, self.place = "too_long", self.start
