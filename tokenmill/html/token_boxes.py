"""Groups tokens into boxes of whole characters, and splits their text into printable and spelled parts.

Tokens that make up one character share a box. All other bytes are spelled out, such as invalid UTF-8 and direction
marks, which could reorder the text around them. The IDs of all boxes, in order, are the given IDs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

MAX_BOX_TOKENS = 8  # more tokens than this are not one character
SPELLED = {"\n": "↵", "\t": "⇥", "\r": "␍", "\u00a0": "␣"}
DOTTED_CIRCLE = "\u25cc"


class Part(NamedTuple):
    """A part of a box: printable text, or a name for a character or byte that is not printable."""

    text: str
    is_spelled: bool


class Box(NamedTuple):
    """Tokens that are shown together. data: their bytes; None for an ID without an entry."""

    ids: tuple[int, ...]
    data: bytes | None


def boxes(ids: list[int], entries: dict[int, bytes]) -> Iterator[Box]:
    """[226, 130, 172, 5] -> one box of three IDs with the bytes of "€", and one of the ID 5."""
    held: list[int] = []
    for id_ in ids:
        held.append(id_)
        data = b"".join(entries.get(one, b"\xff") for one in held)  # no character has this byte
        try:
            data.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data" and len(held) < MAX_BOX_TOKENS:
                continue
            yield from (Box((one,), entries.get(one)) for one in held)
        else:
            yield Box(tuple(held), data)
        held = []
    yield from (Box((one,), entries.get(one)) for one in held)


def parts(data: bytes) -> Iterator[Part]:
    """b"a\\n\\xff" -> ("a", printable), ("↵", spelled), ("\\n", printable), ("FF", spelled).

    A combining mark without its letter gets a dotted circle, which makes it visible.
    """
    text = data.decode("utf-8", "surrogateescape")
    plain = DOTTED_CIRCLE if text and unicodedata.category(text[0]).startswith("M") else ""
    for char in text:
        if char == " " or char.isprintable():
            plain += char
            continue
        if plain:
            yield Part(plain, False)
        plain = char if char in "\n\t" else ""  # the break or gap stays
        if "\udc80" <= char <= "\udcff":
            yield Part(f"{ord(char) - 0xDC00:02X}", True)
        else:
            yield Part(SPELLED.get(char, f"U+{ord(char):04X}"), True)
    if plain:
        yield Part(plain, False)
