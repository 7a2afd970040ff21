"""Where the documents of a part of a file lie.

A document starts at byte 0 and after each separator, as `bytes.split` finds separators: from left to right, not
overlapping. A part [start, stop) owns the documents whose first byte lies in it; the last of them may end far beyond
`stop`. A separator at the very end of the file starts no further document. Every byte of a file belongs to exactly
one document or separator, whatever the parts, and `tests/convert/test_cut.py` holds that against `bytes.split`.

Occurrences of most separators never meet. Of those that overlap themselves ("aa", "\\n\\n") only some are found by
the scan from byte 0; `convert/overlapping.py` says which, without that scan.
"""

from __future__ import annotations

from convert.overlapping import in_step, overlaps_itself
from convert.text_window import TextWindow

# How much further to read at a time for the end of a document that goes on beyond the part: most are shorter.
READ_AHEAD_BYTES = 64 << 10


def own_documents(window: TextWindow, separator: bytes, start: int, stop: int) -> tuple[int, int] | None:
    """[begin of the first, end of the last) document that starts in [start, stop); None if none does.

    Between them lie whole documents with separators in between. Reads from `start` less the separator's length to
    the end of the last document.
    """
    stop = min(stop, window.size)
    if start >= stop:
        return None
    first = 0 if start == 0 else _first_start(window, separator, start, stop)
    if first < 0:
        return None
    last = _last_start(window, separator, first, stop)
    return first, _document_end(window, separator, last)


def _first_start(window: TextWindow, separator: bytes, start: int, stop: int) -> int:
    """The first document start in [start, stop), start > 0; -1 if there is none."""
    length = len(separator)
    scan = max(0, start - length)
    window.cover(scan, stop)
    if overlaps_itself(separator):
        scan = in_step(window, separator, scan, 0)
    place = window.find(separator, scan, stop - 1)
    while 0 <= place < start - length:
        place = window.find(separator, place + length, stop - 1)
    return place + length if place >= 0 else -1


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


def _document_end(window: TextWindow, separator: bytes, start: int) -> int:
    """Where the document that starts at `start` ends: at the next separator or at the end of the file."""
    seen = start
    stop = max(window.stop, start)
    while True:
        stop = min(window.size, max(stop, seen))
        place = window.find(separator, seen, stop)
        if place >= 0:
            return place
        if stop == window.size:
            return stop
        # A separator may begin in what was seen: its last bytes are looked at again.
        seen = max(seen, stop - len(separator) + 1)
        stop += max(READ_AHEAD_BYTES, stop - start)
