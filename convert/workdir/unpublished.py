"""A view of an unfinished dataset on a store: its objects at their final names, its manifest in the work folder.

Readers do not open the output without a manifest, while verification sees the dataset as it will be.

Runs of one command write the same bytes under each name. A late worker of a run with another plan may write others.
Objects are therefore put if absent and compared, not replaced, and the next run removes foreign ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from convert.errors import StorageError
from flat_tokens.storage.manifest import MANIFEST_NAME
from tokenmill.stores import AlreadyThere, Bytes, Entry, Store
from tokenmill.stores.wrapped import WrappedStore


class UnpublishedStore(WrappedStore):
    """target: the store of the dataset. partial: the store of its manifest.

    manifest_version: the version of the manifest that was put through this object.
    """

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
        """Put an object. Replace the manifest of an interrupted run; StorageError if another object differs."""
        if key == MANIFEST_NAME:
            entry = self._partial.put(key, data)
            self.manifest_version = entry.version
            return entry
        if not isinstance(data, bytes | bytearray | memoryview):
            return self._store.put(key, data)  # blocks come from the driver alone
        try:
            return self._store.put(key, data, if_absent=True)
        except AlreadyThere:
            if memoryview(self._store.read(key)) != memoryview(data).cast("B"):
                raise StorageError(
                    f"{self.url}/{key}: another run just wrote this object. End that run, then run the same "
                    "command again."
                ) from None
            return self._store.head(key)

    def delete(self, keys: Iterable[str]) -> None:
        """See Store."""
        for key in keys:
            self.holder(key).delete([key])
