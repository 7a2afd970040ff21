"""A dataset on a store that is not finished: its objects lie where they belong, its manifest in the partial folder.

Without a manifest no reader opens it. To the code that verifies it, it looks as it will be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from flat_tokens.storage.manifest import MANIFEST_NAME
from stores import Bytes, Entry, Store
from stores.store import Blocks


@dataclass(frozen=True)
class UnpublishedStore:
    """See Store. target: where the objects lie; partial: where the manifest does."""

    target: Store
    partial: Store

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

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        """See Store. The manifest of a run that was interrupted is replaced."""
        return self._of(key).put(key, data, if_absent and key != MANIFEST_NAME)

    def delete(self, keys: Iterable[str]) -> None:
        """See Store."""
        for key in keys:
            self._of(key).delete([key])

    def publish(self) -> None:
        """Put the manifest where readers look for it, as the last object of all; AlreadyThere if there is one."""
        self.target.put(MANIFEST_NAME, bytes(self.partial.read(MANIFEST_NAME)), if_absent=True)
