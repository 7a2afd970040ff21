"""Tokens as boxes of text: which ids make which characters, with nothing in it that could drive a page or a
terminal.

A character whose bytes are spread over several tokens cannot be shown in parts, so these tokens share a box,
which names all their ids. Everything that is no printable character is spelled out, bytes that are no UTF-8
too: direction marks, above all, which could turn the text around them. Invariant: the boxes' ids in their order
are the ids given."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

LARGEST_BOX = 8  # tokens: what is not a character by then is bytes
SPELLED = {"\n": "↵", "\t": "⇥", "\r": "␍", "\u00a0": "␣"}
LETTER_PLACE = "\u25cc"


class Part(NamedTuple):
    """A stretch of a box: text as it is, or spelled out because it cannot be shown."""

    text: str
    is_spelled: bool


class Box(NamedTuple):
    """Tokens that are shown together, nearly always one. data: their bytes, None if an id has no entry."""

    ids: tuple[int, ...]
    data: bytes | None


def boxes(ids: list[int], entries: dict[int, bytes]) -> Iterator[Box]:
    """[226, 130, 172, 5] -> one box of three ids with the bytes of "€", and one of the id 5."""
    held: list[int] = []
    data = b""
    for id_ in ids:
        entry = entries.get(id_)
        if entry is None:
            yield from _apart(held, entries)
            held, data = [], b""
            yield Box((id_,), None)
            continue
        held.append(id_)
        data += entry
        if not _is_begun(data):
            # whole characters, or bytes that no continuation makes valid: those are shown token by token
            if len(held) == 1 or _is_utf8(data):
                yield Box(tuple(held), data)
            else:
                yield from _apart(held, entries)
            held, data = [], b""
        elif len(held) == LARGEST_BOX:
            yield from _apart(held, entries)
            held, data = [], b""
    yield from _apart(held, entries)


def _apart(ids: list[int], entries: dict[int, bytes]) -> Iterator[Box]:
    for id_ in ids:
        yield Box((id_,), entries[id_])


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_begun(data: bytes) -> bool:
    """Whether it ends within a character and is UTF-8 up to there."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False


def parts(data: bytes) -> Iterator[Part]:
    """b"a\\n\\xff" -> ("a", as it is), ("↵", spelled), ("\\n", as it is), ("FF", spelled). A mark without the letter
    that it belongs to sits on a dotted circle: without, it would lie on the box before, with no width to point at."""
    plain = ""
    text = data.decode("utf-8", "surrogateescape")
    if text and unicodedata.category(text[0]).startswith("M"):
        plain = LETTER_PLACE
    for char in text:
        if char == " " or char.isprintable():
            plain += char
            continue
        if plain:
            yield Part(plain, False)
            plain = ""
        if "\udc80" <= char <= "\udcff":
            yield Part(f"{ord(char) - 0xDC00:02X}", True)
        elif char in SPELLED:
            yield Part(SPELLED[char], True)
            if char in "\n\t":
                plain = char  # the break or gap itself stays
        else:
            yield Part(f"U+{ord(char):04X}", True)
    if plain:
        yield Part(plain, False)
