"""What is to be known of a document in pieces besides its ids, found while they go by: no more than one is held.

Is it valid UTF-8, which special token is in it, how long is it, how does it begin, what is its hash?
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from convert.encode.clock import Clock
from convert.errors import printable
from corpus import _core, utf8
from corpus.blocks import HEAD_BYTES
from corpus.source_list import Source
from corpus.utf8 import ValidPieces

if TYPE_CHECKING:
    from typing_extensions import Buffer


class PiecedText:
    """Checks or mends the pieces of a document. length, head: of the bytes that came; text_bytes: of what is valid."""

    def __init__(self, source: Source, invalid: str, start: int, seed: int, clock: Clock) -> None:
        mode: utf8.Invalid = "replace" if invalid == "replace" else "error"
        self._valid = ValidPieces(printable(source.name), mode, start)
        self._content = _core.Xxh64(seed)
        self._clock = clock
        self._ended = False
        self.length = self.text_bytes = 0
        self.head = b""

    @property
    def replaced(self) -> int:
        return self._valid.replaced

    @property
    def content_hash(self) -> int:
        return self._content.digest()

    def valid(self, pieces: Iterator[tuple[Buffer, bool]]) -> Iterator[Buffer]:
        """The pieces as valid UTF-8, cut between characters."""
        for piece, final in pieces:
            self._clock.lap("read")
            self._see(piece, final)
            text = self._valid.take(piece, final)
            self._clock.lap("check")
            self._content.update(text)
            self.text_bytes += memoryview(text).nbytes
            self._clock.lap("split")
            yield text
            del text
            if final:
                return

    def drain(self, pieces: Iterator[tuple[Buffer, bool]]) -> None:
        """Pass over the pieces that are left."""
        while not self._ended:
            self._see(*next(pieces))

    def _see(self, piece: Buffer, final: bool) -> None:
        view = memoryview(piece)
        self.length += view.nbytes
        if len(self.head) < HEAD_BYTES:
            self.head += bytes(view[: HEAD_BYTES - len(self.head)])
        self._ended = final


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
