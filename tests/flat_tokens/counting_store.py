"""A store that counts its requests, and datasets on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tokenmill.stores import Entry, Store


class CountingStore:
    """Wrap another store. requests: calls per method; for read_ranges, the number of non-adjacent ranges."""

    is_local = False

    def __init__(self, store: Store) -> None:
        self.store = store
        self.url = store.url
        self.requests: Counter[str] = Counter()

    def list(self, prefix: str = "") -> Iterator[Entry]:
        self.requests["list"] += 1
        return self.store.list(prefix)

    def head(self, key: str) -> Entry:
        self.requests["head"] += 1
        return self.store.head(key)

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Any:
        self.requests["read"] += 1
        return self.store.read(key, start, stop, version)

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]], version: str = "") -> Any:
        rising = sorted(ranges)
        stops = [-1, *(stop for _, stop in rising[:-1])]
        self.requests["read"] += sum(start > stop for (start, _), stop in zip(rising, stops, strict=True))
        return self.store.read_ranges(key, ranges, version)

    def read_begin(self, key: str, count: int) -> Any:
        self.requests["read"] += 1
        return self.store.read_begin(key, count)

    def read_end(self, key: str, count: int) -> Any:
        self.requests["read"] += 1
        return self.store.read_end(key, count)

    def put(self, key: str, data: Any, if_absent: bool = False) -> Entry:
        self.requests["put"] += 1
        return self.store.put(key, data, if_absent)

    def delete(self, keys: Iterable[str]) -> None:
        self.store.delete(keys)


def copy_dataset(root: Path, store: Any) -> Any:
    """Copy a dataset's files to the store, the manifest last, and return the store."""
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    for path in sorted(paths, key=lambda path: path.name == "manifest.json"):
        store.put(path.relative_to(root).as_posix(), path.read_bytes())
    return store
