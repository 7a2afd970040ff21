"""The documents of a part of a file, a few MiB at a time, so that memory depends on neither documents nor file.

A document starts at byte 0 and after each separator, as `bytes.split` finds separators: from left to right, not
overlapping. A part [start, stop) owns the documents whose first byte lies in it; the last of them may end far beyond
`stop`. A separator at the very end of the file starts no further document. So every byte of a file belongs to exactly
one document or separator, whatever the parts, and `tests/inputs/test_stretches.py` holds that against `bytes.split`.

A *stretch* is a run of whole documents with the separators between them. A document longer than a stretch comes in
pieces.

Occurrences of most separators never meet. Of those that overlap themselves ("aa", "\\n\\n") only some are found by
the scan from byte 0; `tokenmill/inputs/overlapping.py` says which, without that scan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tokenmill.inputs.overlapping import in_step, overlaps_itself
from tokenmill.inputs.text_window import TextWindow

# Text, ids and narrow ids stay in the 2 MiB cache of a core: 7 % of the encoding stage against 4 MiB; 512 KiB is no
# better, and a call's fixed cost would begin to show.
STRETCH_BYTES = 1 << 20


class Stretch(NamedTuple):
    """Bytes [start, stop) of the file: whole documents, or a piece of a long one; final: its last piece."""

    start: int
    stop: int
    is_piece: bool = False
    final: bool = True


def own_stretches(
    window: TextWindow, separator: bytes, start: int, stop: int, stretch_bytes: int = STRETCH_BYTES
) -> Iterator[Stretch]:
    """The documents that start in [start, stop) of the window's file, in order; no documents: nothing.

    "a|bb|cccccc|d" with "|" and stretches of 5 bytes: "a|bb" whole, then "ccccc" and "c" in pieces, then "d" whole.
    Reads from `start` less the separator's length on, mostly forward. The window holds the stretch when it is given,
    and memory is that of a stretch and two separators.
    """
    stop = min(stop, window.size)
    if start >= stop:
        return
    place = 0 if start == 0 else _first_start(window, separator, start, stop, stretch_bytes)
    while 0 <= place < stop:
        seen = min(place + stretch_bytes, window.size)
        window.cover(place, seen)
        last = _last_start(window, separator, place, min(seen, stop))
        if seen >= stop:  # `last` is the last one of all that are owned
            end = window.find(separator, last, seen)
            if end >= 0 or seen == window.size:
                yield Stretch(place, end if end >= 0 else seen)
                return
        if last > place:
            yield Stretch(place, last - len(separator))
            place = last
            continue
        end = place
        for piece in _pieces(window, separator, place, stretch_bytes):
            yield piece
            end = piece.stop
        place = end + len(separator)


def _pieces(window: TextWindow, separator: bytes, place: int, stretch_bytes: int) -> Iterator[Stretch]:
    """The document that starts at `place`, cut anywhere."""
    overlap = len(separator) - 1  # a separator may begin in the last bytes that are seen
    while True:
        seen = min(place + stretch_bytes + overlap, window.size)
        end = window.find(separator, place, seen)
        if end >= 0 or seen == window.size:
            yield Stretch(place, end if end >= 0 else seen, is_piece=True)
            return
        yield Stretch(place, seen - overlap, is_piece=True, final=False)
        place = seen - overlap


def _first_start(window: TextWindow, separator: bytes, start: int, stop: int, stretch_bytes: int) -> int:
    """The first document start in [start, stop), start > 0; -1 if there is none."""
    length = len(separator)
    scan = max(0, start - length)
    if overlaps_itself(separator):
        window.cover(scan, min(stop, scan + stretch_bytes))
        scan = in_step(window, separator, scan, 0)
    while 0 <= (place := _find_far(window, separator, scan, stop - 1, stretch_bytes)) < start - length:
        scan = place + length
    return place + length if place >= 0 else -1


def _find_far(window: TextWindow, separator: bytes, start: int, stop: int, stretch_bytes: int) -> int:
    """Where the first separator within [start, stop) begins, or -1; looks at no more than a stretch at once."""
    while True:
        seen = min(stop, start + stretch_bytes + len(separator) - 1)
        place = window.find(separator, start, seen)
        if place >= 0 or seen == stop:
            return place
        start += stretch_bytes


def _last_start(window: TextWindow, separator: bytes, first: int, stop: int) -> int:
    """The last document start in [first, stop), given that `first` is one."""
    place = window.rfind(separator, first, stop - 1)
    if place < 0:
        return first
    if overlaps_itself(separator):
        place = in_step(window, separator, place, first)
        while (following := window.find(separator, place + len(separator), stop - 1)) >= 0:
            place = following
    return place + len(separator)
