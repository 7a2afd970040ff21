"""The cache of a store: two processes share it while objects change and blocks vanish or are damaged."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from state_machines import run_model

from tokenmill.stores import StoreChanged, cached
from tokenmill.stores.cached import CachedStore

KEYS = "abcdef"
LIMIT = 64 * 64  # for less than the objects have, in blocks of 64 bytes


class Objects:
    """A store with objects that change. event: called before an answer. requested: bytes so far."""

    url = "test://objects"

    def __init__(self) -> None:
        self.versions = dict.fromkeys(KEYS, 0)
        self.event: Callable[[], None] = lambda: None
        self.requested = 0

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]], version: str = "") -> list[bytes]:
        if version != str(self.versions[key]):
            raise StoreChanged(f"{key} changed")
        answer = [content(key, version)[start:stop] for start, stop in ranges]
        self.requested += sum(map(len, answer))
        event, self.event = self.event, lambda: None
        event()
        return answer


def content(key: str, version: str) -> bytes:
    return random.Random(f"{key} {version}").randbytes(2970 + KEYS.index(key))


class Cache(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._objects: Any = Objects()
        self._caches = [CachedStore(self._objects, self._folder.name, LIMIT) for _ in "12"]

    def teardown(self) -> None:
        self._folder.cleanup()

    def _files(self) -> list[Path]:
        return sorted(path for path in Path(self._folder.name).rglob("*-*") if ".tmp-" not in path.name)

    @rule(
        cache=st.integers(0, 1), key=st.sampled_from(KEYS), start=st.integers(0, 3000), size=st.integers(0, 3000),
        age=st.sampled_from([0, 0, 0, 1]), meanwhile=st.sampled_from(["nothing", "read", "change", "vanish"]),
    )  # fmt: skip
    def read(self, cache: int, key: str, start: int, size: int, age: int, meanwhile: str) -> None:
        """Read this version or the one before, while others do something."""
        version = str(self._objects.versions[key] - age)
        self._objects.event = {
            "nothing": lambda: None,
            "read": lambda: self._read(1 - cache, key, 0, 3000, str(self._objects.versions[key])),
            "change": lambda: self.change(key),
            "vanish": lambda: self.vanish(),
        }[meanwhile]
        self._read(cache, key, start, start + size, version)
        self._objects.event = lambda: None

    def _read(self, cache: int, key: str, start: int, stop: int, version: str) -> None:
        was_current = version == str(self._objects.versions[key])
        try:
            found = self._caches[cache].read(key, start, stop, version)
        except StoreChanged:
            assert not was_current
            return
        assert bytes(found) == content(key, version)[start:stop]

    @rule(key=st.sampled_from(KEYS))
    def change(self, key: str) -> None:
        self._objects.versions[key] += 1

    @rule()
    def vanish(self) -> None:
        for path in self._files()[::4]:
            path.unlink()

    @rule(size=st.sampled_from([-70, -20, -1, 0, 0, 1]))
    def damage(self, size: int) -> None:
        """Truncate blocks, change bytes, or append some."""
        for path in self._files()[1::2]:
            whole = path.read_bytes()
            changed = whole[:-1] + bytes(byte ^ 1 for byte in whole[-1:]) + bytes(max(size, 0))
            path.write_bytes(whole[:size] if size < 0 else changed)

    @rule(cache=st.integers(0, 1), is_old=st.booleans())
    def die(self, cache: int, is_old: bool) -> None:
        """Stop in the middle of a block; another process takes over."""
        left = Path(self._folder.name) / f".tmp-{os.urandom(4).hex()}"
        left.write_bytes(bytes(10))
        os.utime(left, (left.stat().st_mtime - (cached.ABANDONED_SECONDS + 1 if is_old else 0),) * 2)
        self._caches[cache] = CachedStore(self._objects, self._folder.name, LIMIT)

    @invariant()
    def stays_within_its_limit(self) -> None:
        assert sum(path.stat().st_size for path in self._files()) <= LIMIT


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(cached, "BLOCK_BYTES", 64)
    return Objects()


@pytest.mark.usefixtures("objects")
def test_every_read_has_the_bytes_of_its_version() -> None:
    run_model(Cache, 12)


def test_data_are_requested_once_and_the_least_recently_read_are_removed(
    objects: Any, tmp_path: Path
) -> None:
    store = CachedStore(objects, tmp_path, 0)
    for key in "abac":  # of 47 blocks each; 64 have room
        for path in tmp_path.rglob("*-*"):  # as if two minutes went by
            os.utime(path, (path.stat().st_mtime - 120,) * 2)
        store.read(key, 0, 600, "0")
    before = objects.requested
    for key in "ac":
        assert bytes(store.read(key, 0, 600, "0")) == content(key, "0")[:600]
    assert objects.requested == before


def test_a_block_that_cannot_be_kept(objects: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert bytes(CachedStore(objects, tmp_path, 1 << 20).read("a", 5, 99, "0")) == content("a", "0")[5:99]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
