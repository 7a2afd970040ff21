"""Compression of tokens to zstd frames with matches that begin at tokens.

Three quarters of the time of zstd level 1 is the search for matches at every byte. Matches of tokens begin at tokens: a
quarter of the positions, and only matches of two or three tokens are worth storing. `find_matches` of the native core
searches for them (flat_tokens/native/find_matches.hpp), and zstd encodes them (ZSTD_compressSequences). Every
zstd decoder reads the frames, which are a few percent smaller and a quarter faster to decode.

Invariant: the bytes depend only on the tokens and the version of zstd in numcodecs.
"""

from __future__ import annotations

import threading

import numpy as np

from flat_tokens.built import core
from flat_tokens.format import Uint32
from flat_tokens.storage import zstd_frames

LEVEL = 1
BLOCK_TOKENS = zstd_frames.BLOCK_BYTES // 4
MAX_DISTANCE = zstd_frames.WINDOW_BYTES // 4  # tokens
MAX_TOKENS = 2**22  # matches take up to 8 bytes per token while they are encoded
TABLE_BITS = 14
_FIRST_WIDE_TOKEN = 2**17  # three bytes as encoded tokens, so that a match of two is worth storing
_LAST_TOKEN = 0, 4, 0, 0  # a block of one token without matches, by which readers may find the last token


class _Memory(threading.local):
    """Reusable memory of a thread's search."""

    def __init__(self) -> None:
        self.table = np.zeros(2**TABLE_BITS, dtype=np.uint32)
        self.matches: Uint32 = np.empty((0, 4), dtype=np.uint32)


_memory = _Memory()


def compress(values: Uint32) -> bytes | None:
    """Compress a Zarr chunk of encoded tokens, contiguous uint32[n], to a frame. Return None if zstd should search
    itself: without the native core, without libzstd, or for an empty or very large chunk."""
    if core is None or zstd_frames.library() is None or not 0 < len(values) <= MAX_TOKENS:
        return None
    room = len(values) // 2 + len(values) // BLOCK_TOKENS + 2
    if len(_memory.matches) < room:
        _memory.matches = np.empty((room, 4), dtype=np.uint32)
    matches = _memory.matches
    # The least tokens per match; the first block decides.
    shortest = 3 if int(values[:BLOCK_TOKENS].max()) < _FIRST_WIDE_TOKEN else 2
    count = core.find_matches(values[:-1], shortest, BLOCK_TOKENS, MAX_DISTANCE, matches, _memory.table)
    matches[count] = _LAST_TOKEN
    return zstd_frames.compress(values.view(np.uint8), LEVEL, matches[: count + 1])
