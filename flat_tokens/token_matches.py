"""Tokens to zstd frames of level 1, with a search for matches that knows where tokens begin.

zstd looks for matches at every byte, and three quarters of the time of its level 1 goes there. Matches of tokens begin
where tokens do: a fourth of the places, and only those of three tokens or more, which leaves out the short ones that
save little and cost the reader most. The search is flat_tokens/native/find_matches.hpp; what it finds is handed to
zstd's level 1, which codes it (ZSTD_compressSequences). Any zstd decoder reads the frames.

Against its own search (256 Ki tokens; prose, code, many languages and ids drawn as words are, GPT-2's vocabulary): 4,
11, 8 and 3 % fewer bytes, 25, 24, 26 and 41 % less time to decode, about the time to encode, or a third of it where
little repeats. With larger vocabularies two tokens in a row are worth a match: 11 to 13 % fewer bytes, 13 to 32 % less
time to decode.

Invariant: the bytes follow from the tokens and numcodecs' build of zstd alone. `find_with_python` is the specification
of the search (tests/flat_tokens/test_token_matches.py) and runs, slowly, where the loop is not built.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens import zstd_frames
from flat_tokens.built import core

LEVEL = 1
BLOCK_TOKENS = zstd_frames.BLOCK_BYTES // 4
FARTHEST = 2**18  # tokens: a window of 1 MiB, which every decoder has
LARGEST_OF_TWO_BYTES = (
    2**17
)  # encoded tokens below hold two bytes, and those above them are cheap without a match

TABLE_BITS = 16
SKIP_BITS = 5
_FACTORS = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
_MASK = 2**64 - 1
_COMPRESSION_LEVEL, _WINDOW_LOG, _CHECKSUM = 100, 101, 201
_BLOCKS_ARE_GIVEN = 1008
_RESET_SESSION = 1

Uint32 = npt.NDArray[np.uint32]


def shortest_match(values: Uint32) -> int:
    """Tokens a match has at least: 3, or 2 where ids are larger."""
    return 3 if int(values.max(initial=0)) < LARGEST_OF_TWO_BYTES else 2


def find_with_python(values: Uint32, shortest: int, block_tokens: int, farthest: int) -> Uint32:
    """What zstd is to store, uint32[matches, 4]: bytes that it goes back, bytes of literals in front, bytes of the
    match, 0. The last of each block has literals alone. Cost: 1 us a token.

    [5, 6, 7, 5, 6, 7, 8] in one block -> [[12, 12, 12, 0], [0, 4, 0, 0]]."""
    tokens = values.tolist()
    count = len(tokens)

    def slot(at: int) -> int:
        key = sum(token * factor for token, factor in zip(tokens[at : at + shortest], _FACTORS, strict=False))
        return int(key & _MASK) >> (64 - TABLE_BITS)

    places: dict[int, int] = {}
    found = []
    for low in range(0, count, block_tokens):
        high = min(count, low + block_tokens)
        done = at = low
        while at + shortest <= high:
            index = slot(at)
            place = places.get(index, -1)
            places[index] = at
            offset = at - place
            if (
                place < 0
                or offset > farthest
                or tokens[place : place + shortest] != tokens[at : at + shortest]
            ):
                at += 1 + (at - done >> SKIP_BITS)
                continue
            first, stop = at, at + shortest
            while stop < high and tokens[stop] == tokens[stop - offset]:
                stop += 1
            while first > max(done, offset) and tokens[first - 1] == tokens[first - 1 - offset]:
                first -= 1
            found.append((4 * offset, 4 * (first - done), 4 * (stop - first), 0))
            for other in (at + 1, stop - 2):
                if other + shortest <= count:
                    places[slot(other)] = other
            done = at = stop
        found.append((0, 4 * (high - done), 0, 0))
    return np.array(found, dtype=np.uint32).reshape(-1, 4)


class _Writer:
    """What one thread needs: a context of zstd, and memory that is used again."""

    def __init__(self, library: Any) -> None:
        self.context = library.ZSTD_createCCtx()
        if not self.context:
            raise MemoryError("no memory for a zstd context")
        self.table = np.zeros(2**TABLE_BITS, dtype=np.uint32)
        self.matches: Uint32 = np.empty((0, 4), dtype=np.uint32)
        self.out = np.empty(0, dtype=np.uint8)

    def make_room(self, count: int) -> None:
        """For that many tokens."""
        most = count // 2 + -(-count // BLOCK_TOKENS) + 1
        if len(self.matches) < most:
            self.matches = np.empty((most, 4), dtype=np.uint32)
            self.out = np.empty(4 * count + count // 16 + 1024, dtype=np.uint8)


_IDLE: list[_Writer] = []  # as many as threads wrote at once


@functools.cache
def _library() -> Any:
    """libzstd as numcodecs brings it, None where it does not export what is needed."""
    try:
        import numcodecs.zstd

        library = ctypes.CDLL(numcodecs.zstd.__file__)
        size, pointer, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
        for name, result, arguments in (
            ("ZSTD_createCCtx", pointer, ()),
            ("ZSTD_CCtx_reset", size, (pointer, number)),
            ("ZSTD_CCtx_setParameter", size, (pointer, number, number)),
            ("ZSTD_compressSequences", size, (pointer, pointer, size, pointer, size, pointer, size)),
            ("ZSTD_isError", ctypes.c_uint, (size,)),
            ("ZSTD_getErrorName", ctypes.c_char_p, (size,)),
        ):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (ImportError, AttributeError, OSError, TypeError):
        return None
    return library


def encode(values: Uint32, has_checksum: bool) -> bytes | None:
    """The frame of a zarr chunk of encoded tokens, uint32[n], contiguous; None where it is left to numcodecs."""
    library = _library()
    if library is None or not len(values):
        return None

    def checked(result: Any) -> Any:
        if library.ZSTD_isError(result):
            raise ValueError(f"zstd: {library.ZSTD_getErrorName(result).decode('ascii', 'replace')}")
        return result

    try:
        writer = _IDLE.pop()
    except IndexError:
        writer = _Writer(library)
    try:
        writer.make_room(len(values))
        shortest = shortest_match(values)
        if core is None:
            matches = find_with_python(values, shortest, BLOCK_TOKENS, FARTHEST)
            match_count = len(matches)
        else:
            matches = writer.matches
            match_count = core.find_matches(values, shortest, BLOCK_TOKENS, FARTHEST, matches, writer.table)
        checked(library.ZSTD_CCtx_reset(writer.context, _RESET_SESSION))
        for parameter, value in (
            (_COMPRESSION_LEVEL, LEVEL),
            (_WINDOW_LOG, (4 * FARTHEST).bit_length() - 1),
            (_CHECKSUM, int(has_checksum)),
            (_BLOCKS_ARE_GIVEN, 1),
        ):
            checked(library.ZSTD_CCtx_setParameter(writer.context, parameter, value))
        length = checked(
            library.ZSTD_compressSequences(
                writer.context,
                writer.out.ctypes.data,
                len(writer.out),
                matches.ctypes.data,
                match_count,
                values.ctypes.data,
                values.nbytes,
            )
        )
        return writer.out[:length].tobytes()
    finally:
        _IDLE.append(writer)
