"""What a thread decompresses ahead is what would be read without it: the bytes, their end and their errors."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from input_kinds import PACKED, compressed

from tokenmill.inputs.blocks import ByteStream
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.kinds import Kind
from tokenmill.inputs.read_ahead import FEWEST_BYTES, PARTS, ReadAhead, decompressed
from tokenmill.inputs.source_list import Source


class Pieces:
    """A stream that gives these bytes, a few at a time, and then ends or fails."""

    def __init__(self, data: bytes, step: int, error: Exception | None = None) -> None:
        self._data, self._step, self._error = data, step, error
        self.asked = 0

    used_bytes = 0

    def readinto(self, buffer: memoryview) -> int:
        self.asked += 1
        if not self._data and self._error is not None:
            raise self._error
        count = min(self._step, len(buffer))
        part, self._data = self._data[:count], self._data[count:]
        buffer[: len(part)] = part
        return len(part)


def read_all(stream: ByteStream, rng: random.Random) -> tuple[bytes, Exception | None]:
    """What comes, asked for in parts of any length, and the error it ended with."""
    found = bytearray()
    while True:
        buffer = memoryview(bytearray(rng.randint(1, 40)))
        try:
            got = stream.readinto(buffer)
        except (BadInput, ValueError) as error:
            return bytes(found), error
        if not got:
            assert stream.readinto(buffer) == 0  # and the end stays the end
            return bytes(found), None
        found += buffer[:got]


@pytest.mark.parametrize("part_bytes", [1, 2, 7, 16])
@pytest.mark.parametrize("fails", [False, True])
def test_bytes_come_in_order_and_an_error_behind_them(part_bytes: int, fails: bool) -> None:
    rng = random.Random(part_bytes)
    for size in [*range(3 * part_bytes + 2), PARTS * part_bytes, 500]:
        data = rng.randbytes(size)
        stream = Pieces(data, rng.randint(1, 10), ValueError("cut off") if fails else None)
        with ThreadPoolExecutor(1) as thread:
            found, error = read_all(ReadAhead(stream, thread, part_bytes), rng)
        assert found == data
        assert (str(error) == "cut off") if fails else error is None


def test_no_more_is_read_ahead_than_there_is_room_for() -> None:
    stream = Pieces(bytes(1000), 10)
    with ThreadPoolExecutor(1) as thread:
        ahead = ReadAhead(stream, thread, 10)
        ahead.readinto(memoryview(bytearray(10)))
    assert stream.asked == PARTS


@pytest.mark.parametrize("compression", PACKED)
@pytest.mark.parametrize("end", [None, -5])
def test_the_same_with_a_thread_as_without(compression: str, end: int | None, tmp_path: Path) -> None:
    """Cut off (`end`) too: all that can be decompressed, then the same error."""
    rng = random.Random(5)
    path = tmp_path / f"in.txt.{compression}"
    path.write_bytes(compressed(rng.randbytes(400_000) * 20, compression, members=3)[:end])
    source = Source(str(path), path.stat().st_size, 0, kind=Kind("text", compression))
    assert source.size_bytes > FEWEST_BYTES
    found = []
    for ahead in (False, True):
        with decompressed(source, 128 << 20, ahead) as stream:
            buffer, parts, message = memoryview(bytearray(3 << 20)), bytearray(), ""
            try:
                while got := stream.readinto(buffer):
                    parts += buffer[:got]
            except BadInput as error:
                message = str(error)
            found.append((bytes(parts), message))
    assert found[0] == found[1]
    assert found[0][1].startswith(f"{path}: byte ") == (end is not None)


def test_where_no_thread_can_be_started_it_is_read_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    data = random.Random(7).randbytes(FEWEST_BYTES + 1)
    path = tmp_path / "in.txt.gz"
    path.write_bytes(compressed(data, "gz"))
    source = Source(str(path), path.stat().st_size, 0, kind=Kind("text", "gz"))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with decompressed(source, 128 << 20, True) as stream:
        assert read_all(stream, random.Random(8)) == (data, None)


def test_who_stops_early_leaves_no_thread(tmp_path: Path) -> None:
    path = tmp_path / "in.txt.gz"
    path.write_bytes(compressed(random.Random(6).randbytes(20 << 20), "gz"))
    source = Source(str(path), path.stat().st_size, 0, kind=Kind("text", "gz"))
    before = threading.active_count()
    with decompressed(source, 128 << 20, True) as stream:
        stream.readinto(memoryview(bytearray(10)))
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
