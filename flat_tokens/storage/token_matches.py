"""Tokens to zstd frames of level 1, with a search for matches that knows where tokens begin.

zstd looks for matches at every byte, and three quarters of the time of its level 1 goes there. Matches of tokens begin
where tokens do: a fourth of the places, and only those of three tokens or more, which leaves out the short ones that
save little and cost the reader most. The search is flat_tokens/native/find_matches.hpp; what it finds is handed to
zstd's level 1, which codes it (ZSTD_compressSequences). Any zstd decoder reads the frames.

Against zstd's own search, with checksums, in zarr chunks of 256 Ki GPT-2 tokens of prose, several languages, code,
words and Chinese: 2, 3, 5, 0 and -3 % fewer bytes, written 37, 44, 22, 49 and 47 % faster, read 23, 31, 21, 43 and 32 %
faster. A table of 2^16 places stores 2 to 9 % less and takes 5 to 15 % longer. With larger vocabularies two tokens in a
row are worth a match: o200k's 5 to 6 % fewer bytes, written 10 to 31 % faster, read 4 to 13 % faster.

The last token is a block of its own, stored as it is: 7 bytes more, and who needs the token in front of a row that
begins where a zarr chunk does need not decode the zarr chunk before (`zstd_frames.last_bytes`).

Invariant: the bytes follow from the tokens and numcodecs' build of zstd alone. `find_with_python` is the specification
of the search (tests/flat_tokens/test_token_matches.py) and runs, slowly, where the loop is not built.
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from flat_tokens.built import core
from flat_tokens.storage.zstd_frames import BLOCK_BYTES
from flat_tokens.storage.zstd_library import RESET_SESSION, WINDOW_BYTES, library

LEVEL = 1
BLOCK_TOKENS = BLOCK_BYTES // 4
FARTHEST = WINDOW_BYTES // 4  # tokens
MOST_TOKENS = 2**22  # matches take up to 5 or 8 bytes a token while they are coded
LARGEST_OF_TWO_BYTES = 2**17  # encoded tokens below hold two bytes; those above are worth a match of two

TABLE_BITS = 14
GROUP_PLACES = 64
_ROTATIONS = {2: (0, 15), 3: (0, 12, 23)}  # of the tokens of a key, by how many they are
_FACTOR = 0x9E3779B1
_MASK = 2**32 - 1
_LAST_TOKEN = (0, 4, 0, 0)  # as find_with_python says: a block of four bytes, too short to be compressed

Uint32 = npt.NDArray[np.uint32]


def shortest_match(values: Uint32) -> int:
    """Tokens a match has at least: 3, or 2 where ids are larger. What the first block holds tells, as good as all."""
    return 3 if int(values[:BLOCK_TOKENS].max(initial=0)) < LARGEST_OF_TWO_BYTES else 2


def find_with_python(values: Uint32, shortest: int, block_tokens: int, farthest: int) -> Uint32:
    """What zstd is to store, uint32[matches, 4]: bytes that it goes back, bytes of literals in front, bytes of the
    match, 0. The last of each block has literals alone. Cost: 1 us a token.

    A table holds for each slot the last place whose tokens have it. Places enter it in order, 64 at a time, and from
    those that found their tokens there matches are taken, the first first, as long as they are. Of what a match covers
    beyond the 64 only the last place enters.

    [5, 6, 7, 5, 6, 7, 8] in one block -> [[12, 12, 12, 0], [0, 4, 0, 0]]."""
    tokens = values.tolist()
    count = len(tokens)

    def slot(at: int) -> int:
        key = 0
        for token, bits in zip(tokens[at : at + shortest], _ROTATIONS[shortest], strict=True):
            key ^= (token << bits | token >> (32 - bits)) & _MASK
        return (key * _FACTOR & _MASK) >> (32 - TABLE_BITS)

    places: dict[int, int] = {}
    found = []
    for low in range(0, count, block_tokens):
        high = min(count, low + block_tokens)
        done = first = low
        while first < high:
            stop_of_group = min(high, first + GROUP_PLACES)
            earlier = {}
            for at in range(first, min(stop_of_group, count - shortest + 1)):
                index = slot(at)
                earlier[at] = places.get(index)
                places[index] = at
            for at, place in earlier.items():
                if (
                    place is None
                    or at < done
                    or at + shortest > high
                    or at - place > farthest
                    or tokens[place : place + shortest] != tokens[at : at + shortest]
                ):
                    continue
                offset, start, stop = at - place, at, at + shortest
                while stop < high and tokens[stop] == tokens[stop - offset]:
                    stop += 1
                while start > max(done, offset) and tokens[start - 1] == tokens[start - 1 - offset]:
                    start -= 1
                found.append((4 * offset, 4 * (start - done), 4 * (stop - start), 0))
                done = stop
            first = max(stop_of_group, done - 1)
        found.append((0, 4 * (high - done), 0, 0))
    return np.array(found, dtype=np.uint32).reshape(-1, 4)


class _Scratch(threading.local):
    """Memory of a thread's search, which is used again: its pages are touched once."""

    def __init__(self) -> None:
        self.table = np.zeros(2**TABLE_BITS, dtype=np.uint32)
        self._matches: Uint32 = np.empty((0, 4), dtype=np.uint32)

    def matches(self, count: int) -> Uint32:
        """Room for the matches of that many tokens, and perhaps more."""
        most = count // 2 + count // BLOCK_TOKENS + 2
        if len(self._matches) < most:
            self._matches = np.empty((most, 4), dtype=np.uint32)
        return self._matches


_SCRATCH = _Scratch()


def encode(values: Uint32, checksum: bool) -> bytes | None:
    """The frame of a zarr chunk of encoded tokens, uint32[n], contiguous; None where that is left to zstd's own search.
    ValueError says what is wrong."""
    zstd = library()
    if zstd is None or zstd.compress_sequences is None or not 0 < len(values) <= MOST_TOKENS:
        return None
    matches, count = _find(values)
    encoder = zstd.take_encoder(LEVEL, checksum, of_sequences=True)
    try:
        room = encoder.room(zstd.compress_bound(values.nbytes))
        zstd.checked(zstd.reset_encoder(encoder.context, RESET_SESSION))
        size = zstd.compress_sequences(
            encoder.context,
            room.ctypes.data,
            len(room),
            matches.ctypes.data,
            count,
            values.ctypes.data,
            values.nbytes,
        )
        return room[: zstd.checked(size)].tobytes()
    finally:
        zstd.give_encoder(encoder, LEVEL, checksum, of_sequences=True)


def _find(values: Uint32) -> tuple[Uint32, int]:
    """Matches in front of the last token, and that one; how many they are."""
    shortest, front = shortest_match(values), values[:-1]
    matches = _SCRATCH.matches(len(values))
    if core is None:
        found = find_with_python(front, shortest, BLOCK_TOKENS, FARTHEST)
        count = len(found)
        matches[:count] = found
    else:
        count = core.find_matches(front, shortest, BLOCK_TOKENS, FARTHEST, matches, _SCRATCH.table)
    matches[count] = _LAST_TOKEN
    return matches, count + 1
