"""Which occurrences of a separator that overlaps itself, such as "aa" or "\\n\\n", a scan from byte 0 finds.

The scan takes the leftmost occurrence, goes on behind it, and so steps over those that overlap it. A place is *in step*
if a scan from there finds what the scan from byte 0 finds from there on. An occurrence into which no other reaches from
the left is in step, since nothing found before can end inside it. So we go back over overlapping occurrences to
the first of their chain, and then forward again.

Neighbours of a chain mostly lie one `shift` apart again and again (a file of newlines), and there the text repeats
itself with that period: to go back, bytes are compared with those `shift` further, a block at a time; to go forward,
every ceil(length / shift)-th occurrence is found, which is arithmetic. Work is linear in the length of the chain at
some GB/s, memory a block, whatever the file.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tokenmill.inputs.text_window import TextWindow

COMPARED_BYTES = 1 << 20


@cache
def overlaps_itself(separator: bytes) -> bool:
    """Whether two occurrences can share bytes: "aa" and "aba" can, "<|endoftext|>" cannot."""
    return any(separator.startswith(separator[shift:]) for shift in range(1, len(separator)))


def in_step(window: TextWindow, separator: bytes, place: int, floor: int) -> int:
    """The last place at or before `place` that is in step; `floor`, at or before it, is known to be.

    In "xaaaaa" with "aa" the scan finds 1 and 3: in_step(..., place=4, floor=0) -> 3. The window moves.
    """
    last = _reaching_into(window, separator, place, floor)
    if last < 0:
        return place
    runs: list[tuple[int, int, int]] = []  # first occurrence, shift, last occurrence; from right to left
    while (before := _reaching_into(window, separator, last, floor)) >= 0:
        shift = last - before
        repeats_from = _repeats_from(window, before, shift, floor)
        first = before - (before - repeats_from) // shift * shift
        runs.append((first, shift, last))
        last = first
    found = last  # the first of the chain
    for first, shift, last in reversed(runs):
        while found < first:
            following = window.find(separator, found + len(separator), last + len(separator))
            if following < 0:
                break
            found = following
        else:
            stride = -(-len(separator) // shift) * shift
            found += (last - found) // stride * stride
    return found


def _reaching_into(window: TextWindow, separator: bytes, place: int, floor: int) -> int:
    """The last occurrence in [floor, place) that ends behind `place`, -1 if there is none."""
    begin, end = place - len(separator) + 1, place + len(separator) - 1
    return window.rfind(separator, max(floor, begin), min(window.size, end))


def _repeats_from(window: TextWindow, place: int, shift: int, floor: int) -> int:
    """The least start from `floor` on such that each byte of [start, place) equals the one `shift` behind it."""
    while place > floor:
        begin = max(floor, place - COMPARED_BYTES)
        text = np.frombuffer(window.view(begin, place + shift), dtype=np.uint8)
        different = np.flatnonzero(text[:-shift] != text[shift:])
        if different.size:
            return begin + int(different[-1]) + 1
        place = begin
    return place
