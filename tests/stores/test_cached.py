"""The cache of a store gives the bytes of the store, whoever else reads, removes or damages what it keeps."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tokenmill.stores import Entry, StoreChanged, open_store
from tokenmill.stores.cached import ABANDONED_SECONDS, BLOCK_BYTES, CachedStore

SIZES = (0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 5 * BLOCK_BYTES + 7)
LIMIT = 64 * BLOCK_BYTES


class Counting:
    """A folder as a store that counts the bytes it is asked for."""

    def __init__(self, folder: Path) -> None:
        self._store = open_store(str(folder))
        self.url = f"test://{folder}"
        self.bytes = 0

    def head(self, key: str) -> Entry:
        return self._store.head(key)

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Any:
        return self.read_ranges(key, [(start, stop)], version)[0]

    def read_ranges(self, key: str, ranges: Sequence[Any], version: str = "") -> Any:
        found = self._store.read_ranges(key, ranges, version)
        self.bytes += sum(map(len, found))
        return found


@pytest.fixture
def store(tmp_path: Path) -> Counting:
    folder = tmp_path / "store"
    folder.mkdir()
    rng = random.Random(1)
    for size in SIZES:
        (folder / f"{size}").write_bytes(rng.randbytes(size))
    return Counting(folder)


def ranges_of(rng: random.Random, size: int) -> list[tuple[int, int]]:
    found = []
    for _ in range(rng.randrange(1, 5)):
        start = rng.randrange(size + 2)
        found.append((start, start + rng.choice([0, 1, 100, BLOCK_BYTES, 3 * BLOCK_BYTES])))
    return found


def check(store: Any, cached: CachedStore, rng: random.Random) -> None:
    size = rng.choice(SIZES)
    version = store.head(f"{size}").version
    ranges = ranges_of(rng, size)
    found = cached.read_ranges(f"{size}", ranges, version)
    assert [bytes(data) for data in found] == [
        bytes(data) for data in store.read_ranges(f"{size}", ranges, version)
    ]


def check_often(store: Counting, folder: Path, seed: int, times: int = 60) -> None:
    cached, rng = CachedStore(store, folder, LIMIT), random.Random(seed)  # type: ignore[arg-type]
    for _ in range(times):
        check(store, cached, rng)


def test_reads_as_the_store(store: Counting, tmp_path: Path) -> None:
    check_often(store, tmp_path / "cache", 0, 200)


def test_is_read_once(store: Counting, tmp_path: Path) -> None:
    size = SIZES[-1]
    version = store.head(f"{size}").version
    for count in range(3):
        cached = CachedStore(store, tmp_path / "cache", LIMIT)  # type: ignore[arg-type]
        if count == 2:
            cached = pickle.loads(pickle.dumps(cached))
        whole = bytes(cached.read(f"{size}", 0, size, version))
        assert whole == (tmp_path / "store" / f"{size}").read_bytes()
    assert store.bytes == size


def test_another_version_is_another_object(store: Counting, tmp_path: Path) -> None:
    cached = CachedStore(store, tmp_path / "cache", LIMIT)  # type: ignore[arg-type]
    path = tmp_path / "store" / "1"
    for content in (b"a", b"b"):
        path.write_bytes(content)
        os.utime(path, ns=(content[0], content[0]))
        assert bytes(cached.read("1", 0, 1, store.head("1").version)) == content
    with pytest.raises(StoreChanged):
        cached.read("1", 0, 1, "elsewhere")
    path.write_bytes(b"c")
    assert bytes(cached.read("1", 0, 1)) == b"c"  # without a version nothing is kept


@pytest.mark.parametrize("damage", ["flip", "cut", "grow", "empty", "folder"])
def test_a_damaged_block_is_read_again(store: Counting, tmp_path: Path, damage: str) -> None:
    cached = CachedStore(store, tmp_path / "cache", LIMIT)  # type: ignore[arg-type]
    size = SIZES[-1]
    version = store.head(f"{size}").version
    cached.read(f"{size}", 0, size, version)
    for path in [path for path in (tmp_path / "cache").rglob("*-*") if path.is_file()]:
        data = bytearray(path.read_bytes())
        if damage == "folder":
            path.unlink()
            path.mkdir()
            continue
        if damage == "flip":
            data[len(data) // 2] ^= 1
        path.write_bytes({"flip": data, "cut": data[:-1], "grow": data + b"x", "empty": b""}[damage])
    assert bytes(cached.read(f"{size}", 0, size, version)) == (tmp_path / "store" / f"{size}").read_bytes()
    assert store.bytes == 2 * size


def kept_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_is_bounded_and_the_oldest_goes(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    for name in range(100):
        (folder / f"{name}").write_bytes(bytes([name]) * BLOCK_BYTES)
    store = Counting(folder)
    cached = CachedStore(store, tmp_path / "cache", LIMIT)  # type: ignore[arg-type]
    for name in range(100):
        cached.read(f"{name}", 0, BLOCK_BYTES, store.head(f"{name}").version)
        for path in (tmp_path / "cache").rglob("*-*"):  # as if a second went by
            os.utime(path, (path.stat().st_mtime - 1,) * 2)
        assert kept_bytes(tmp_path / "cache") <= LIMIT
    before = store.bytes
    cached.read("99", 0, BLOCK_BYTES, store.head("99").version)
    assert store.bytes == before
    cached.read("0", 0, BLOCK_BYTES, store.head("0").version)
    assert store.bytes == before + BLOCK_BYTES


def test_what_a_killed_process_left_goes(store: Counting, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "ab"
    folder.mkdir(parents=True)
    for name, age in (("old", 2 * ABANDONED_SECONDS), ("new", 0.0)):
        (folder / f".tmp-{name}").write_bytes(b"half")
        os.utime(folder / f".tmp-{name}", (time.time() - age,) * 2)
    check_often(store, tmp_path / "cache", 0, 5)
    assert [path.name for path in folder.glob(".tmp-*")] == [".tmp-new"]


def test_a_cache_that_cannot_be_written_is_passed_by(
    store: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    check_often(store, tmp_path / "cache", 3)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_an_interrupt_while_a_block_is_kept_is_no_full_disk(
    store: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.replace

    def interrupted(path: Path, other: Path) -> None:
        rename(path, other)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        CachedStore(store, tmp_path / "cache", LIMIT).read(
            f"{SIZES[-1]}", 0, 10, store.head(f"{SIZES[-1]}").version
        )  # type: ignore[arg-type]


def test_threads_and_processes_share_it_while_blocks_vanish(store: Counting, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=check_often, args=(store, cache, seed)) for seed in (1, 2)]
    failed: list[BaseException] = []

    def run(seed: int) -> None:
        try:
            check_often(store, cache, seed)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in (3, 4)]
    for worker in (*processes, *threads):
        worker.start()
    rng = random.Random(5)
    while any(worker.is_alive() for worker in (*processes, *threads)):
        for path in list(cache.rglob("*-*")):
            if rng.random() < 0.3:
                path.unlink(missing_ok=True)
        time.sleep(0.01)
    for worker in (*processes, *threads):
        worker.join()
    assert not failed
    assert [process.exitcode for process in processes] == [0, 0]
