"""By what a page knows that its browser changes a character as the tokenizer does, of whatever Unicode version it is.

Of each character that a component changes there is a checksum over what becomes of it: alone, behind a mark of a high
combining class and before one of a low class. These tell how it decomposes, composes and is ordered; Unicode's
stability policy leaves nothing else to differ between versions. The page computes the same of the characters that a
text has; those without a checksum have to stay as they are.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bpe.normalizers import Component, Normalizer

_BLOCK: Final = 256  # code points
_PLANES: Final = (0, 1, 2, 3, 14)  # those that have characters
_LAST: Final = "\u0345"  # of combining class 240
_FIRST: Final = "\u0334"  # of class 1
# The same in all versions: surrogates are no characters, syllables of Hangul are made by arithmetic.
_FIXED: Final = range(0xAC00, 0xE000)


@lru_cache(maxsize=8)
def changed_characters(component: Component, in_order: bool) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """The code points that the component changes, ascending, and the CRC-32 of what becomes of each, in UTF-16.

    in_order: also those that it moves among marks. Some 0.2 s."""
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
    """What is looked at of a character, a line each."""
    if character in "\r\n":
        return ""
    return f"{character}\n{_LAST}{character}\n{character}{_FIRST}" if in_order else character
