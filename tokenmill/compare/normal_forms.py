"""Checksums that detect whether a browser with another Unicode version normalizes a character differently.

Each character that a component changes has a checksum of its normalized forms: alone, after a mark of a high combining
class, and before a mark of a low class. These forms show how it decomposes, composes and is ordered. Under Unicode's
stability policy, nothing else can differ between versions. The page computes the same checksums for the characters of a
text. Characters without a checksum must not change.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bpe.normalizers import Component, Normalizer

_BLOCK: Final = 256  # code points
_PLANES: Final = (0, 1, 2, 3, 14)  # planes with assigned characters
_LAST: Final = "\u0345"  # of combining class 240
_FIRST: Final = "\u0334"  # of class 1
# The same in all versions: surrogates are not characters, and Hangul syllables are composed by arithmetic.
_FIXED: Final = range(0xAC00, 0xE000)


@lru_cache(maxsize=8)
def changed_characters(component: Component, in_order: bool) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the code points that the component changes, ascending, and the CRC-32 of each result in UTF-16.

    in_order: include characters that are only reordered among marks.

    Takes about 0.2 s.
    """
    normalizer = Normalizer((component,))
    points: list[int] = []
    sums: list[int] = []
    for plane in _PLANES:
        for start in range(plane << 16, (plane + 1) << 16, _BLOCK):
            if start in _FIXED:
                continue
            texts = [character_texts(chr(point), in_order) for point in range(start, start + _BLOCK)]
            whole = "\r".join(texts)
            changed = normalizer.apply_to_text(whole)
            if changed == whole:
                continue
            for offset, (before, after) in enumerate(zip(texts, changed.split("\r"), strict=True)):
                if before != after:
                    points.append(start + offset)
                    sums.append(zlib.crc32(after.encode("utf-16-le")))
    return np.array(points, np.int64), np.array(sums, np.uint32)


def character_texts(character: str, in_order: bool) -> str:
    """Return the texts to check for a character, one per line."""
    if character in "\r\n":
        return ""
    return f"{character}\n{_LAST}{character}\n{character}{_FIRST}" if in_order else character
