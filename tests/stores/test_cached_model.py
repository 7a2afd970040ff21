"""A model of a cache that two processes share: reads in all orders, between which objects change, blocks vanish or are
damaged, and processes die; what was read before may be kept after that."""

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
from state_machines import finds_fault, run_model

from tokenmill.stores import StoreChanged, cached
from tokenmill.stores.cached import CachedStore

BLOCK_BYTES = 64
KEYS = "abcdef"
LIMIT = 64 * BLOCK_BYTES  # less than the objects have

FAULTS: dict[str, tuple[Any, str, Any]] = {
    "damage is not seen": (cached, "_digest", lambda block: bytes(16)),
    "nothing goes": (CachedStore, "_make_room", lambda self: None),
    "all versions are one": (
        CachedStore, "_place", lambda self, name, number: self._folder / "00" / f"{number}"
    ),
}  # fmt: skip


class Objects:
    """A store whose objects change; `meanwhile` is what others do before an answer is there."""

    url = "test://objects"

    def __init__(self) -> None:
        self.versions = dict.fromkeys(KEYS, 0)
        self.meanwhile: Callable[[], None] | None = None

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]], version: str = "") -> list[bytes]:
        if version != str(self.versions[key]):
            raise StoreChanged(f"{key} changed")
        answer = [content(key, version)[start:stop] for start, stop in ranges]
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return answer


def content(key: str, version: str) -> bytes:
    return random.Random(f"{key} {version}").randbytes(2970 + KEYS.index(key))


class Cache(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._objects = Objects()
        self._caches = [CachedStore(self._objects, self._folder.name, LIMIT) for _ in "12"]  # type: ignore[arg-type]

    def teardown(self) -> None:
        self._folder.cleanup()

    def _files(self) -> list[Path]:
        return sorted(path for path in Path(self._folder.name).rglob("*") if path.is_file())

    @rule(
        cache=st.integers(0, 1), key=st.sampled_from(KEYS), start=st.integers(0, 3000), size=st.integers(0, 3000),
        age=st.sampled_from([0, 0, 0, 1]), meanwhile=st.sampled_from(["nothing", "read", "change", "vanish"]),
    )  # fmt: skip
    def read(self, cache: int, key: str, start: int, size: int, age: int, meanwhile: str) -> None:
        """Of this version or the one before, while others do something."""
        version = str(self._objects.versions[key] - age)
        self._objects.meanwhile = {
            "nothing": None,
            "read": lambda: self._read(1 - cache, key, 0, 3000, str(self._objects.versions[key])),
            "change": lambda: self.change(key),
            "vanish": lambda: self.vanish(),
        }[meanwhile]
        self._read(cache, key, start, start + size, version)
        self._objects.meanwhile = None

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
        """Blocks are cut off, have other bytes, or more of them."""
        for path in self._files()[1::2]:
            whole = path.read_bytes()
            damaged = (
                whole[:size]
                if size < 0
                else whole[:-1] + bytes(byte ^ 1 for byte in whole[-1:]) + bytes(size)
            )
            path.write_bytes(damaged)

    @rule(cache=st.integers(0, 1), seconds=st.sampled_from([0, cached.ABANDONED_SECONDS + 1]))
    def die(self, cache: int, seconds: float) -> None:
        """In the middle of a block; another process takes its place."""
        left = Path(self._folder.name) / f".tmp-{os.urandom(4).hex()}"
        left.write_bytes(bytes(10))
        os.utime(left, (left.stat().st_mtime - seconds,) * 2)
        self._caches[cache] = CachedStore(self._objects, self._folder.name, LIMIT)  # type: ignore[arg-type]

    @invariant()
    def stays_within_its_limit(self) -> None:
        kept = [path for path in self._files() if not path.name.startswith(".tmp-")]
        assert sum(path.stat().st_size for path in kept) <= LIMIT


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached, "BLOCK_BYTES", BLOCK_BYTES)


def test_every_read_is_of_its_version() -> None:
    run_model(Cache, 12)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_model_finds_faults(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, change = FAULTS[fault]
    monkeypatch.setattr(where, name, change)
    finds_fault(Cache, 400)  # as many as it takes
