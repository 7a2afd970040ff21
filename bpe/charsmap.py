"""SentencePiece's charsmap as SentencePiece applies it: at each place the longest key there gives way to its text.

Hugging Face's Precompiled has the same tables and another rule, the shortest key of a grapheme cluster, which loses
what follows it ("e" with two accents). So this is a component of its own, which no tokenizer.json of theirs can say.

The charsmap: the bytes of a double array, uint32; a double array (darts-clone) of UTF-8 keys, uint32 each; the
replacements, each ended by NUL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.errors import BadTokenizer

_LABEL: Final = 1 << 31 | 0xFF


@dataclass(frozen=True)
class Charsmap:
    """The replacements of a model's precompiled_charsmap. BadTokenizer if damaged."""

    charsmap: bytes

    def __post_init__(self) -> None:
        try:
            _core.Normalizer([("precompiled", self.charsmap, b"")])
        except ValueError as error:
            raise BadTokenizer(str(error)) from None

    def __repr__(self) -> str:
        return f"Charsmap({len(self.charsmap)} bytes)"

    def apply(self, text: str) -> str:
        """The text with its longest keys replaced, from left to right."""
        parts: list[str] = []
        done = 0
        for match in self._first_characters.finditer(text):
            if match.start() < done:
                continue
            found = self._longest(text, match.start())
            if found is not None:
                stop, replacement = found
                parts += (text[done : match.start()], replacement)
                done = stop
        return "".join([*parts, text[done:]])

    def _longest(self, text: str, start: int) -> tuple[int, str] | None:
        """Where the longest key at `start` ends, and its replacement."""
        units, place, found = self._unit_list, _offset(self._unit_list[0]), None
        for index in range(start, len(text)):
            for byte in text[index].encode():
                place ^= byte
                if byte == 0 or place >= len(units) or units[place] & _LABEL != byte:
                    return found
                unit = units[place]
                place ^= _offset(unit)
            if unit >> 8 & 1 and place < len(units):
                found = index + 1, self._text_at(units[place] & 0x7FFFFFFF)
        return found

    def _text_at(self, start: int) -> str:
        stop = self._texts.find(b"\0", start)
        return self._texts[start : stop if stop >= 0 else len(self._texts)].decode()

    @cached_property
    def _size(self) -> int:
        return int.from_bytes(self.charsmap[:4], "little")

    @cached_property
    def _texts(self) -> bytes:
        return self.charsmap[4 + self._size // 4 * 4 :]

    @cached_property
    def _units(self) -> NDArray[np.uint32]:
        return np.frombuffer(self.charsmap, "<u4", self._size // 4, 4)

    @cached_property
    def _unit_list(self) -> list[int]:
        units: list[int] = self._units.tolist()
        return units

    @cached_property
    def _first_characters(self) -> re.Pattern[str]:
        """Matches where a key may begin: at a character that is one, or begins one that its neighbour goes on."""
        units = self._units.astype(np.int64)
        points = np.concatenate([np.arange(1, 0xD800), np.arange(0xE000, 0x110000)])
        codes = np.frombuffer("".join(map(chr, points)).encode(), np.uint8).astype(np.int64)
        starts = np.flatnonzero((codes & 0xC0) != 0x80)
        lengths = np.diff(np.append(starts, len(codes)))
        place, unit = np.full(len(points), _offset(int(units[0]))), np.zeros(len(points), np.int64)
        for index in range(4):
            goes_on = np.flatnonzero(lengths > index)
            known, unit[goes_on], place[goes_on] = _step(units, place[goes_on], codes[starts[goes_on] + index])
            dead = goes_on[~known]
            points, starts, lengths, place, unit = (
                np.delete(each, dead) for each in (points, starts, lengths, place, unit)
            )
        has_leaf = (unit >> 8 & 1).astype(bool)
        behind_ascii = any(_step(units, place, np.full(len(place), byte))[0].any() for byte in range(1, 0x80))
        behind = "" if behind_ascii else r"(?=[^\x00-\x7F])"  # an accent, nearly always
        return re.compile(f"{_class(points[has_leaf])}|{_class(points)}{behind}")


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 1 << 9) >> 6)


def _step(
    units: NDArray[np.int64], place: NDArray[np.int64], byte: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Of each state of the double array: whether it goes on by a byte, the unit there, and the state behind."""
    stepped = place ^ byte
    unit = units[np.minimum(stepped, len(units) - 1)]
    known = (stepped < len(units)) & (unit & _LABEL == byte)
    return known, unit, stepped ^ (unit >> 10 << ((unit & 1 << 9) >> 6))


def _class(points: NDArray[np.int64]) -> str:
    """The characters as an expression."""
    if not len(points):
        return r"(?!)"
    ends = np.flatnonzero(np.diff(points) != 1)
    firsts, lasts = points[np.append(0, ends + 1)].tolist(), points[np.append(ends, len(points) - 1)].tolist()
    return f"[{''.join(f'{re.escape(chr(a))}-{re.escape(chr(b))}' for a, b in zip(firsts, lasts, strict=True))}]"
