"""The part of a source that a text chunk counts: what begins in its bytes, cut where the text may be cut.

Of text each chunk looks for a place to cut in its own bytes, by these bytes alone; its part goes from there to the
place of the next chunk that has one. So all parts together are the text, whoever looks for them and however often. A
chunk without such a place has no part, and the one before it goes on through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bpe.pretoken_counts.sources import FileRange
from tokenmill.inputs.source_list import Piece
from tokenmill.inputs.utf8 import cut_character_bytes
from tokenmill.stores import RandomFile, read_at

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bpe.pretoken_counts.sources import Source
    from tokenmill.inputs.source_list import Source as File

_WINDOW_BYTES: Final = 64 << 10
_CONTINUATION: Final = bytes(range(0x80, 0xC0))
_BESIDE: Final = 8  # bytes: a character before and behind


class Cuts:
    """last_cut: of a text, see `PretokenCounter.last_cut`; None: text can be cut by who has all before it alone.

    of_documents: text is read as documents; a chunk counts those that begin in it.
    """

    def __init__(
        self,
        last_cut: Callable[[Buffer], int] | None,
        special_tokens: Sequence[bytes],
        chunk_bytes: int,
        of_documents: bool = False,
    ) -> None:
        self._of_documents = of_documents
        self._last_cut, self._chunk_bytes = last_cut, chunk_bytes
        # What begins before a window and reaches into it ends here.
        self._margin = max(map(len, special_tokens), default=0) + _BESIDE
        self._window_bytes = max(_WINDOW_BYTES, 8 * self._margin)

    def part(self, source: File, piece: Piece) -> Source | None:
        """What a chunk counts of a source that it has this piece of; None: nothing."""
        whole = source if source.version else Path(source.path)
        kind, size = source.kind, source.size_bytes
        is_text = kind.format == "text" and not self._of_documents
        if not kind.is_divisible or (is_text and self._last_cut is None):
            return whole if piece.start == 0 else None
        if (piece.start, piece.stop) == (0, size):
            return whole
        if not is_text:
            return FileRange(whole, piece.start, piece.stop)
        with source.open() as file:
            start = self._place(file, piece.start, piece.stop)
            if start is None or start == size:
                return None
            begin, place = piece.stop, None
            while begin < size and place is None:
                stop = min(begin + self._chunk_bytes, size)
                place, begin = self._place(file, begin, stop), stop
            return FileRange(whole, start, size if place is None else place)

    def _place(self, file: RandomFile, start: int, stop: int) -> int | None:
        """A place to cut at in (start, stop]; 0 if the file begins there, None if there is none.

        Windows that are not valid UTF-8 are passed over: where text is replaced, it is cut between such windows.
        """
        if start == 0:
            return 0
        assert self._last_cut is not None
        while start < stop:
            window = bytes(read_at(file, start, min(self._window_bytes, stop - start)))
            text = window.lstrip(_CONTINUATION)
            text = text[: len(text) - cut_character_bytes(text[-3:])]
            if _is_valid(text) and (cut := self._last_cut(text)) > self._margin:
                return start + len(window) - len(window.lstrip(_CONTINUATION)) + cut
            start += self._window_bytes - 2 * self._margin
        return None


def _is_valid(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
