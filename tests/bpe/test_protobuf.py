"""The Protocol Buffers wire format: round trips."""

from __future__ import annotations

import pytest

from bpe.formats.protobuf import BYTES, VARINT, bytes_field, fields, varint_field
from bpe.formats.sentencepiece import read_model


@pytest.mark.parametrize("value", [0, 1, 127, 128, 129, 255, 256, 16383, 16384, 2**32, 2**64 - 1])
def test_numbers_of_any_length(value: int) -> None:
    message = varint_field(1, value) + varint_field(16, value) + bytes_field(2, bytes(value % 300))
    read = [(number, kind, found) for number, kind, found in fields(memoryview(message))]
    assert read == [(1, VARINT, value), (16, VARINT, value), (2, BYTES, bytes(value % 300))]


def test_a_charsmap_named_as_denormalizer_is_read() -> None:
    for fields_of, denormalizes in ((b"", False), (bytes_field(2, b"x"), True), (bytes_field(2, b""), False)):
        assert read_model(bytes_field(5, bytes_field(1, b"name") + fields_of)).denormalizes == denormalizes
