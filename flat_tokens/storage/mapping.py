"""Files mapped into memory without a file descriptor held for each.

Python's own mmap keeps a duplicate of the descriptor for as long as the mapping lives (before 3.13), and a
dataset of 10^10 raw tokens has 38,000 files where 1,024 descriptors are usual. So the C library's mmap is
called: a mapping costs an entry in the kernel's table and nothing else. It lives as long as an array that
looks into it. POSIX only, like the rest of the package.

A mapped file that is truncated while it is read ends the process with SIGBUS, as with any mapping; one that
is too short when it is mapped is refused.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import damaged
from flat_tokens.storage.files import check_length, open_regular

PROT_READ, MAP_SHARED, MAP_PRIVATE, MAP_FIXED = 1, 1, 2, 16  # the same on Linux, macOS and the BSDs
MAP_ANONYMOUS = 0x20 if sys.platform == "linux" else 0x1000
MAP_NORESERVE = 0x4000 if sys.platform == "linux" else 0
MAP_POPULATE = 0x8000 if sys.platform == "linux" else 0  # elsewhere page faults do it, later
POPULATED_BYTES = 2**21  # a larger file may be mapped for a few rows of it


@functools.cache
def _libc() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int64,
    ]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return library


def map_file(path: Path | str, limit_bytes: int) -> npt.NDArray[np.uint8]:
    """The bytes of a regular file of at most limit_bytes, uint8[size], read-only and shared with the page cache.

    Cost: 10 us, and 10 us for each 100 KiB up to 2 MiB; above, a page fault when a page is touched first.
    DatasetError for a file that is absent, empty, longer or not a regular file; OSError from the machine."""
    file, size = open_regular(path)
    with file:
        check_length(path, size, limit_bytes)
        if size == 0:
            raise damaged(path, "empty file")
        flags = MAP_SHARED | (MAP_POPULATE if size <= POPULATED_BYTES else 0)
        address = _map(None, size, flags, file.fileno(), path)
    return _array(address, size)


def reserve(size: int) -> npt.NDArray[np.uint8]:
    """Addresses for `size` bytes, uint8[size] of zeros, read-only; files are put there by map_into. Costs no
    memory."""
    return _array(_map(None, size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, None), size)


def map_into(
    reserved: npt.NDArray[np.uint8], offset: int, size: int, path: Path | str, populate: bool
) -> None:
    """Put a file of exactly `size` bytes at `offset` of what `reserve` gave; both are whole pages, but for the
    file's end at the end of the reservation. Done twice it changes nothing. populate: all of it will be read.
    DatasetError as map_file."""
    file, found = open_regular(path)
    with file:
        if found != size:
            raise damaged(path, f"must have {size} bytes (got {found})")
        flags = MAP_SHARED | MAP_FIXED | (MAP_POPULATE if populate and size <= POPULATED_BYTES else 0)
        _map(reserved.ctypes.data + offset, size, flags, file.fileno(), path)


def _map(address: int | None, size: int, flags: int, descriptor: int, path: Path | str | None) -> int:
    mapped: int = _libc().mmap(address, size, PROT_READ, flags, descriptor, 0)
    if mapped == ctypes.c_void_p(-1).value:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), None if path is None else str(path))
    return mapped


def _array(address: int, size: int) -> npt.NDArray[np.uint8]:
    memory: Any = (ctypes.c_uint8 * size).from_address(address)
    weakref.finalize(memory, _libc().munmap, address, size).atexit = False
    values: npt.NDArray[np.uint8] = np.frombuffer(memory, dtype=np.uint8)
    values.flags.writeable = False
    return values
