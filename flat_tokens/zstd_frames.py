"""Zstd frames decoded by the library that numcodecs brings, with contexts that are kept.

numcodecs makes a new context for each buffer: 160 KiB of memory that the process touches first, 12 to 20 % of the
time of a zarr chunk of 64 Ki tokens. And it decodes whole frames only, where a row needs the front: a frame is made
of blocks of up to 128 KiB, so rows in the first half of such a zarr chunk cost half. Its shared library exports
zstd's own functions (or is linked to a library that does), which are called here; where it does not, `decode`
is numcodecs' own and `decode_front` decodes everything. Invariant: what is decoded equals what numcodecs decodes
(tests/flat_tokens/test_zstd_frames.py). A frame's checksum, if it has one, is compared unless the caller knows that
it was: it costs 8 to 15 %, and a front has none.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Took = Callable[[int], None]

BLOCK_BYTES = 2**17  # RFC 8878: no block decodes to more
MAGIC = b"\x28\xb5\x2f\xfd"
STEP_BYTES = (
    2**18
)  # of what is decoded at a time for `took`: stays in a second-level cache with what it came from
MOST_STREAMED_BYTES = 2**26  # zstd refuses to stream from 2^27 on
_RESET_SESSION = 1
_STABLE_OUT = 1001  # decode straight into the output buffer; without it there is one more copy
_IGNORE_CHECKSUM = 1002
_RLE, _RESERVED = 1, 3


class _Buffer(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t))


class _Library:
    """The functions of libzstd, and contexts that nobody uses right now."""

    def __init__(self, library: ctypes.CDLL) -> None:
        size, pointer = ctypes.c_size_t, ctypes.c_void_p

        def function(name: str, result: Any, *arguments: Any) -> Any:
            found = getattr(library, name)  # AttributeError if it is hidden
            found.restype, found.argtypes = result, arguments
            return found

        self.decompress = function("ZSTD_decompressDCtx", size, pointer, pointer, size, pointer, size)
        self.stream = function(
            "ZSTD_decompressStream", size, pointer, ctypes.POINTER(_Buffer), ctypes.POINTER(_Buffer)
        )
        self.is_error = function("ZSTD_isError", ctypes.c_uint, size)
        self.error_name = function("ZSTD_getErrorName", ctypes.c_char_p, size)
        self.reset = function("ZSTD_DCtx_reset", size, pointer, ctypes.c_int)
        self._create = function("ZSTD_createDCtx", pointer)
        self._set = function("ZSTD_DCtx_setParameter", size, pointer, ctypes.c_int, ctypes.c_int)
        self._idle: tuple[list[int], list[int]] = [], []

    def take(self, is_checked: bool) -> int:
        """A context for one thread, to be given back. As many are kept as were in use at once. is_checked: it
        compares no checksums."""
        try:
            return self._idle[is_checked].pop()
        except IndexError:
            context: int | None = self._create()
            if context is None:
                raise MemoryError("no memory for a zstd context") from None
            for parameter, value in ((_STABLE_OUT, 1), (_IGNORE_CHECKSUM, int(is_checked))):
                self._set(context, parameter, value)  # an older library may refuse both, and loses only time
            return context

    def give(self, context: int, is_checked: bool) -> None:
        self._idle[is_checked].append(context)

    def checked(self, result: int) -> int:
        if self.is_error(result):
            raise ValueError(self.error_name(result).decode("ascii", "replace"))
        return result


@functools.cache
def _library() -> _Library | None:
    try:
        import numcodecs.zstd

        return _Library(ctypes.CDLL(numcodecs.zstd.__file__))
    except (ImportError, AttributeError, OSError, TypeError):
        return None


def decode(
    payload: bytes | memoryview, out: Bytes, is_checked: bool = False, took: Took | None = None
) -> bool:
    """Fill `out` from a payload that must decode to just its length; False, and nothing is done, where that is left
    to numcodecs. is_checked: its checksum was compared before. took(bytes): called now and then with how much is
    there, for those who take it on while it is in the processor's cache. ValueError says what is wrong."""
    library = _library()
    if library is None:
        return False
    source = np.frombuffer(payload, dtype=np.uint8)
    context = library.take(is_checked)
    try:
        in_steps = took if STEP_BYTES < len(out) <= MOST_STREAMED_BYTES else None
        if in_steps is not None and _decode_in_steps(library, context, source, out, in_steps):
            return True
        done = library.decompress(context, out.ctypes.data, len(out), source.ctypes.data, len(source))
    finally:
        library.give(context, is_checked)
    if library.checked(done) != len(out):
        raise ValueError(f"decodes to {done} bytes, a zarr chunk has {len(out)}")
    return True


def _decode_in_steps(library: _Library, context: int, source: Bytes, out: Bytes, took: Took) -> bool:
    """Whether that was all of it; what is cut off or goes on is for `decode` to tell, or to accept."""
    steps = -(-len(out) // STEP_BYTES)
    given = _Buffer(source.ctypes.data, 0, 0)
    made = _Buffer(out.ctypes.data, len(out), 0)
    left = 1
    try:
        library.reset(context, _RESET_SESSION)
        for step in range(1, steps + 1):
            given.size = len(source) * step // steps
            before = -1, -1
            while given.pos < given.size and left and (given.pos, made.pos) != before:
                before = given.pos, made.pos
                left = library.checked(library.stream(context, made, given))
            took(made.pos)
        return not left and given.pos == len(source) and made.pos == len(out)
    finally:
        library.reset(context, _RESET_SESSION)


def decode_front(payload: bytes | memoryview, out: Bytes, wanted_bytes: int) -> int:
    """Fill at least the first `wanted_bytes` of `out` from a payload whose header says that it decodes to the
    length of `out`; how many bytes are filled, 0 where it must be decoded whole: the front is (nearly) all of it, the
    frame is cut off or not alone, or the library is not there. No checksum is compared. ValueError says what is wrong
    with the front."""
    library = _library()
    if library is None or wanted_bytes > len(out) - BLOCK_BYTES:
        return 0
    ends, is_whole = _block_ends(payload)
    wanted_blocks = -(-wanted_bytes // BLOCK_BYTES)
    if len(ends) <= wanted_blocks or not is_whole:
        return 0
    source = np.frombuffer(payload, dtype=np.uint8)
    given = _Buffer(source.ctypes.data, 0, 0)
    made = _Buffer(out.ctypes.data, len(out), 0)
    context = library.take(True)
    try:
        library.reset(context, _RESET_SESSION)
        for end in ends[wanted_blocks - 1 :]:
            given.size = end
            while given.pos < end:
                before = given.pos, made.pos
                library.checked(library.stream(context, made, given))
                if (given.pos, made.pos) == before:
                    raise ValueError("the frame goes on beyond its blocks")
            if made.pos >= wanted_bytes:
                return int(made.pos)
        return 0
    finally:
        library.reset(context, _RESET_SESSION)
        library.give(context, True)


def _block_ends(payload: bytes | memoryview) -> tuple[list[int], bool]:
    """Where the blocks of a frame end, those inside the payload, and whether the frame ends where the payload does;
    none if it has a dictionary (RFC 8878, 3.1.1)."""
    size = len(payload)
    if size < 6 or bytes(payload[:4]) != MAGIC:
        return [], False
    descriptor = payload[4]
    size_flag, single_segment, dictionary_flag = descriptor >> 6, descriptor >> 5 & 1, descriptor & 3
    if dictionary_flag:
        return [], False
    checksum_bytes = 4 * (descriptor >> 2 & 1)
    at = 5 + (not single_segment) + (1 if single_segment and not size_flag else (0, 2, 4, 8)[size_flag])
    ends = []
    while at + 3 <= size:
        header = payload[at] | payload[at + 1] << 8 | payload[at + 2] << 16
        kind = header >> 1 & 3
        if kind == _RESERVED:
            break
        at += 3 + (1 if kind == _RLE else header >> 3)
        if at > size:
            break
        ends.append(at)
        if header & 1:
            return ends, at + checksum_bytes == size
    return ends, False
