"""Zstd frames, compressed and decoded by the libzstd inside numcodecs.

numcodecs allocates a context per buffer, decodes only whole frames, and takes 30 ms to import. Its extension module
exports the functions of libzstd, so this module loads it through ctypes and keeps the contexts. `library` returns None
if that fails. The functions below then return None or 0, and callers use numcodecs. Decoded bytes are the same either
way (tests/flat_tokens/contract/test_open.py). Measured: with numcodecs alone a Loader is 6 % slower, random rows 25 %.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections import defaultdict
from collections.abc import Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Payload = bytes | memoryview

BLOCK_BYTES = 2**17  # the most that a block of a frame decodes to
WINDOW_BYTES = 2**20  # of frames with given matches: every decoder supports it
_INPUT_BYTES = 2**14  # that are given at a time to decode the front of a frame
_MAGIC = b"\x28\xb5\x2f\xfd"
_OUTPUT_TOO_SMALL, _NO_MEMORY = 2**64 - 70, 2**64 - 64  # error codes, as size_t
_RESET_SESSION = 1
_LEVEL, _WINDOW_LOG, _CHECKSUM, _STABLE_OUT, _IGNORE_CHECKSUM, _GIVEN_BLOCKS = 100, 101, 201, 1001, 1002, 1008


class _Buffer(ctypes.Structure):
    """Memory for zstd's streaming functions. `pos` bytes are done."""

    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t))


_SIZE, _POINTER, _INT, _STREAM = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_Buffer)
_SIGNATURES: dict[str, tuple[Any, ...]] = {  # result, arguments
    "createCCtx": (_POINTER,),
    "createDCtx": (_POINTER,),
    "CCtx_setParameter": (_SIZE, _POINTER, _INT, _INT),
    "DCtx_setParameter": (_SIZE, _POINTER, _INT, _INT),
    "CCtx_reset": (_SIZE, _POINTER, _INT),
    "DCtx_reset": (_SIZE, _POINTER, _INT),
    "compressBound": (_SIZE, _SIZE),
    "compress2": (_SIZE, _POINTER, _POINTER, _SIZE, _POINTER, _SIZE),
    "compressSequences": (_SIZE, _POINTER, _POINTER, _SIZE, _POINTER, _SIZE, _POINTER, _SIZE),
    "decompressDCtx": (_SIZE, _POINTER, _POINTER, _SIZE, _POINTER, _SIZE),
    "decompressStream": (_SIZE, _POINTER, _STREAM, _STREAM),
    "isError": (ctypes.c_uint, _SIZE),
    "getErrorName": (ctypes.c_char_p, _SIZE),
}

# Contexts that are not in use. Appending to a list and popping from it are atomic.
_decoders = defaultdict[bool, list[int]](list)  # by whether they compare checksums
_encoders = defaultdict[tuple[int, bool], list[int]](list)  # by level and whether matches are given


@functools.cache
def library() -> SimpleNamespace | None:
    """The functions of libzstd without their prefix, or None. FLAT_TOKENS_CORE=0 disables them."""
    package = None if os.environ.get("FLAT_TOKENS_CORE") == "0" else find_spec("numcodecs")
    for folder in (package and package.submodule_search_locations) or ():
        for suffix in EXTENSION_SUFFIXES:
            path = Path(folder) / f"zstd{suffix}"
            if path.is_file():
                try:
                    return _functions(ctypes.CDLL(str(path)))
                except (AttributeError, OSError):  # hidden symbols, or a library that cannot be loaded
                    return None
    return None


def _functions(module: ctypes.CDLL) -> SimpleNamespace:
    functions = {}
    for name, (result, *arguments) in _SIGNATURES.items():
        functions[name] = getattr(module, f"ZSTD_{name}")
        functions[name].restype, functions[name].argtypes = result, arguments
    return SimpleNamespace(**functions)


def compress(data: Bytes, level: int, matches: npt.NDArray[np.uint32] | None = None) -> bytes | None:
    """Compress bytes to one frame with a checksum.

    matches: uint32[n, 4] from token_matches; None for zstd's own search.

    Return None without libzstd. Raise ValueError for matches that zstd rejects."""
    zstd = library()
    if zstd is None:
        return None
    parameters = {_LEVEL: level, _CHECKSUM: 1}
    if matches is not None:
        parameters |= {_WINDOW_LOG: WINDOW_BYTES.bit_length() - 1, _GIVEN_BLOCKS: 1}
    pool = _encoders[level, matches is not None]
    context = _acquire(pool, zstd.createCCtx, zstd.CCtx_setParameter, parameters)
    room = np.empty(zstd.compressBound(len(data)), np.uint8)
    target, source = (context, _address(room), len(room)), (_address(data), len(data))
    try:
        if matches is None:
            size = zstd.compress2(*target, *source)
        else:
            _checked(zstd, zstd.CCtx_reset(context, _RESET_SESSION))
            size = zstd.compressSequences(*target, _address(matches), len(matches), *source)
        return room[: _checked(zstd, size)].tobytes()
    finally:
        pool.append(context)


def decompress(payload: Payload, out: Bytes, compare: bool = True) -> int | None:
    """Decode all frames of a payload into the front of `out`. Return the number of bytes, len(out) + 1 if they do not
    fit, or None without libzstd.

    compare: whether checksums are compared, which takes 8 % of the time. Raise ValueError for damage."""
    zstd = library()
    if zstd is None:
        return None
    source = np.frombuffer(payload, dtype=np.uint8)
    context = _acquire_decoder(zstd, compare)
    try:
        done: int = zstd.decompressDCtx(context, _address(out), len(out), _address(source), len(source))
    finally:
        _decoders[compare].append(context)
    return len(out) + 1 if done == _OUTPUT_TOO_SMALL else _checked(zstd, done)


def decompress_front(payload: Payload, out: Bytes, count: int) -> int:
    """Decode at least the first `count` bytes of a frame that decodes to len(out) bytes. Return the number of bytes
    decoded, or 0 if the caller must decode all of it. Checksums are not compared. Raise ValueError for damage."""
    zstd = library()
    if zstd is None or count > len(out) - BLOCK_BYTES:
        return 0
    source = np.frombuffer(payload, dtype=np.uint8)
    given, made = _Buffer(_address(source), 0, 0), _Buffer(_address(out), len(out), 0)
    context = _acquire_decoder(zstd, False)
    try:
        zstd.DCtx_reset(context, _RESET_SESSION)
        while made.pos < count:
            if given.size == len(source):
                return 0
            given.size = min(given.size + _INPUT_BYTES, len(source))
            if _checked(zstd, zstd.decompressStream(context, made, given)) == 0:  # the frame has ended
                return 0
        return int(made.pos)
    finally:
        _decoders[False].append(context)


def frame_header(payload: Payload) -> tuple[int | None, bool]:
    """The decoded length that the first frame states (RFC 8878), None if it states none, and whether the frame has a
    checksum of its content."""
    if len(payload) < 6 or bytes(payload[:4]) != _MAGIC:
        return None, False
    flags = payload[4]
    is_single_segment = flags >> 5 & 1
    at = 5 + (not is_single_segment) + (0, 1, 2, 4)[flags & 3]
    width = (is_single_segment, 2, 4, 8)[flags >> 6]
    size = None
    if width and len(payload) >= at + width:
        size = int.from_bytes(payload[at : at + width], "little") + (256 if width == 2 else 0)
    return size, bool(flags >> 2 & 1)


def _acquire_decoder(zstd: SimpleNamespace, compare: bool) -> int:
    parameters = {_STABLE_OUT: 1, _IGNORE_CHECKSUM: int(not compare)}  # both only save time
    return _acquire(_decoders[compare], zstd.createDCtx, zstd.DCtx_setParameter, parameters)


def _acquire(pool: list[int], create: Any, set_parameter: Any, parameters: Mapping[int, int]) -> int:
    """Take a context from a pool, or make one. Parameters are valid, and unknown to a very old libzstd at worst."""
    try:
        return pool.pop()
    except IndexError:
        context: int | None = create()
    if context is None:
        raise MemoryError("out of memory for a zstd context")
    for parameter, value in parameters.items():
        set_parameter(context, parameter, value)
    return context


def _address(values: npt.NDArray[Any]) -> int:
    address: int = values.__array_interface__["data"][0]  # values.ctypes.data takes ten times as long
    return address


def _checked(zstd: SimpleNamespace, result: int) -> int:
    """Return the result of a zstd function. Raise MemoryError or ValueError if it is an error code."""
    if zstd.isError(result):
        message = zstd.getErrorName(result).decode("ascii", "replace")
        raise MemoryError(message) if result == _NO_MEMORY else ValueError(message)
    return result
