"""A raw array as one array in memory: every file is mapped where the previous one ends.

Rows are gathered by one call then, regardless of Zarr chunks. The constructor reserves addresses. The first access to a
file maps it there and compares its IDs with the largest allowed one. Only files that are one uncompressed Zarr chunk of
whole pages can be mapped like this.

The mmap of the C library is called, because Python's own keeps a file descriptor open per mapping. The kernel allows a
process 65,530 mappings, so all arrays together use at most MAX_MAPPINGS. Truncating a mapped file ends the process with
SIGBUS.

Invariant: accessed files are mapped and sound. Other elements read as zeros, so nothing is read without access.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import damaged
from flat_tokens.format import Int64
from flat_tokens.storage.files import open_regular
from flat_tokens.storage.opened_manifest import OpenedManifest
from flat_tokens.storage.zarr_metadata import StoredArray

MAX_MAPPINGS = 2**15
_POPULATED_BYTES = 2**21  # larger files may be mapped for a few rows
_PROT_READ, _SHARED, _PRIVATE, _FIXED = 1, 1, 2, 16  # the same on Linux, macOS and the BSDs
_IS_LINUX = sys.platform == "linux"
_RESERVED = _PRIVATE | (0x20 | 0x4000 if _IS_LINUX else 0x1000)  # MAP_ANONYMOUS and, on Linux, MAP_NORESERVE
_POPULATE = 0x8000 if _IS_LINUX else 0  # elsewhere page faults read the file later

_lock = threading.Lock()
_mapping_count = 0  # of all streams in this process


class MappedStream:
    """values: the elements, read-only. Only what `touch` or `view` was called for is there.

    check(values, first): raises for invalid elements. Safe to use from several threads."""

    def __init__(
        self,
        stored: StoredArray,
        opened: OpenedManifest | None,
        check: Callable[[npt.NDArray[Any], int], None],
        memory: npt.NDArray[np.uint8],
    ) -> None:
        self._stored = stored
        self._opened = opened
        self._check = check
        self._memory = memory
        self.values: npt.NDArray[Any] = self._memory.view(stored.dtype)[: stored.element_count]
        self._is_mapped = np.zeros(stored.file_count, dtype=np.bool_)
        self._is_sound = np.zeros(stored.file_count, dtype=np.bool_)

    @classmethod
    def create(
        cls,
        stored: StoredArray,
        opened: OpenedManifest | None,
        check: Callable[[npt.NDArray[Any], int], None],
    ) -> MappedStream | None:
        """The stream of an array, None if it cannot be mapped."""
        is_possible = (
            isinstance(stored.path, Path)
            and stored.codecs.is_uncompressed
            and not stored.codecs.crc32c
            and not stored.sharded
            and stored.chunk_bytes % mmap.PAGESIZE == 0
            and stored.element_count > 0
        )
        memory = _reserve(stored.file_count * stored.chunk_bytes, stored.file_count) if is_possible else None
        return None if memory is None else cls(stored, opened, check, memory)

    def touch(self, starts: Int64, stops: Int64, is_alone: bool = False) -> None:
        """Map the elements [starts[i], stops[i]), none of them empty.

        is_alone: check only these ranges instead of whole files, for callers that soon need no more of them. Cost:
        10 us, and 20 us plus 0.3 ns per element for each new file. Raise DatasetError for damage."""
        chunk, count = self._stored.chunk_elements, self._stored.file_count
        first_of = np.bincount(starts // chunk, minlength=count + 1)
        past_of = np.bincount((stops - 1) // chunk + 1, minlength=count + 1)
        is_needed = np.cumsum(first_of - past_of)[:count] > 0
        missing = np.flatnonzero(is_needed & ~(self._is_mapped if is_alone else self._is_sound)).tolist()
        self._map(missing, populate=not is_alone)
        for index in () if is_alone else missing:
            first = index * chunk
            self._check(self.values[first : first + chunk], first)
            self._is_sound[index] = True
        if is_alone:
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
                self._check(self.values[start:stop], start)

    def view(self, start: int, stop: int) -> npt.NDArray[Any]:
        """The elements [start, stop) as a view. They are not checked."""
        chunk, is_mapped = self._stored.chunk_elements, self._is_mapped
        for index in range(start // chunk, -(-stop // chunk)):
            if not is_mapped[index]:
                self._map([index], populate=True)
        return self.values[start:stop]

    def _map(self, indexes: list[int], populate: bool) -> None:
        """Map some files, then check that the dataset was not replaced. Repeating it changes nothing.

        populate: read all of each file now."""
        indexes = [index for index in indexes if not self._is_mapped[index]]
        if not indexes:
            return
        with self._opened.explaining() if self._opened is not None else nullcontext():
            for index in indexes:
                self._map_file(index, populate)
        if self._opened is not None:
            self._opened.check()
        self._is_mapped[indexes] = True

    def _map_file(self, index: int, populate: bool) -> None:
        path, size = self._stored.file_name(index), self._stored.chunk_bytes
        file, found = open_regular(path)
        with file:
            if found != size:
                raise damaged(path, f"must have {size} bytes (got {found})")
            flags = _SHARED | _FIXED | (_POPULATE if populate and size <= _POPULATED_BYTES else 0)
            address = self._memory.__array_interface__["data"][0] + index * size
            _mmap(address, size, flags, file.fileno(), path)


def map_file(descriptor: int, size: int, path: str) -> memoryview | None:
    """A whole opened file, read-only. None without addresses for it."""
    memory = _reserve(size, 1)
    if memory is None:
        return None
    _mmap(memory.__array_interface__["data"][0], size, _SHARED | _FIXED, descriptor, path)
    return memory.data


def _count(files: int) -> bool:
    """Add to the mappings of the process; False if they would be too many."""
    global _mapping_count
    with _lock:
        if files > 0 and _mapping_count + files > MAX_MAPPINGS:
            return False
        _mapping_count += files
    return True


def _renew_lock() -> None:
    """In the child of a fork, another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


@functools.cache
def _libc() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    size, pointer, integer = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
    library.mmap.restype = pointer
    library.mmap.argtypes = [pointer, size, integer, integer, integer, ctypes.c_int64]
    library.munmap.argtypes = [pointer, size]
    return library


def _mmap(address: int | None, size: int, flags: int, descriptor: int, path: str | None) -> int:
    mapped: int = _libc().mmap(address, size, _PROT_READ, flags, descriptor, 0)
    if mapped == ctypes.c_void_p(-1).value:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return mapped


def _reserve(size: int, files: int) -> npt.NDArray[np.uint8] | None:
    """Addresses for some files, which read as zeros and take no memory. None under a limit on virtual memory, and if
    the process has too many mappings."""
    if not _count(files):
        return None
    try:
        address = _mmap(None, size, _RESERVED, -1, None)
    except OSError:
        _count(-files)
        return None
    memory: Any = (ctypes.c_uint8 * size).from_address(address)
    weakref.finalize(memory, _release, address, size, files).atexit = False
    values: npt.NDArray[np.uint8] = np.frombuffer(memory, dtype=np.uint8)
    values.flags.writeable = False
    return values


def _release(address: int, size: int, files: int) -> None:
    _libc().munmap(address, size)
    _count(-files)
