"""Files read at any offset: the bytes are right in any order, and few requests fetch little more than is read."""

from __future__ import annotations

import random
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokenmill.stores import StoreChanged, open_file, open_store, read_at
from tokenmill.stores.files import ArrowFile

DATA = random.Random(5).randbytes(50_000)


@pytest.fixture(params=["path", "file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of DATA. Requests are small."""
    if request.param == "memory":
        pytest.importorskip("obstore", reason="obstore is not installed")
        sizes = {"remote_file.REQUEST": 7000, "remote_file._FIRST": 100, "remote_file.PASSED": 50}
        for name, size in {**sizes, "requests.REQUEST": 3000, "requests.PASSED": 40}.items():
            monkeypatch.setattr(f"tokenmill.stores.{name}_BYTES", size)
        name = f"memory://{uuid4().hex}/a"
        open_store(name).put("data.bin", DATA)
        return f"{name}/data.bin"
    (tmp_path / "data.bin").write_bytes(DATA)
    return str(tmp_path / "data.bin") if request.param == "path" else f"file://{tmp_path}/data.bin"


OFFSETS = st.one_of(st.integers(0, len(DATA) + 10), st.sampled_from([0, 100, 7000, len(DATA)]))
ACTIONS = st.tuples(st.sampled_from(["read", "read on", "expect", "step back"]), OFFSETS, OFFSETS)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ACTIONS, max_size=12))
def test_reads_in_any_order(url: str, actions: list[tuple[str, int, int]]) -> None:
    with open_file(url) as file:
        assert file.size == len(DATA)
        position = 0
        for action, offset, size in actions:
            if action == "expect":
                file.expect(offset, offset + size)
            elif action == "step back":
                position = max(0, position - size % 100)
            else:
                position = offset if action == "read" else position
                data = read_at(file, position, size)
                assert bytes(data) == DATA[position : position + size]
                position += len(data)
        assert file.readinto_at(0, memoryview(bytearray())) == 0
    with open_file(url) as file:
        arrow = ArrowFile(file)
        for _, offset, size in actions:
            arrow.seek(offset)
            assert arrow.read(size) == DATA[offset : offset + size]


def test_another_version(url: str, tmp_path: Path) -> None:
    folder, _, key = url.rpartition("/")
    version = open_store(folder).head(key).version
    with open_file(url, version=version, size=len(DATA)) as file:
        assert read_at(file, 0, 10) == DATA[:10]
    open_store(folder).put(key, DATA + b"!")
    with pytest.raises(StoreChanged), open_file(url, version=version, size=len(DATA)) as file:
        read_at(file, 0, 10)
    with pytest.raises(StoreChanged):
        open_file(url, version=version)


def test_local_files_are_closed_once_and_never_leak(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    before = len(list(Path("/proc/self/fd").iterdir()))
    file = open_file(str(tmp_path / "x"))
    file.close()
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor: .*x"):
        file.readinto_at(0, memoryview(bytearray(1)))
    with pytest.raises(StoreChanged):
        open_file(str(tmp_path / "x"), version="another")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


class CountingStore:
    """A store of one object that records its requests."""

    def __init__(self, data: bytes) -> None:
        self.data, self.requests = data, list[tuple[int, int]]()

    def read(self, key: str, start: int, stop: int, version: str = "") -> bytes:
        self.requests.append((start, stop))
        return self.data[start:stop]

    def read_ranges(self, key: str, ranges: list[tuple[int, int]], version: str = "") -> list[bytes]:
        return [self.read(key, *pair) for pair in ranges]


@pytest.mark.parametrize("offset", [1000, 1003, 5000])
def test_an_object_that_is_shorter_than_listed(offset: int) -> None:
    """A read after its end was an error of Python's."""
    folder = f"memory://{uuid4().hex}"
    entry = open_store(folder).put("a", bytes(1000))
    with open_file(f"{folder}/a", {}, entry.version, 6000) as file:
        assert file.readinto_at(990, memoryview(bytearray(100))) == 10
        with pytest.raises(StoreChanged):
            file.readinto_at(offset, memoryview(bytearray(1)))
