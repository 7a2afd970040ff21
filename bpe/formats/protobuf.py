"""Protocol Buffers' wire format, as much of it as SentencePiece's models need.

A message is a list of fields: a key, number << 3 | kind as a varint, and a value: a varint (kind 0), 8 bytes (1), a
length and so many bytes (2), or 4 bytes (5). A reader of one's own is shorter than the care for a package: the official
one costs an install and its generated module, and the `sentencepiece` package brings one only in some versions.
Nothing is copied but what is asked for, so a hostile message costs its own size and no more.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from bpe.errors import BadTokenizer

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MOST_VARINT_BYTES: Final = 10

Value = int | memoryview


def fields(message: memoryview) -> Iterator[tuple[int, int, Value]]:
    """(number, kind, value) of each field in order; BadTokenizer where the message is cut short or is none.

    Varints are uint64; the others are views of the message. b"\\x08\\x96\\x01" -> (1, VARINT, 150).
    """
    place = 0
    while place < len(message):
        start = place
        key, place = _varint(message, place)
        number, kind = key >> 3, key & 7
        if number == 0 or kind not in (VARINT, FIXED64, BYTES, FIXED32):
            raise BadTokenizer(f"byte {start}: not a field of a Protocol Buffers message")
        if kind == VARINT:
            value, place = _varint(message, place)
            yield number, kind, value
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(kind)
        if size is None:
            size, place = _varint(message, place)
        if size > len(message) - place:
            raise BadTokenizer(
                f"byte {start}: field is longer than the rest of the file. Check whether the file is complete."
            )
        yield number, kind, message[place : place + size]
        place += size


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """The number at `place`, and where it ends."""
    value = 0
    for index, byte in enumerate(message[place : place + _MOST_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, place + index + 1
    raise BadTokenizer(
        f"byte {place}: not a number of a Protocol Buffers message. Check whether the file is complete."
    )


def float_of(value: Value) -> float:
    """The number in 4 bytes."""
    assert not isinstance(value, int)
    number: float = struct.unpack("<f", value)[0]
    return number


def varint_field(number: int, value: int) -> bytes:
    """A field of a number >= 0: 1, 150 -> b"\\x08\\x96\\x01"."""
    return _varint_bytes(number << 3 | VARINT) + _varint_bytes(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """A field of bytes, a text or a message."""
    return _varint_bytes(number << 3 | BYTES) + _varint_bytes(len(value)) + value


def float_field(number: int, value: float) -> bytes:
    """A field of a number in 4 bytes."""
    return _varint_bytes(number << 3 | FIXED32) + struct.pack("<f", value)


def _varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
