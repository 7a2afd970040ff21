"""A store made of others: a call for a key goes to the store that holds it, unless a subclass has its own way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tokenmill.stores.store import Blocks, Bytes, Entry, Store


class WrappedStore:
    """See Store. `store` holds all keys for which `holder` names no other; it answers list and delete alone."""

    is_local = False

    def __init__(self, store: Store) -> None:
        self._store = store

    def holder(self, key: str) -> Store:
        """The store that holds a key."""
        return self._store

    @property
    def url(self) -> str:
        """See Store."""
        return self._store.url

    @property
    def path(self) -> Path:
        """See Store."""
        return self._store.path

    @property
    def excludes(self) -> bool:
        """See Store."""
        return self._store.excludes

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """See Store."""
        return self._store.list(prefix)

    def head(self, key: str) -> Entry:
        """See Store."""
        return self.holder(key).head(key)

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        """See Store."""
        return self.holder(key).read(key, start, stop, version)

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]], version: str = "") -> Blocks:
        """See Store."""
        return self.holder(key).read_ranges(key, ranges, version)

    def read_begin(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """See Store."""
        return self.holder(key).read_begin(key, count)

    def read_end(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """See Store."""
        return self.holder(key).read_end(key, count)

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        """See Store."""
        return self.holder(key).put(key, data, if_absent)

    def delete(self, keys: Iterable[str]) -> None:
        """See Store."""
        self._store.delete(keys)
