"""A store that passes each call on to the store that holds the key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tokenmill.stores.store import Blocks, Bytes, Entry, Store


class WrappedStore(Store):
    """`store` and, for the keys that `holder` says, other stores. `list` and `delete` use `store` only."""

    def __init__(self, store: Store) -> None:
        self._store, self.url = store, store.url

    def holder(self, key: str) -> Store:
        """Return the store that holds a key."""
        return self._store

    def list(self, prefix: str = "") -> Iterator[Entry]:
        return self._store.list(prefix)

    def head(self, key: str) -> Entry:
        return self.holder(key).head(key)

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        return self.holder(key).read(key, start, stop, version)

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]], version: str = "") -> Blocks:
        return self.holder(key).read_ranges(key, ranges, version)

    def read_begin(self, key: str, count: int) -> tuple[Bytes, Entry]:
        return self.holder(key).read_begin(key, count)

    def read_end(self, key: str, count: int) -> tuple[Bytes, Entry]:
        return self.holder(key).read_end(key, count)

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        return self.holder(key).put(key, data, if_absent)

    def delete(self, keys: Iterable[str]) -> None:
        self._store.delete(keys)
