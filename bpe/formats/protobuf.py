"""The part of the Protocol Buffers wire format that SentencePiece models need.

A message is a list of fields. A field is a key, number << 3 | kind as a varint, and a value: a varint (kind 0), 8 bytes
(1), a length and that many bytes (2), or 4 bytes (5). This reader avoids a dependency on protobuf and its generated
module. Values are views of the message, so memory is bounded by its size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from bpe.errors import BadTokenizer

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES: Final = 10

Value = int | memoryview


def fields(message: memoryview) -> Iterator[tuple[int, int, Value]]:
    """Yield (number, kind, value) of each field. Raise BadTokenizer for a truncated or malformed message.

    Varints are uint64; other values are views. b"\\x08\\x96\\x01" -> (1, VARINT, 150).
    """
    offset = 0
    while offset < len(message):
        start = offset
        key, offset = _varint(message, offset)
        number, kind = key >> 3, key & 7
        if number == 0 or kind not in (VARINT, FIXED64, BYTES, FIXED32):
            raise BadTokenizer(f"byte {start}: not a field of a Protocol Buffers message")
        if kind == VARINT:
            value, offset = _varint(message, offset)
            yield number, kind, value
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(kind)
        if size is None:
            size, offset = _varint(message, offset)
        if size > len(message) - offset:
            raise BadTokenizer(
                f"byte {start}: field is longer than the rest of the file. Check whether the file is complete."
            )
        yield number, kind, message[offset : offset + size]
        offset += size


def _varint(message: memoryview, offset: int) -> tuple[int, int]:
    """Return the number at an offset, and the offset of its end."""
    value = 0
    for index, byte in enumerate(message[offset : offset + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, offset + index + 1
    raise BadTokenizer(
        f"byte {offset}: not a number of a Protocol Buffers message. Check whether the file is complete."
    )


def float_of(value: Value) -> float:
    """Return the number in 4 bytes."""
    assert not isinstance(value, int)
    number: float = struct.unpack("<f", value)[0]
    return number


def varint_field(number: int, value: int) -> bytes:
    """Return a field with a number >= 0: 1, 150 -> b"\\x08\\x96\\x01"."""
    return _varint_bytes(number << 3 | VARINT) + _varint_bytes(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Return a field with bytes, a text or a message."""
    return _varint_bytes(number << 3 | BYTES) + _varint_bytes(len(value)) + value


def float_field(number: int, value: float) -> bytes:
    """Return a field with a float32."""
    return _varint_bytes(number << 3 | FIXED32) + struct.pack("<f", value)


def _varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
