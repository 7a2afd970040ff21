"""The contract of stores: a model of writes on each kind that can be written, and drawn reads on all kinds."""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from hub_files import hub_server
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from servers import WRITABLE
from state_machines import run_model
from web_server import web_server

from tokenmill.stores import AlreadyThere, Store, StoreChanged, StoreError, StoreNotFound, open_store
from tokenmill.stores import object as object_module
from tokenmill.stores.cached import CachedStore

NAMES = [
    "c d",
    *r"a.txt a/1 a/10 a/2/z a0 b/ü b/中 .hidden/x B 100% x%20y #1? ~+=&;,! name:8 a\b -".split(),
    "x" * 200,
]
KEYS = st.sampled_from(NAMES)
SIZES = (0, 1, 2, 9, 10, 11, 1000, 300_000)
DATA = random.Random(7).randbytes(max(SIZES))
OFFSETS = st.sampled_from([*SIZES, 5, 999, 1001, 299_995, 300_005])
SPANS = st.tuples(OFFSETS, OFFSETS)


def check_reads(store: Store, key: str, data: bytes, ranges: list[tuple[int, int]], count: int) -> None:
    """All ways to read an object."""
    entry = store.head(key)
    assert (entry.key, entry.size) == (key, len(data))
    found = store.read_ranges(key, ranges, entry.version)
    assert [bytes(block) for block in found] == [data[start:stop] for start, stop in ranges]
    for start, stop in ranges:
        assert bytes(store.read(key, start, stop, entry.version)) == data[start:stop]
        assert bytes(store.read(key, start)) == data[start:]
    begin, end = store.read_begin(key, count), store.read_end(key, count)
    assert (bytes(begin[0]), bytes(end[0])) == (data[:count], data[-count:])
    assert begin[1] == end[1] == entry


class Container(RuleBasedStateMachine):
    """Objects of a folder, compared with a dict."""

    store: Store
    kind: str

    def __init__(self) -> None:
        super().__init__()
        self._root = uuid4().hex
        self._objects: dict[str, tuple[bytes, str]] = {}
        self._count = 0

    @rule(name=KEYS, size=st.sampled_from(SIZES), in_blocks=st.booleans(), if_absent=st.booleans())
    def put(self, name: str, size: int, in_blocks: bool, if_absent: bool) -> None:
        self._count += 1
        data = DATA[self._count : self._count + size]
        half = len(data) // 2
        blocks: Any = iter([data[:half], b"", memoryview(data)[half:]]) if in_blocks else data
        key = f"{self._root}/{name}"
        former = self._objects.get(name)
        if if_absent and former is not None:
            with pytest.raises(AlreadyThere):
                self.store.put(key, blocks, if_absent=True)
            return
        entry = self.store.put(key, blocks, if_absent)
        assert entry == self.store.head(key)
        if former is not None and len(former[0]) != len(data):
            assert entry.version != former[1]
            with pytest.raises(StoreChanged):
                self.store.read(key, 0, 3, former[1])
        self._objects[name] = bytes(data), entry.version

    @rule(name=KEYS, ranges=st.lists(SPANS, max_size=3), count=st.sampled_from([1, 10, 400_000]))
    def read(self, name: str, ranges: list[tuple[int, int]], count: int) -> None:
        key = f"{self._root}/{name}"
        if name in self._objects:
            check_reads(self.store, key, self._objects[name][0], ranges, count)
            return
        reads: list[Any] = [lambda: self.store.head(key), lambda: self.store.read(key, 0, 1)]
        reads += [lambda: self.store.read_begin(key, count), lambda: self.store.read_end(key, count)]
        reads += [lambda: self.store.read_ranges(key, [(0, 1)])]
        for read in reads:
            with pytest.raises(StoreNotFound, match=self._root):
                read()

    @rule(names=st.lists(KEYS, max_size=4, unique=True))
    def delete(self, names: list[str]) -> None:
        self.store.delete(f"{self._root}/{name}" for name in names)
        for name in names:
            self._objects.pop(name, None)

    @rule(prefix=st.sampled_from(["", "a", "a/2/", "b", "none"]))
    def list_folder(self, prefix: str) -> None:
        found = [
            (entry.key.removeprefix(f"{self._root}/"), entry.size, entry.version)
            for entry in self.store.list(f"{self._root}/{prefix}".rstrip("/"))
        ]
        folder = f"{prefix.rstrip('/')}/" if prefix else ""
        names = sorted((name for name in self._objects if name.startswith(folder)), key=str.encode)
        assert found == [(name, len(self._objects[name][0]), self._objects[name][1]) for name in names]

    @rule()
    def pickle_store(self) -> None:
        copy = pickle.loads(pickle.dumps(self.store))
        assert (copy.url, type(copy)) == (self.store.url, type(self.store))
        self.store = copy


@pytest.mark.slow
def test_a_store_behaves_as_a_dict(store: Store, kind: str) -> None:
    machine = type("OfKind", (Container,), {"store": store, "kind": kind})
    run_model(machine, 25 if kind in ("local", "memory") else 6)


class Filled(NamedTuple):
    store: Store
    files: dict[str, bytes]


@pytest.fixture(params=[*WRITABLE, "cached", "web", "web of IPv6", "hub"])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Filled]:
    """A store of any kind with some files."""
    kind = request.param
    files = {"data/long": DATA, "data/c d%é": DATA[:1000], "one": b"1", "empty": b""}
    if kind != "local":
        pytest.importorskip("obstore", reason="obstore is not installed")
    with ExitStack() as stack:
        if kind.startswith("web"):
            try:
                web = stack.enter_context(web_server("::1" if "IPv6" in kind else "127.0.0.1"))
            except OSError:
                pytest.skip("this machine has no IPv6")
            web.files |= {f"/files/{key}": data for key, data in files.items()}
            store = open_store(f"{web.url}/files")
        elif kind == "hub":
            pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
            hub = stack.enter_context(hub_server())
            hub.commit(files)
            store = open_store("hf://datasets/someone/texts", {"endpoint": hub.url})
        else:
            inner = "memory" if kind == "cached" else kind
            store = request.getfixturevalue("open_empty")(inner)
            for key, data in files.items():
                store.put(key, data)
            if kind == "cached":
                store = CachedStore(store, tmp_path / "cache", 1 << 30)
        yield Filled(store, files)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.integers(0, 3), ranges=st.lists(SPANS, max_size=4), count=st.sampled_from([1, 10, 300_001]),
    copy=st.booleans(),
)  # fmt: skip
def test_reads_of_every_kind(
    filled: Filled, name: int, ranges: list[tuple[int, int]], count: int, copy: bool
) -> None:
    key, data = list(filled.files.items())[name]
    store = pickle.loads(pickle.dumps(filled.store)) if copy else filled.store
    check_reads(store, key, data, ranges, count)
    if not store.url.startswith("http"):
        assert [(entry.key, entry.size) for entry in store.list()] == sorted(
            (key, len(data)) for key, data in filled.files.items()
        )
    assert not store.is_local or (store.path / key).read_bytes() == data
    for missing in (lambda: store.head("none"), lambda: store.read_end("data/none", 3)):
        with pytest.raises(StoreNotFound, match="none"):
            missing()


def test_large_data_are_put_in_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_module, "PART_BYTES", 5 << 20)  # the minimum of S3
    whole = random.Random(8).randbytes(1 << 20) * 7
    blocks = (whole[offset : offset + 2_000_001] for offset in range(0, len(whole), 2_000_001))
    entry = store.put("large", blocks)
    assert entry == store.head("large")
    assert bytes(store.read("large")) == whole
    store.put("large", whole[1:])
    (block,) = store.read_ranges("large", [(5, len(whole))])
    assert bytes(block) == whole[6:]


def test_an_iterable_that_fails_leaves_nothing(store: Store) -> None:
    def blocks() -> Iterator[bytes]:
        yield b"x" * 100
        raise ZeroDivisionError

    for if_absent in (False, True):
        with pytest.raises(ZeroDivisionError):
            store.put("half", blocks(), if_absent)
    assert list(store.list()) == []


def test_many_objects_are_listed_in_pages(store: Store, kind: str) -> None:
    if kind == "rclone":
        pytest.skip("rclone lists a folder at once")
    keys = [f"n/{number:05}" for number in range(30)]
    for key in keys:
        store.put(key, b"")
    assert [entry.key for entry in store.list("n")] == keys


def test_only_one_of_many_writers_succeeds(store: Store, kind: str) -> None:
    if kind == "rclone":
        pytest.skip("rclone's server ignores conditions")
    for turn in range(5):
        key, won = f"lease-{turn}", list[int]()

        def put(writer: int, key: str = key, won: list[int] = won) -> None:
            try:
                store.put(key, b"writer %d" % writer, if_absent=True)
                won.append(writer)
            except AlreadyThere:
                pass

        threads = [threading.Thread(target=put, args=(writer,)) for writer in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert bytes(store.read(key)) == b"writer %d" % won[0]


@pytest.mark.parametrize("key", ["../x", "/x", "", "a//b", "a/../b", "./a", "a/", "a\0b"])
def test_no_key_leaves_the_container(store: Store, key: str) -> None:
    for access in (lambda: store.put(key, b""), lambda: store.read(key), lambda: store.delete([key])):
        with pytest.raises(StoreError):
            access()
