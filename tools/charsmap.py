"""Build a SentencePiece `precompiled_charsmap` from rules, for the generator of tables and for tests.

The format is defined by sentencepiece's normalizer.cc: the size of a double array in bytes as uint32, the double array
of the keys' UTF-8 (darts-clone), then the replacements, each ended by a NUL. Here every node has a separate block of
256 units.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

_LEAF: Final = 1 << 8
_WIDE: Final = 1 << 9  # the offset counts blocks of 256


def build(rules: Mapping[str, str]) -> bytes:
    """Return the charsmap that replaces each key by its value. Keys must not contain NUL."""
    tree: dict[int, Any] = {}
    values: dict[str, int] = {}
    texts = bytearray()
    for key, value in rules.items():
        if value not in values:
            values[value] = len(texts)
            texts += value.encode() + b"\0"
        node = tree
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[-1] = values[value]
    units: list[int] = [0] * 256
    waiting = [(tree, 0)]
    while waiting:
        node, place = waiting.pop()
        base = len(units) | place & 255
        units += [0] * 256
        units[place] |= (place ^ base) >> 8 << 10 | _WIDE
        if -1 in node:
            units[place] |= _LEAF
            units[base] = node[-1] | 1 << 31
        for byte, child in node.items():
            if byte >= 0:
                units[base ^ byte] = byte
                waiting.append((child, base ^ byte))
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + bytes(texts)
