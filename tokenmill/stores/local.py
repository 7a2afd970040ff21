"""A folder of this machine as a store. A put writes under a temporary name beside the place, then renames.

What only one may put is on the disk before it has its name: after a power loss nobody could put it again in place of
half of it. Nothing else is forced to the disk here: who must survive a power loss does that.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tokenmill.stores import system
from tokenmill.stores.errors import already_there, changed, not_found
from tokenmill.stores.names import has_name, rename
from tokenmill.stores.store import Blocks, Bytes, Entry, as_blocks, begin_by_size, checked_key, end_by_size

TEMPORARY_PREFIX = ".put-"  # what a killed put leaves behind is named so; `list` leaves it out
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


def file_version(status: os.stat_result) -> str:
    """The version of a local file: another once it was written to or replaced."""
    return f"{status.st_size:x}-{status.st_mtime_ns:x}-{status.st_ino:x}"


class LocalStore:
    """A folder; see `tokenmill.stores.store.Store`. OSErrors of the system name their path."""

    is_local = True
    excludes = True

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    @property
    def url(self) -> str:
        """The path of the folder."""
        return str(self.path)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """See Store."""
        folder = self._place(prefix.rstrip("/")) if prefix.rstrip("/") else str(self.path)
        yield from _files_in(folder, f"{prefix.rstrip('/')}/" if prefix.rstrip("/") else "")

    def head(self, key: str) -> Entry:
        """See Store."""
        place = self._place(key)
        try:
            status = os.stat(place)  # noqa: PTH116 - a Path costs more than the call
        except _ABSENT:
            raise not_found(place) from None
        if not os.path.isfile(place):  # noqa: PTH113
            raise not_found(place)
        return Entry(key, status.st_size, file_version(status))

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        """See Store."""
        return self.read_ranges(key, [(start, stop)], version)[0]

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int | None]], version: str = "") -> Blocks:
        """See Store."""
        place = self._place(key)
        try:
            file = os.open(place, os.O_RDONLY | system.BINARY)
        except _ABSENT:
            raise not_found(place) from None
        try:
            blocks: Blocks = [_read_at(file, place, start, stop) for start, stop in ranges]
            if version and file_version(os.fstat(file)) != version:
                raise changed(place)
            return blocks
        except IsADirectoryError:
            raise not_found(place) from None
        finally:
            os.close(file)

    def read_begin(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """See Store."""
        return begin_by_size(self, key, count)

    def read_end(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """See Store."""
        return end_by_size(self, key, count)

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        """See Store. if_absent: by a hard link, which fails where the name is taken. A file system without links first
        makes the name, empty, which only one can, and then puts the file in its place."""
        place = self._place(key)
        folder = os.path.dirname(place)  # noqa: PTH120
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        temporary = f"{folder}/{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
        try:
            _write(temporary, data, lasts=if_absent)
            if not if_absent or not _link(temporary, place):
                rename(temporary, place)
            return Entry(key, (status := os.stat(place)).st_size, file_version(status))  # noqa: PTH116
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)  # noqa: PTH108

    def delete(self, keys: Iterable[str]) -> None:
        """See Store. Folders that become empty stay."""
        for key in keys:
            with suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(self._place(key))  # noqa: PTH108

    def _place(self, key: str) -> str:
        return f"{self.path}/{checked_key(self.url, key)}"


def _files_in(folder: str, prefix: str) -> Iterator[Entry]:
    """The files below a folder by the bytes of their keys: a folder stands where its name and a slash do."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(
                ((entry.name + "/" if entry.is_dir() else entry.name), entry)
                for entry in found
                if not entry.name.startswith(TEMPORARY_PREFIX)
            )
    except (FileNotFoundError, NotADirectoryError):
        return
    for name, entry in sorted(entries, key=lambda pair: os.fsencode(pair[0])):
        if name.endswith("/"):
            yield from _files_in(entry.path, prefix + name)
        elif entry.is_file():
            with suppress(FileNotFoundError):  # removed since the folder was read
                status = entry.stat()
                yield Entry(prefix + name, status.st_size, file_version(status))


def _read_at(file: int, place: str, start: int, stop: int | None) -> bytearray:
    """Bytes [start, stop) of an open file, fewer at its end."""
    size = os.fstat(file).st_size
    block = bytearray(max(0, min(size, size if stop is None else stop) - start))
    held = 0
    while held < len(block):
        got = read_into(file, place, start + held, memoryview(block)[held:])
        if not got:
            break
        held += got
    del block[held:]
    return block


def read_into(file: int, place: str, offset: int, view: memoryview) -> int:
    """Bytes of an open file put into `view`; how many, 0 only at its end or for an empty view."""
    try:
        return system.read_into(file, view, offset)
    except OSError as error:
        error.filename = place  # the system does not say which file it was
        raise


def _write(place: str, data: Bytes | Iterable[Bytes], lasts: bool) -> None:
    file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.BINARY, 0o666)
    try:
        for block in as_blocks(data):
            while block:
                block = block[os.write(file, block) :]
        if lasts:
            os.fsync(file)
    except OSError as error:
        error.filename = place
        raise
    finally:
        os.close(file)


def _link(temporary: str, place: str) -> bool:
    """Whether the file has got its name; AlreadyThere if it is taken, False if it is now reserved for a rename."""
    try:
        os.link(temporary, place)
        return True
    except FileExistsError:
        if has_name(os.lstat(temporary), place):
            return True  # its answer was lost
        raise already_there(place) from None
    except OSError:  # no hard links here: EPERM, ENOTSUP, EMLINK by the file system
        try:
            os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.BINARY, 0o666))
            return False
        except FileExistsError:
            raise already_there(place) from None
