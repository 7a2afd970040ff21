"""One suite for every kind of store: what is put is read, whole or by ranges; listing, conditions, keys."""

from __future__ import annotations

import pickle
import random
import threading

import pytest

from tokenmill.stores import AlreadyThere, Store, StoreChanged, StoreError, StoreNotFound

DATA = random.Random(7).randbytes(300_000)


def test_what_was_put_is_read(store: Store) -> None:
    entry = store.put("a/b.bin", DATA)
    assert entry == store.head("a/b.bin")
    assert (entry.key, entry.size) == ("a/b.bin", len(DATA))
    assert entry.version
    assert bytes(store.read("a/b.bin")) == DATA
    assert bytes(store.read("a/b.bin", 10, 20, entry.version)) == DATA[10:20]
    assert bytes(store.read("a/b.bin", len(DATA) - 5)) == DATA[-5:]
    assert bytes(store.read("a/b.bin", len(DATA) - 5, len(DATA) + 100)) == DATA[-5:]
    assert bytes(store.read("a/b.bin", len(DATA), len(DATA) + 1)) == b""
    assert bytes(store.read("a/b.bin", 7, 7)) == b""


def test_ranges_are_read_in_the_order_asked_for(store: Store) -> None:
    store.put("x", DATA)
    ranges = [(100_000, 100_500), (0, 10), (5, 5), (3, 200_000), (299_990, 300_000)]
    blocks = store.read_ranges("x", ranges)
    assert [bytes(block) for block in blocks] == [DATA[start:stop] for start, stop in ranges]
    assert store.read_ranges("x", []) == []


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 300_000])
def test_the_end_is_read_with_size_and_version(store: Store, size: int) -> None:
    store.put("x", DATA[:size])
    data, entry = store.read_end("x", 10)
    assert bytes(data) == DATA[:size][-10:]
    assert entry == store.head("x")
    with pytest.raises(StoreNotFound):
        store.read_end("y", 10)


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 300_000])
def test_the_begin_is_read_with_size_and_version(store: Store, size: int) -> None:
    store.put("x", DATA[:size])
    data, entry = store.read_begin("x", 10)
    assert bytes(data) == DATA[:size][:10]
    assert entry == store.head("x")
    with pytest.raises(StoreNotFound):
        store.read_begin("y", 10)


@pytest.mark.parametrize("blocks", [[], [b""], [b"one"], [b"a" * 100, memoryview(b"bc"), bytearray(b"d")]])
def test_blocks_are_put_one_behind_the_other(store: Store, blocks: list[bytes]) -> None:
    entry = store.put("blocks", iter(blocks))
    assert bytes(store.read("blocks")) == b"".join(blocks)
    assert entry == store.head("blocks")


def test_large_data_are_put_in_parts(store: Store) -> None:
    whole = random.Random(8).randbytes(1 << 20) * 35
    store.put("large", (whole[place : place + 3_000_001] for place in range(0, len(whole), 3_000_001)))
    assert bytes(store.read("large")) == whole
    store.put("large", whole)
    (block,) = store.read_ranges("large", [(5, len(whole))])
    assert bytes(block) == whole[5:]


def test_an_iterable_that_fails_leaves_nothing(store: Store) -> None:
    def blocks() -> object:
        yield b"x" * 100
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.put("half", blocks())  # type: ignore[arg-type]
    with pytest.raises(StoreNotFound):
        store.head("half")
    assert list(store.list()) == []


def test_objects_are_listed_in_the_order_of_their_bytes(store: Store) -> None:
    keys = ["a.txt", "a/1", "a/10", "a/2/z", "a0", "b/ü", "b/中", "c d", ".hidden/x", "B"]
    for key in keys:
        store.put(key, key.encode())
    listed = list(store.list())
    assert [entry.key for entry in listed] == sorted(keys, key=str.encode)
    assert listed == [store.head(entry.key) for entry in listed]
    assert [entry.key for entry in store.list("a")] == ["a/1", "a/10", "a/2/z"]
    assert [entry.key for entry in store.list("a/2/")] == ["a/2/z"]
    assert list(store.list("none")) == []


def test_many_objects_are_listed_in_pages(store: Store, request: pytest.FixtureRequest) -> None:
    if "rclone" in request.node.name:
        pytest.skip("rclone lists a folder at once")
    count = 50
    for number in range(count):
        store.put(f"n/{number:05}", b"")
    assert [entry.key for entry in store.list("n")] == [f"n/{number:05}" for number in range(count)]


def test_an_object_is_put_only_if_absent(store: Store) -> None:
    first = store.put("once", b"first", if_absent=True)
    assert first == store.head("once")
    with pytest.raises(AlreadyThere):
        store.put("once", b"second", if_absent=True)
    assert bytes(store.read("once")) == b"first"
    store.put("once", b"third")
    assert bytes(store.read("once")) == b"third"


def test_of_many_writers_one_wins(store: Store, request: pytest.FixtureRequest) -> None:
    if "rclone" in request.node.name:
        pytest.skip("rclone's server ignores conditions")
    for turn in range(5):
        won: list[int] = []

        def put(writer: int, key: str = f"lease-{turn}", won: list[int] = won) -> None:
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
        assert bytes(store.read(f"lease-{turn}")) == b"writer %d" % won[0]


def test_a_store_that_ignores_conditions_is_found_out(store: Store, request: pytest.FixtureRequest) -> None:
    store.put("probe", b"", if_absent=True)
    assert store.excludes == ("rclone" not in request.node.name)
    store.put("probe2", b"1", if_absent=True)
    with pytest.raises(AlreadyThere):
        store.put("probe2", b"2", if_absent=True)
    assert bytes(store.read("probe2")) == b"1"


def test_another_version_is_noticed(store: Store) -> None:
    old = store.put("v", b"old text")
    store.put("v", b"new text, longer")
    new = store.head("v")
    assert new.version != old.version
    with pytest.raises(StoreChanged):
        store.read("v", 0, 3, old.version)
    assert bytes(store.read("v", 0, 3, new.version)) == b"new"


def test_what_is_deleted_is_gone(store: Store) -> None:
    store.put("d/1", b"1")
    store.put("d/2", b"2")
    store.delete(["d/1", "d/none", "none/at/all"])
    store.delete([])
    assert [entry.key for entry in store.list()] == ["d/2"]
    with pytest.raises(StoreNotFound, match="d/1"):
        store.head("d/1")
    with pytest.raises(StoreNotFound, match="d/1"):
        store.read("d/1")
    with pytest.raises(StoreNotFound):
        store.read_ranges("d/1", [(0, 1)])


@pytest.mark.parametrize("key", ["../x", "/x", "", "a//b", "a/../b", "./a", "a/", "a\0b"])
def test_no_key_leaves_the_container(store: Store, key: str) -> None:
    with pytest.raises(StoreError):
        store.put(key, b"")
    with pytest.raises(StoreError):
        store.read(key)


@pytest.mark.parametrize(
    "key", ["a b", "100%", "x%20y", "é", "#1?", "~+=&;,!", "name:8", "a\\b", "-", "x" * 200]
)
def test_odd_keys_are_kept(store: Store, key: str, request: pytest.FixtureRequest) -> None:
    store.put(key, key.encode())
    assert bytes(store.read(key)) == key.encode()
    assert [entry.key for entry in store.list()] == [key]


def test_a_store_is_pickled(store: Store) -> None:
    store.put("p", b"pickled")
    copy = pickle.loads(pickle.dumps(store))
    assert bytes(copy.read("p")) == b"pickled"
    assert copy.url == store.url
