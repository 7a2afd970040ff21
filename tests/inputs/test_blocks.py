"""Blocks of a stream together are the stream; cut at separators as bytes.split cuts, whatever the sizes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tokenmill.inputs.blocks import FileRange, own_lines, record_blocks
from tokenmill.inputs.buffers import GrowingBuffer
from tokenmill.inputs.errors import BadInput
from tokenmill.stores import open_file


class Dribble:
    """A stream that gives at most `most` bytes at a time."""

    def __init__(self, data: bytes, most: int) -> None:
        self._data, self._most = data, most

    def readinto(self, buffer: memoryview) -> int:
        part = self._data[: min(self._most, len(buffer))]
        buffer[: len(part)] = part
        self._data = self._data[len(part) :]
        return len(part)


def records_of(data: bytes, separator: bytes, most: int, block_bytes: int) -> tuple[list[bytes], list[int]]:
    """The records, with pieces joined, and the start of each block."""
    records: list[bytes] = []
    starts: list[int] = []
    pieces: list[bytes] = []
    for block in record_blocks(Dribble(data, most), separator, GrowingBuffer(), 0, block_bytes):
        starts.append(block.start)
        text = bytes(block.text)
        if block.is_piece:
            assert data.startswith(text, block.start)
            pieces.append(text)
            if block.final:
                records.append(b"".join(pieces))
                pieces = []
        else:
            assert data.startswith(text, block.start)
            records.extend(text.split(separator))
    assert not pieces
    return records, starts


def test_where_blocks_end_follows_from_the_bytes_alone() -> None:
    rng = random.Random(4)
    for block_bytes in (1, 3, 16, 100):
        for _ in range(30):
            data = b"".join(rng.choices([b"|", b"a", b"bcdefgh", b"i" * 50], k=rng.randrange(60)))
            found = {
                tuple(
                    (bytes(block.text), *block[1:])
                    for block in record_blocks(Dribble(data, most), b"|", GrowingBuffer(), 0, block_bytes)
                )
                for most in (1, 2, 7, 15, 99, 10_000)
            }
            assert len(found) == 1


def split(data: bytes, separator: bytes) -> list[bytes]:
    parts = data.split(separator)
    return parts if parts[-1] else parts[:-1]


@pytest.mark.parametrize("separator", [b"|", b"<s>", b"aa", b"aba", b"\n\n"], ids=repr)
def test_records_are_those_of_split(separator: bytes) -> None:
    rng = random.Random(3)
    alphabet = [bytes([byte]) for byte in set(separator)] + [b"x", separator, separator, b"yyyyyyyy"]
    for _ in range(60):
        data = b"".join(rng.choices(alphabet, k=rng.randrange(40)))
        for most in (1, 3, 1000):
            for block_bytes in (1, 2, 5, 17, 1000):
                records, starts = records_of(data, separator, most, block_bytes)
                assert records == split(data, separator), (data, most, block_bytes)
                assert starts == sorted(starts)


def test_the_buffer_is_kept_within_two_blocks_for_a_long_record() -> None:
    buffer = GrowingBuffer()
    blocks = [
        len(block.text)
        for block in record_blocks(Dribble(b"x" * 10_000 + b"|y", 64), b"|", buffer, block_bytes=64)
    ]
    assert sum(blocks) == 10_001
    assert len(buffer.memory) <= 4 * 64


def test_lines_belong_to_the_part_they_begin_in(tmp_path: Path) -> None:
    rng = random.Random(5)
    path = tmp_path / "lines"
    for _ in range(40):
        data = b"".join(rng.choices([b"\n", b"a", b"bcd\n", b"e" * 20], k=rng.randrange(12)))
        path.write_bytes(data)
        with open_file(str(path)) as file:
            for part in range(1, len(data) + 2):
                pieces = []
                for start in range(0, len(data), part):
                    stop = min(start + part, len(data))
                    begin, end = own_lines(file, str(path), len(data), start, stop)
                    assert begin == end or start <= begin < stop
                    assert begin == 0 or data[begin - 1 : begin] in (b"\n", b"") or begin == end
                    pieces.append(data[begin:end])
                assert b"".join(pieces) == data


def test_a_file_that_shrank_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    with open_file(str(path)) as file:
        stream = FileRange(file, str(path), 1, 10)
        assert stream.readinto(memoryview(bytearray(5))) == 2
        with pytest.raises(BadInput, match="byte 3"):
            stream.readinto(memoryview(bytearray(5)))
        with pytest.raises(BadInput):
            own_lines(file, str(path), 10, 0, 9)
