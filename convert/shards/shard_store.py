"""The place of temporary shards and unpacked blocks: a folder that all workers can access, or a store."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from convert.errors import naming
from tokenmill.stores import (
    NO_OPTIONS,
    RandomFile,
    StorageOptions,
    Store,
    StoreNotFound,
    open_file,
    open_store,
)
from tokenmill.stores.names import rename

_PUT_BYTES = 8 << 20
_NAME = re.compile(r"\d+\.\d+[.-][0-9a-z.]+")  # of shards (shard.py) and blocks (unpacked_block.py)


class ShardStore(NamedTuple):
    """Files at `place`, a path or URL. A file in it is always complete."""

    store: Store
    place: str
    options: StorageOptions

    @contextmanager
    def folder(self, temporary: Path) -> Iterator[Path]:
        """Give a folder for the files of one task until `keep`. temporary: removed at the end of the run."""
        if self.store.is_local:
            yield self.store.path
            return
        parent = temporary if temporary.is_dir() else None
        with tempfile.TemporaryDirectory(
            prefix="tokenmill-shards-", dir=parent, ignore_cleanup_errors=True
        ) as folder:
            yield Path(folder)

    def keep(self, folder: Path, names: Mapping[str, str]) -> None:
        """Take files of a task. names: final name by the name in `folder`; existing files are replaced."""
        for name, final in names.items():
            path = folder / name
            if self.store.is_local:
                if name != final:
                    rename(str(path), f"{folder}/{final}")
                continue
            with naming(path), path.open("rb") as file:
                self.store.put(final, iter(lambda: file.read(_PUT_BYTES), b""))

    def size_of(self, name: str) -> int | None:
        """Return the size of a file, or None if it does not exist."""
        try:
            return self.store.head(name).size
        except StoreNotFound:
            return None

    def open(self, name: str, size: int | None = None) -> RandomFile:
        """Open a file for reading. size: its size, if known, which saves a request. Raise StoreNotFound."""
        try:
            return open_file(f"{self.place}/{name}", self.options, size=size)
        except FileNotFoundError:
            raise StoreNotFound(f"{self.where(name)}: missing") from None

    def where(self, name: str) -> str:
        """Return the path or URL of a file, for messages."""
        return f"{self.store.url}/{name}"

    def read(self, name: str) -> bytes:
        """Read a small file. Raise StoreNotFound."""
        return bytes(self.store.read(name))

    def delete(self, names: Iterable[str]) -> None:
        """Delete files. Missing ones are ignored."""
        self.store.delete(names)

    def delete_others(self, kept: Collection[str]) -> None:
        """Delete all shards and blocks except these files."""
        names = (entry.key for entry in self.store.list())
        self.delete([name for name in names if name not in kept and _NAME.fullmatch(name)])


def shards_at(place: str | Path, options: StorageOptions = NO_OPTIONS) -> ShardStore:
    """Return the shards at a path or URL."""
    return ShardStore(open_store(place, options), str(place), dict(options))
