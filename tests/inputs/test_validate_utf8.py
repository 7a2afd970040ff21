"""validate_utf8 against CPython: the same first invalid byte for every buffer, in every SIMD variant."""

from __future__ import annotations

import itertools
import random

import pytest

from tokenmill.inputs import _core

# The first and last of each kind of byte that Table 3-7 of the Unicode standard tells apart.
EDGES = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF]
EDGES += [0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]


def by_python(buffer: bytes) -> int:
    try:
        buffer.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def test_all_short_strings_of_edges(variant: str) -> None:
    behind_a_block = b"a" * 61 + "中é".encode()
    before_a_block = "ü中".encode() * 40
    for size in range(1, 4):
        for values in itertools.product(EDGES, repeat=size):
            fault = bytes(values)
            expected = by_python(fault)
            assert _core.validate_utf8(fault) == expected, fault
            long = behind_a_block + fault + before_a_block
            assert _core.validate_utf8(long) == by_python(long), fault


def test_four_bytes_in_a_block(variant: str) -> None:
    for lead in (0xEF, 0xF0, 0xF1, 0xF4, 0xF5):
        for rest in itertools.product(EDGES[1:9], repeat=3):
            buffer = b"x" * 62 + bytes([lead, *rest]) + b"y" * 70
            assert _core.validate_utf8(buffer) == by_python(buffer), buffer


@pytest.mark.parametrize("character", ["é", "中", "😀"])
def test_a_fault_at_every_place(variant: str, character: str) -> None:
    for size in [0, 1, 63, 64, 65, 127, 128, 129, 191, 192, 193]:
        for mixed in (b"a" * size, (character * size).encode()[:size]):
            assert _core.validate_utf8(mixed) == by_python(mixed)
    text = (character * 150).encode()
    for place in range(200):
        for wrong in (b"\xff", b"\x80", b"a", character.encode()[:-1], b""):
            buffer = text[:place] + wrong + text[place + 1 :]
            assert _core.validate_utf8(buffer) == by_python(buffer), (place, wrong)
        assert _core.validate_utf8(text[:place]) == by_python(text[:place])


def test_random_text_with_a_fault(variant: str) -> None:
    rng = random.Random(6)
    for _ in range(1500):
        text = "".join(rng.choices("aaaa \nйé中文한😀\U0010ffff", k=rng.randint(0, 300)))
        buffer = bytearray(text.encode())
        assert _core.validate_utf8(buffer) == -1
        if buffer:
            buffer[rng.randrange(len(buffer))] = rng.choice(EDGES)
        assert _core.validate_utf8(buffer) == by_python(bytes(buffer)), bytes(buffer)


def test_buffers() -> None:
    assert _core.validate_utf8(b"") == -1
    assert _core.validate_utf8(memoryview(b"\xc3\xa9\xc3")) == 2
    with pytest.raises(TypeError):
        _core.validate_utf8("é")  # type: ignore[arg-type]
