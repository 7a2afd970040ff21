"""A text that comes in parts, normalized as a whole in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe.normalizers import INPUT, INSIDE, SECTION, Normalizer

if TYPE_CHECKING:
    from typing_extensions import Buffer


class NormalizedParts:
    """Takes the parts of a text and gives what is decided of it after the normalizer.

    Text is held back to the last place where it may be cut whatever follows. Where there is none for long it is looked
    for ever more rarely; normalizers that look at the whole text, and expressions, hold all of it back.
    """

    def __init__(self, normalizer: Normalizer, try_bytes: int = 0, start: int = INPUT) -> None:
        """start: SECTION where the text is not the first of an input."""
        self._normalizer = normalizer
        self._core = normalizer.core
        self._held = bytearray()
        self._least = self._try_at = try_bytes
        self._start = start

    def feed(self, part: Buffer) -> bytes:
        """What is normalized for certain once this part, of whole characters, is there."""
        self._held += part
        if self._core is None or len(self._held) < self._try_at:
            return b""
        cut = self._core.last_border(self._held, len(self._held) - 1) if self._held else 0
        normalized = self._core.apply(bytes(self._held[:cut]), self._start) if cut else b""
        if cut:
            del self._held[:cut]
            if normalized or not self._core.prefixes:
                self._start = INSIDE
        self._try_at = max(self._least, 2 * len(self._held) if not cut else 0)
        return normalized

    def finish(self) -> bytes:
        """The rest; what is fed from now on is another text."""
        rest = bytes(self._held)
        self._held.clear()
        normalized = (
            self._normalizer.apply(rest, self._start)
            if self._core is None
            else self._core.apply(rest, self._start)
        )
        self._start, self._try_at = SECTION, self._least
        return normalized
