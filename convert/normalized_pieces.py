"""A text that comes in pieces, cut at special tokens and normalized between them, in bounded memory.

Special tokens are looked for in the text as it is; what lies between two of them is normalized by itself. Normalizing
(NFC) looks no further than to the next character that begins a new one for certain, so a stretch may end before such a
character, whatever follows it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpe import _core
from bpe.tokenizer import Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Stretches:
    """The text between special tokens, stretch after stretch. special: the number of the token that ended it, or -1.

    Each piece is searched once, however many special tokens are in it, and the end of the one before, where a token may
    begin.
    """

    def __init__(self, pieces: Iterable[Buffer], special_tokens: Sequence[bytes]) -> None:
        self._pieces = iter(pieces)
        self._tokens = list(special_tokens)
        self._reach = max(map(len, special_tokens), default=1) - 1
        self._held = b""
        self._start = 0  # of what is not yet given
        self._decided = 0  # special tokens that begin before are known
        self._found: Iterator[tuple[int, int]] = iter(())  # (start, number) of them, ascending
        self._final = False
        self.special = -1

    def next(self) -> Iterator[bytes]:
        """The pieces of the next stretch, each of whole characters; to be read to the end."""
        self.special = -1
        while True:
            for place, which in self._found:
                self.special = which
                yield self._held[self._start : place]
                self._start = place + len(self._tokens[which])
                return
            if self._start < self._decided:
                yield self._held[self._start : self._decided]
                self._start = self._decided
            if self._final:
                return
            piece = next(self._pieces, None)
            self._final = piece is None
            self._held = self._held[self._start :] + (bytes(piece) if piece is not None else b"")
            self._start = 0
            self._search()

    def _search(self) -> None:
        """Find the special tokens that begin where one ends within what is held, however long it is."""
        held = self._held
        decided = len(held) if self._final else max(0, len(held) - self._reach)
        while 0 < decided < len(held) and held[decided] & 0xC0 == 0x80:
            decided -= 1
        self._decided = decided
        self._found = iter(())
        if self._tokens and held:
            starts, which = _core.find_special_tokens(held, self._tokens)
            known = int(np.searchsorted(starts, np.uint64(decided)))
            self._found = zip(starts[:known].tolist(), which[:known].tolist(), strict=True)


def first_special(text: Buffer, special_tokens: Sequence[bytes]) -> tuple[int, int]:
    """(start, number) of the first special token in the text; none: (its length, -1)."""
    if special_tokens:
        starts, which = _core.find_special_tokens(text, special_tokens)
        if len(starts):
            return int(starts[0]), int(which[0])
    return memoryview(text).nbytes, -1


def normalized(tokenizer: Tokenizer, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces joined, as the tokenizer's normalizer has them."""
    held = bytearray()
    try_at = 0
    for piece in pieces:
        held += piece
        if len(held) < try_at:
            continue
        cut = last_border(held)
        yield tokenizer.normalize(bytes(held[:cut]))
        del held[:cut]
        # Only a run of marks has no border; it is one character to the normal form, and looked at ever more rarely.
        try_at = 0 if cut else 2 * len(held)
    yield tokenizer.normalize(bytes(held))


def last_border(text: bytearray) -> int:
    """The start of the last character before which the text may be cut, 0 if there is none. Valid UTF-8."""
    stop = len(text)
    while stop > 0:
        start = stop - 1
        while text[start] & 0xC0 == 0x80:
            start -= 1
        if is_border(text[start:stop]):
            return start
        stop = start
    return 0


def is_border(character: bytes | bytearray) -> bool:
    """Whether the UTF-8 of a character is one that neither composes with what stands before it nor moves there."""
    if len(character) == 1:
        return True
    return unicodedata.combining(character.decode()) == 0 and not len(
        _core.doubtful_for_nfc(bytes(character))
    )
