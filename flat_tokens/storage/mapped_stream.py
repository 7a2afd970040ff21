"""A raw array as one array in memory: every file is mapped where the previous one ends.

Rows are gathered by one call then, regardless of Zarr chunks. The constructor reserves addresses. The first access to a
file maps it there and compares its IDs with the largest allowed one. Only files that are one uncompressed Zarr chunk of
whole pages can be mapped like this.

Files are mapped by the C library, because Python's mmap has no fixed addresses and keeps a file descriptor per mapping.
The kernel allows a process 65,530 mappings, so all arrays together use at most MAX_MAPPINGS. Truncating a mapped file
ends the process with SIGBUS.

Invariant: accessed files are mapped and sound. Other elements read as zeros, so nothing is read without access.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import damaged
from flat_tokens.format import Int64
from flat_tokens.storage.elements import check_largest
from flat_tokens.storage.files import RegularFile
from flat_tokens.storage.opened_manifest import OpenedManifest
from flat_tokens.storage.zarr_metadata import ArrayMetadata

MAX_MAPPINGS = 2**15
_POPULATED_BYTES = 2**21  # larger files may be mapped for a few rows
_FIXED = 16  # MAP_FIXED, the same on Linux, macOS and the BSDs
_POPULATE = getattr(mmap, "MAP_POPULATE", 0)  # on Linux; elsewhere page faults read the file later

_mapped: list[int] = []  # files of each stream and shard of this process


class MappedStream:
    """values: the elements, read-only. Only what `touch` or `view` was called for is there.

    Safe to use from several threads. Methods raise DatasetError for damage and for a replaced dataset."""

    def __init__(
        self, array: ArrayMetadata, opened: OpenedManifest, largest: int, memory: npt.NDArray[np.uint8]
    ) -> None:
        self._array = array
        self._opened = opened
        self._largest = largest
        self._memory = memory
        self.values: npt.NDArray[Any] = self._memory.view(array.dtype)[: array.element_count]
        self._is_mapped = np.zeros(array.file_count, dtype=np.bool_)
        self._is_sound = np.zeros(array.file_count, dtype=np.bool_)

    @classmethod
    def create(cls, array: ArrayMetadata, opened: OpenedManifest, largest: int) -> MappedStream | None:
        """The stream of an array, None if it cannot be mapped. largest: see Elements."""
        is_possible = (
            isinstance(array.path, Path)
            and array.codecs.is_uncompressed
            and not array.codecs.crc32c
            and not array.sharded
            and array.chunk_bytes % mmap.PAGESIZE == 0
            and array.element_count > 0
        )
        memory = _reserve(array.file_count * array.chunk_bytes, array.file_count) if is_possible else None
        return None if memory is None else cls(array, opened, largest, memory)

    def touch(self, starts: Int64, stops: Int64, is_alone: bool = False) -> None:
        """Map the elements [starts[i], stops[i]), none of them empty.

        is_alone: check only these ranges instead of whole files, for callers that soon need no more of them. Cost:
        10 us, and 20 us plus 0.3 ns per element for each new file."""
        chunk, count = self._array.chunk_elements, self._array.file_count
        first_of = np.bincount(starts // chunk, minlength=count + 1)
        past_of = np.bincount((stops - 1) // chunk + 1, minlength=count + 1)
        is_needed = np.cumsum(first_of - past_of)[:count] > 0
        missing = np.flatnonzero(is_needed & ~(self._is_mapped if is_alone else self._is_sound)).tolist()
        self._map(missing, populate=not is_alone)
        if is_alone:
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
                check_largest(self.values[start:stop], self._largest, self._array, start)
            return
        for first in (index * chunk for index in missing):
            check_largest(self.values[first : first + chunk], self._largest, self._array, first)
        self._is_sound[missing] = True

    def view(self, start: int, stop: int) -> npt.NDArray[Any]:
        """The elements [start, stop) as a view. They are not checked."""
        chunk, is_mapped = self._array.chunk_elements, self._is_mapped
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
        size = self._array.chunk_bytes
        with self._opened.reading():
            for index in indexes:
                path = self._array.file_name(index)
                with RegularFile(path) as file:
                    if file.size != size:
                        raise damaged(path, f"must have {size} bytes (got {file.size})")
                    _map_at(self._memory, index * size, file, populate and size <= _POPULATED_BYTES, path)
        self._is_mapped[indexes] = True


def map_file(file: RegularFile, path: str) -> memoryview | None:
    """A whole opened file, read-only. None without addresses for it."""
    memory = _reserve(file.size, 1)
    if memory is None:
        return None
    _map_at(memory, 0, file, False, path)
    return memory.data


@functools.cache
def _libc() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    size, pointer, integer = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
    library.mmap.restype = pointer
    library.mmap.argtypes = [pointer, size, integer, integer, integer, ctypes.c_int64]
    return library


def _map_at(memory: npt.NDArray[np.uint8], offset: int, file: RegularFile, populate: bool, path: str) -> None:
    """Map a whole file into reserved memory. populate: read all of it now."""
    address = memory.__array_interface__["data"][0] + offset
    flags = mmap.MAP_SHARED | _FIXED | (_POPULATE if populate else 0)
    mapped: int = _libc().mmap(address, file.size, mmap.PROT_READ, flags, file.descriptor, 0)
    if mapped == ctypes.c_void_p(-1).value:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)


def _reserve(size: int, files: int) -> npt.NDArray[np.uint8] | None:
    """Addresses for some files, which read as zeros and take no memory. None under a limit on virtual memory, and if
    the process has too many mappings."""
    if sum(_mapped) + files > MAX_MAPPINGS:
        return None
    try:
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ)
    except (OSError, OverflowError):
        return None
    _mapped.append(files)
    weakref.finalize(memory, _mapped.remove, files).atexit = False
    return np.frombuffer(memory, dtype=np.uint8)
