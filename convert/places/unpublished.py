"""A dataset on a store that is not finished: its objects lie where they belong, its manifest in the partial folder.

Without a manifest no reader opens it. To the code that verifies it, it looks as it will be.

All that write it put the same bytes under a name, but for those of a run with another plan that goes on though its
output was given to this one: a worker that counts as lost, a driver that was stopped for a while. So an object is put
if absent, and what is there is compared: it is never replaced, and what is another's is removed by the next run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from convert.errors import StorageError
from flat_tokens.storage.manifest import MANIFEST_NAME
from tokenmill.stores import AlreadyThere, Bytes, Entry, Store
from tokenmill.stores.store import as_blocks
from tokenmill.stores.wrapped import WrappedStore

_COMPARED_BYTES = 64 << 20  # what comes in blocks is put in parts, unconditionally, where it is more


class UnpublishedStore(WrappedStore):
    """target: where the objects lie; partial: where the manifest does. manifest_version: of the one that was put by
    this object, which no other run's may take the place of."""

    def __init__(self, target: Store, partial: Store) -> None:
        super().__init__(target)
        self._partial = partial
        self.manifest_version = ""

    def holder(self, key: str) -> Store:
        """See WrappedStore."""
        return self._partial if key == MANIFEST_NAME else self._store

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """See Store."""
        yield from (entry for entry in self._store.list(prefix) if entry.key != MANIFEST_NAME)
        if not prefix:
            yield from (entry for entry in self._partial.list() if entry.key == MANIFEST_NAME)

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        """See Store. The manifest of a run that was interrupted is replaced; StorageError for any other object that is
        there with other bytes."""
        if key == MANIFEST_NAME:
            entry = self._partial.put(key, data)
            self.manifest_version = entry.version
            return entry
        whole = data if isinstance(data, bytes | bytearray | memoryview) else None
        if whole is None:
            blocks, whole = as_blocks(data), bytearray()
            for block in blocks:
                whole += block
                if len(whole) > _COMPARED_BYTES:
                    return self._store.put(key, chain((whole,), blocks))
        try:
            return self._store.put(key, whole, if_absent=True)
        except AlreadyThere:
            if memoryview(self._store.read(key)) != memoryview(whole).cast("B"):
                raise StorageError(
                    f"{self.url}/{key}: another run just wrote this object. End that run, then run the same "
                    "command again."
                ) from None
            return self._store.head(key)

    def delete(self, keys: Iterable[str]) -> None:
        """See Store."""
        for key in keys:
            self.holder(key).delete([key])
