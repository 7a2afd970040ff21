"""Local folders as stores. A put writes a temporary file next to the object and renames it.

A put with `if_absent` is on disk before it has its name, because no other run could replace half an object after a
power failure. Other puts are not forced to disk.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tokenmill.stores.errors import changed, not_found
from tokenmill.stores.files import LocalFile, file_version, read_at
from tokenmill.stores.names import write_whole
from tokenmill.stores.store import Blocks, Bytes, Entry, Store, checked_key

TEMPORARY_PREFIX = ".put-"  # names of interrupted puts, which are never listed
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class LocalStore(Store):
    """A local folder (see Store). The OSErrors of the system name their path."""

    is_local = True

    def __init__(self, path: str) -> None:
        self.url = str(Path(path))

    @property
    def path(self) -> Path:
        return Path(self.url)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        prefix = prefix.rstrip("/")
        if prefix:
            return _files_in(self._path(prefix), f"{prefix}/")
        return _files_in(self.url, "")

    def head(self, key: str) -> Entry:
        path = self._path(key)
        try:
            status = os.stat(path)  # noqa: PTH116 - a Path costs more than the call
        except _ABSENT:
            raise not_found(path) from None
        if not os.path.isfile(path):  # noqa: PTH113
            raise not_found(path)
        return Entry(key, status.st_size, file_version(status))

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        return self.read_ranges(key, [(start, stop)], version)[0]

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int | None]], version: str = "") -> Blocks:
        path = self._path(key)
        try:
            with LocalFile(path) as file:
                blocks: Blocks = []
                for start, stop in ranges:
                    end = file.size if stop is None else min(stop, file.size)
                    blocks.append(read_at(file, start, max(end - start, 0)))
                if version and file_version(file.status()) != version:
                    raise changed(path)
                return blocks
        except _ABSENT:
            raise not_found(path) from None

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        path = self._path(key)
        folder = os.path.dirname(path)  # noqa: PTH120
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        temporary = f"{folder}/{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
        blocks = (data,) if isinstance(data, bytes | bytearray | memoryview) else data
        write_whole(path, blocks, temporary, synced=if_absent, if_absent=if_absent)
        return self.head(key)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects. Empty folders stay."""
        for key in keys:
            with suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(self._path(key))  # noqa: PTH108

    def _path(self, key: str) -> str:
        return f"{self.url}/{checked_key(self.url, key)}"


def _files_in(folder: str, prefix: str) -> Iterator[Entry]:
    """Yield the files of a folder and below, sorted by the bytes of their keys. A folder sorts as its name and "/"."""
    try:
        with os.scandir(folder) as found:
            entries = [
                (f"{entry.name}/" if entry.is_dir() else entry.name, entry)
                for entry in found
                if not entry.name.startswith(TEMPORARY_PREFIX)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return
    for name, entry in sorted(entries, key=lambda pair: os.fsencode(pair[0])):
        if name.endswith("/"):
            yield from _files_in(entry.path, prefix + name)
        elif entry.is_file():
            with suppress(FileNotFoundError):  # removed since the folder was read
                status = entry.stat()
                yield Entry(prefix + name, status.st_size, file_version(status))
