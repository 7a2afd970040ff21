"""Find the part of a source that a text chunk counts.

Each chunk searches only its own bytes for an offset at which the text may be cut. Its part extends from this offset to
the cut of the next chunk that has one. The parts of all chunks therefore cover the text exactly once, whichever process
computes them. A chunk without a cut has no part, and the part of the chunk before extends across it.

A chunk of records, or of text that is read as documents, counts the ones that begin in its bytes.
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
_BESIDE: Final = 8  # bytes: one character on each side


class Cuts:
    """Finds the parts of sources that text chunks count.

    last_cut: see `PretokenCounter.last_cut`. None: cutting a text requires all the text before the cut.
    of_documents: whether text is read as documents.
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
        # A special token or character that begins before a window ends within this margin.
        self._margin = max(map(len, special_tokens), default=0) + _BESIDE
        self._window_bytes = max(_WINDOW_BYTES, 8 * self._margin)

    def part(self, source: File, piece: Piece) -> Source | None:
        """Return the part of a source that a chunk counts, or None. piece: the bytes of the source in the chunk."""
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
        """Return an offset in (start, stop] to cut at, None if there is none. Return 0 at the beginning of the file.

        Windows that are not valid UTF-8 are skipped, so text with replaced bytes is cut only in valid windows.
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
