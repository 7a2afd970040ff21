"""A dataset on a store that is not finished: its objects lie where they belong, its manifest in the partial folder.

Without a manifest no reader opens it. To the code that verifies it, it looks as it will be.

All that write it put the same bytes under a name, but for those of a run with another plan that goes on though its
output was given to this one: a worker that counts as lost, a driver that was stopped for a while. So an object is put
if absent, and what is there is compared: it is never replaced, and what is another's is removed by the next run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from convert.errors import StorageError
from flat_tokens.storage.manifest import MANIFEST_NAME
from stores import AlreadyThere, Bytes, Entry, Store
from stores.store import Blocks, as_blocks

_COMPARED_BYTES = 64 << 20  # what comes in blocks is put in parts, unconditionally, where it is more


@dataclass
class UnpublishedStore:
    """See Store. target: where the objects lie; partial: where the manifest does; manifest_version: of the one that
    was put by this object, which no other run's may take the place of."""

    target: Store
    partial: Store
    manifest_version: str = ""

    @property
    def url(self) -> str:
        """See Store."""
        return self.target.url

    @property
    def is_local(self) -> bool:
        """See Store."""
        return False

    @property
    def path(self) -> Path:
        """See Store."""
        return self.target.path

    @property
    def excludes(self) -> bool:
        """See Store."""
        return self.target.excludes

    def _of(self, key: str) -> Store:
        return self.partial if key == MANIFEST_NAME else self.target

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """See Store."""
        yield from (entry for entry in self.target.list(prefix) if entry.key != MANIFEST_NAME)
        if not prefix:
            yield from (entry for entry in self.partial.list() if entry.key == MANIFEST_NAME)

    def head(self, key: str) -> Entry:
        """See Store."""
        return self._of(key).head(key)

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        """See Store."""
        return self._of(key).read(key, start, stop, version)

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]], version: str = "") -> Blocks:
        """See Store."""
        return self._of(key).read_ranges(key, ranges, version)

    def read_begin(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """See Store."""
        return self._of(key).read_begin(key, count)

    def read_end(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """See Store."""
        return self._of(key).read_end(key, count)

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        """See Store. The manifest of a run that was interrupted is replaced; StorageError for any other object that is
        there with other bytes."""
        if key == MANIFEST_NAME:
            entry = self.partial.put(key, data)
            self.manifest_version = entry.version
            return entry
        whole = data if isinstance(data, bytes | bytearray | memoryview) else None
        if whole is None:
            blocks, whole = as_blocks(data), bytearray()
            for block in blocks:
                whole += block
                if len(whole) > _COMPARED_BYTES:
                    return self.target.put(key, chain((whole,), blocks))
        try:
            return self.target.put(key, whole, if_absent=True)
        except AlreadyThere:
            if memoryview(self.target.read(key)) != memoryview(whole).cast("B"):
                raise StorageError(
                    f"{self.url}/{key} was written by another run just now; end it, and run the same command again"
                ) from None
            return self.target.head(key)

    def delete(self, keys: Iterable[str]) -> None:
        """See Store."""
        for key in keys:
            self._of(key).delete([key])
