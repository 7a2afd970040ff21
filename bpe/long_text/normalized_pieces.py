"""A text that comes in pieces, cut at special tokens and normalized between them, in bounded memory.

Special tokens are looked for in the text as it is; what lies between two of them is normalized by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpe.normalized_parts import NormalizedParts
from bpe.normalizers import Normalizer
from corpus import _core

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


def normalized(normalizer: Normalizer, pieces: Iterable[bytes], start: int) -> Iterator[bytes]:
    """The pieces joined, as the normalizer has them. start: INPUT where nothing comes before, else SECTION."""
    parts = NormalizedParts(normalizer, start=start)
    for piece in pieces:
        yield parts.feed(piece)
    yield parts.finish()
