"""The functions of libzstd that numcodecs brings, called with contexts that are kept.

numcodecs makes a new context for each buffer, and to import it takes 30 ms, mostly for codecs that nobody asked for and
for a list of all installed packages: as long as a text chunk of 4 MiB takes to encode, in every worker process. Its
module for zstd is a shared library that exports zstd's own functions (or is linked to a library that does). It is
found without an import, and its functions are called here. Where that cannot be, `library` is None, and callers leave
the work to numcodecs.
"""

from __future__ import annotations

import ctypes
import functools
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

RESET_SESSION = 1
_STABLE_OUT = 1001  # decode straight into the output buffer; without it there is one more copy
_IGNORE_CHECKSUM = 1002
_LEVEL, _WINDOW_LOG, _CHECKSUM = 100, 101, 201
_BLOCKS_ARE_GIVEN = 1008  # sequences say where blocks end
_NO_MEMORY = ctypes.c_size_t(-64).value  # what a function returns that could not allocate

WINDOW_BYTES = 2**20  # of frames made of given sequences: every decoder has as much


class Buffer(ctypes.Structure):
    """Bytes of which `pos` are done, as zstd's streaming functions take them."""

    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t))


class Encoder:
    """A context to compress with, and room for a frame, which is kept as well: its pages are touched once."""

    def __init__(self, context: int) -> None:
        self.context = context
        self._room = np.empty(0, np.uint8)

    def room(self, size: int) -> npt.NDArray[np.uint8]:
        """At least so many bytes."""
        if len(self._room) < size:
            self._room = np.empty(size, np.uint8)
        return self._room


class Library:
    """The functions, and contexts that nobody uses right now."""

    def __init__(self, library: ctypes.CDLL) -> None:
        size, pointer = ctypes.c_size_t, ctypes.c_void_p

        def function(name: str, result: Any, *arguments: Any) -> Any:
            found = getattr(library, name)  # AttributeError if it is hidden
            found.restype, found.argtypes = result, arguments
            return found

        self.decompress = function("ZSTD_decompressDCtx", size, pointer, pointer, size, pointer, size)
        self.stream = function(
            "ZSTD_decompressStream", size, pointer, ctypes.POINTER(Buffer), ctypes.POINTER(Buffer)
        )
        self.compress = function("ZSTD_compress2", size, pointer, pointer, size, pointer, size)
        # None: an older library; what is made of given sequences is then made by its own search
        self.compress_sequences = (
            function("ZSTD_compressSequences", size, pointer, pointer, size, pointer, size, pointer, size)
            if hasattr(library, "ZSTD_compressSequences")
            else None
        )
        self.compress_bound = function("ZSTD_compressBound", size, size)
        self.is_error = function("ZSTD_isError", ctypes.c_uint, size)
        self.error_name = function("ZSTD_getErrorName", ctypes.c_char_p, size)
        self.reset = function("ZSTD_DCtx_reset", size, pointer, ctypes.c_int)
        self._create_decoder = function("ZSTD_createDCtx", pointer)
        self._set_decoder = function("ZSTD_DCtx_setParameter", size, pointer, ctypes.c_int, ctypes.c_int)
        self._create_encoder = function("ZSTD_createCCtx", pointer)
        self.reset_encoder = function("ZSTD_CCtx_reset", size, pointer, ctypes.c_int)
        self._set_encoder = function("ZSTD_CCtx_setParameter", size, pointer, ctypes.c_int, ctypes.c_int)
        self._decoders: tuple[list[int], list[int]] = [], []
        self._encoders: dict[tuple[int, bool, bool], list[Encoder]] = {}

    def take_decoder(self, is_checked: bool) -> int:
        """A context for one thread, to be given back. As many are kept as were in use at once. is_checked: it
        compares no checksums."""
        try:
            return self._decoders[is_checked].pop()
        except IndexError:
            context = _there(self._create_decoder())
            for parameter, value in ((_STABLE_OUT, 1), (_IGNORE_CHECKSUM, int(is_checked))):
                self._set_decoder(
                    context, parameter, value
                )  # an older library may refuse both: it loses only time
            return context

    def give_decoder(self, context: int, is_checked: bool) -> None:
        """It is not in use any more."""
        self._decoders[is_checked].append(context)

    def take_encoder(self, level: int, checksum: bool, of_sequences: bool = False) -> Encoder:
        """As `take_decoder`, to compress with. of_sequences: for `compress_sequences`."""
        try:
            return self._encoders[level, checksum, of_sequences].pop()
        except (KeyError, IndexError):
            context = _there(self._create_encoder())
            parameters = [(_LEVEL, level), (_CHECKSUM, int(checksum))]
            if of_sequences:
                parameters += [(_WINDOW_LOG, WINDOW_BYTES.bit_length() - 1), (_BLOCKS_ARE_GIVEN, 1)]
            for parameter, value in parameters:
                self.checked(self._set_encoder(context, parameter, value))
            return Encoder(context)

    def give_encoder(self, encoder: Encoder, level: int, checksum: bool, of_sequences: bool = False) -> None:
        """It is not in use any more."""
        self._encoders.setdefault((level, checksum, of_sequences), []).append(encoder)

    def checked(self, result: int) -> int:
        """What a function of zstd returned; MemoryError or ValueError if that says what is wrong."""
        if self.is_error(result):
            what = self.error_name(result).decode("ascii", "replace")
            raise MemoryError(what) if result == _NO_MEMORY else ValueError(what)
        return result


def _there(context: int | None) -> int:
    if context is None:
        raise MemoryError("out of memory for a zstd context")
    return context


@functools.cache
def library() -> Library | None:
    """The library, None where it cannot be called."""
    package = find_spec("numcodecs")  # what it is, not what it holds: nothing is imported
    for folder in (package and package.submodule_search_locations) or ():
        for suffix in EXTENSION_SUFFIXES:
            path = Path(folder) / f"zstd{suffix}"
            try:
                if path.is_file():
                    return Library(ctypes.CDLL(str(path)))
            except (AttributeError, OSError):
                return None
    return None
