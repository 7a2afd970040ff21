"""The native loops of tokenmill.inputs: UTF-8, separators, special tokens, hashes, JSON Lines.

Offsets are 64-bit. The GIL is released; buffers are bytes-like and contiguous.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def validate_utf8(buffer: Buffer) -> int:
    """Return the offset of the first byte that is not valid UTF-8 (such as the lead of a cut character), or -1."""

def find_separators(buffer: Buffer, separator: bytes) -> NDArray[np.uint64]:
    """Return the offsets of the separators, from left to right without overlap, as bytes.split finds them."""

def find_special_tokens(
    buffer: Buffer, special_tokens: Sequence[bytes]
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Return the offsets of the special tokens (leftmost, then longest), and the index of each in the list."""

def rows_with_special_tokens(
    buffer: Buffer, offsets: NDArray[np.uint64], special_tokens: Sequence[bytes]
) -> NDArray[np.uint64]:
    """Return the indices of the rows that contain a special token, ascending."""

def xxh64(buffer: Buffer, seed: int = 0) -> int:
    """Return the XXH64 of the bytes."""

class Xxh64:
    """The XXH64 of bytes that come in parts. Not thread-safe."""

    def __init__(self, seed: int = 0) -> None: ...
    def update(self, buffer: Buffer) -> None:
        """Add the next bytes."""
    def digest(self) -> int:
        """Return the hash of all bytes so far; more may follow."""

def hash_documents(buffer: Buffer, separator: bytes, seed: int) -> NDArray[np.uint64]:
    """Return the XXH64 of each document's bytes."""

def hash_ragged(buffer: Buffer, offsets: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Return the XXH64 of each row [offsets[i], offsets[i + 1]) of the buffer."""

def json_texts(
    lines: Buffer, path: Sequence[bytes], out: NDArray[np.uint8], max_line_bytes: int = ...
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], int, int]:
    """Return the strings that JSON Lines have at `path`, end to end in `out`, which has len(lines) bytes or more.

    The result is (offsets uint64[texts + 1] in out, offsets and numbers uint64[texts] of their lines; start, stop and
    number of each line that is left to the caller; lines, blank lines); see json_lines.hpp.
    """

def simd_variants() -> list[str]:
    """As bpe._core.simd_variants."""

def set_simd_variant(name: str) -> None:
    """As bpe._core.set_simd_variant, for this module."""
