"""A file read at any offset: local or remote, in order or not, by how many requests."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tokenmill.stores import Entry, RandomFile, StoreChanged, StoreNotFound, open_file, open_store
from tokenmill.stores.remote_file import RemoteFile
from tokenmill.stores.requests import REQUEST_BYTES

DATA = random.Random(5).randbytes(1 << 20) * 20 + b"end"


@pytest.fixture(params=["path", "file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where DATA lies."""
    if request.param == "memory":
        pytest.importorskip("obstore", reason="obstore is not installed")
        name = f"memory://{uuid4().hex}/a"
        open_store(name).put("data.bin", DATA)
        return f"{name}/data.bin"
    (tmp_path / "data.bin").write_bytes(DATA)
    return str(tmp_path / "data.bin") if request.param == "path" else f"file://{tmp_path}/data.bin"


def read_all(file: RandomFile, start: int, stop: int, step: int) -> bytes:
    held = bytearray(stop - start)
    place = start
    while place < stop and (got := file.readinto_at(place, memoryview(held)[place - start :][:step])):
        place += got
    return bytes(held[: place - start])


def test_it_is_read_in_order_and_anywhere(url: str) -> None:
    pick = random.Random(1)
    with open_file(url) as file:
        assert file.size == len(DATA)
        assert read_all(file, 0, len(DATA), 1_000_003) == DATA
        assert read_all(file, 0, len(DATA), 50 << 20) == DATA
        for _ in range(60):
            start = pick.randrange(len(DATA))
            stop = min(len(DATA), start + pick.choice([1, 1000, 200_000, 9 << 20]))
            if pick.random() < 0.3:
                file.expect(start, stop)
            assert read_all(file, start, stop, 300_000) == DATA[start:stop]
        view = memoryview(bytearray(10))
        assert file.readinto_at(len(DATA), view) == 0
        assert file.readinto_at(len(DATA) + 5, view) == 0
        assert file.readinto_at(0, view[:0]) == 0


def test_a_version_that_is_another(url: str, tmp_path: Path) -> None:
    with open_file(url) as file:
        version = file.version()
    with open_file(url, version=version, size=len(DATA)) as file:
        assert file.version() == version
        assert read_all(file, 0, 10, 10) == DATA[:10]
    if url.startswith("memory"):
        folder, _, key = url.rpartition("/")
        open_store(folder).put(key, DATA + b"!")
    else:
        (tmp_path / "data.bin").write_bytes(DATA + b"!")
    with (
        pytest.raises(StoreChanged),
        open_file(url, version=version, size=len(DATA)) as file,
    ):
        read_all(file, 0, 10, 10)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for url in (str(tmp_path / "no"), f"file://{tmp_path}/no"):
        with pytest.raises(FileNotFoundError, match="no"):
            open_file(url)
    with pytest.raises(StoreNotFound):
        open_file(f"memory://{uuid4().hex}/no")


def test_local_files_are_closed_once(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    file = open_file(str(tmp_path / "x"))
    file.close()
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.readinto_at(0, memoryview(bytearray(1)))


class CountingStore:
    """A store of one object that counts its requests and the bytes they gave."""

    is_local, excludes, url = False, True, "memory://counted"

    def __init__(self, data: bytes) -> None:
        self.data, self.requests = data, list[tuple[int, int]]()

    def read(self, key: str, start: int, stop: int, version: str = "") -> bytes:
        self.requests.append((start, stop))
        return self.data[start:stop]

    def read_ranges(self, key: str, ranges: list[tuple[int, int]], version: str = "") -> list[bytes]:
        return [self.read(key, *pair) for pair in ranges]


@pytest.fixture
def counted() -> tuple[RemoteFile, CountingStore]:
    store = CountingStore(bytes(100 << 20))
    return RemoteFile(store, Entry("x", len(store.data), "1"), "memory://counted/x"), store  # type: ignore[arg-type]


def test_requests_of_a_whole_file(counted: tuple[RemoteFile, CountingStore]) -> None:
    file, store = counted
    assert len(read_all(file, 0, file.size, 1 << 20)) == file.size
    assert len(store.requests) <= file.size // REQUEST_BYTES + 4
    assert sum(stop - start for start, stop in store.requests) == file.size


def test_what_is_expected_is_all_that_is_fetched(counted: tuple[RemoteFile, CountingStore]) -> None:
    file, store = counted
    start, stop = 5_000_001, 69_000_001
    file.expect(start, stop)
    assert len(read_all(file, start, stop, 1 << 20)) == stop - start
    assert len(store.requests) == -(-(stop - start) // REQUEST_BYTES)
    assert sum(end - begin for begin, end in store.requests) == stop - start
    read_all(file, stop, stop + 10, 10)  # the end of its last line
    assert store.requests[-1] == (stop, stop + (128 << 10))


def test_reads_here_and_there_fetch_little(counted: tuple[RemoteFile, CountingStore]) -> None:
    file, store = counted
    for place in (50 << 20, 10 << 20, 90 << 20, 10 << 20):
        read_all(file, place, place + 100, 100)
    assert sum(stop - start for start, stop in store.requests) == 4 * (128 << 10)


def test_an_object_that_is_shorter_than_it_was(counted: tuple[RemoteFile, CountingStore]) -> None:
    file, store = counted
    store.data = bytes(1000)
    with pytest.raises(StoreChanged):
        read_all(file, 0, 5000, 5000)


def test_nothing_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    before = len(list(Path("/proc/self/fd").iterdir()))
    failing: list[Callable[[], object]] = [
        lambda: open_file(str(tmp_path / "x"), version="another"),
        lambda: open_file(str(tmp_path / "no")),
    ]
    for attempt in failing:
        with pytest.raises((StoreChanged, OSError)):
            attempt()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_an_object_that_is_shorter_than_it_was_said_to_be() -> None:
    """A read behind its end was an error of Python's."""
    folder = f"memory://{uuid4().hex}"
    entry = open_store(folder).put("a", bytes(1000))
    for place in (1000, 1003):
        with open_file(f"{folder}/a", {}, entry.version, 1007) as file:
            assert file.readinto_at(990, memoryview(bytearray(100))) == 10
            with pytest.raises(StoreChanged):
                file.readinto_at(place, memoryview(bytearray(1)))
