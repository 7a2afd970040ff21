"""The C++ loops of corpus as Python sees them: UTF-8, separators, special tokens, hashes, JSON Lines.

Offsets are 64-bit. The GIL is released; buffers are bytes-like and contiguous.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def validate_utf8(buffer: Buffer) -> int:
    """The offset of the first byte that is not valid UTF-8 (a cut character's lead byte included), or -1."""

def find_separators(buffer: Buffer, separator: bytes) -> NDArray[np.uint64]:
    """Starts of the separators, leftmost first, not overlapping (as bytes.split finds them)."""

def find_special_tokens(
    buffer: Buffer, special_tokens: Sequence[bytes]
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Starts of the special tokens (leftmost, then longest) and which of the list each is."""

def rows_with_special_tokens(
    buffer: Buffer, offsets: NDArray[np.uint64], special_tokens: Sequence[bytes]
) -> NDArray[np.uint64]:
    """The numbers of the rows that hold one of the special tokens, ascending."""

def xxh64(buffer: Buffer, seed: int = 0) -> int:
    """XXH64 of all the bytes, to find damage: faster than zlib's crc32."""

class Xxh64:
    """XXH64 of bytes that come in parts: the same value however they are cut. For one thread at a time."""

    def __init__(self, seed: int = 0) -> None: ...
    def update(self, buffer: Buffer) -> None:
        """Take the next bytes."""
    def digest(self) -> int:
        """The hash of all bytes so far; more may follow."""
    def copy(self) -> Xxh64:
        """One that has taken the same bytes and goes its own way."""

def hash_documents(buffer: Buffer, separator: bytes, seed: int) -> NDArray[np.uint64]:
    """XXH64 of each document's bytes, the rows of encode_documents."""

def hash_ragged(buffer: Buffer, offsets: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """XXH64 of the bytes of each row [offsets[i], offsets[i + 1]) of the buffer."""

def json_texts(
    lines: Buffer,
    path: Sequence[bytes],
    out: NDArray[np.uint8],
    replace_surrogates: bool = False,
    max_line_bytes: int = ...,
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], list[tuple[int, int, int, str]], int, int, int]:
    """The strings that JSON Lines have at `path`, end to end in `out`, which has len(lines) + 16 bytes of room.

    (offsets uint64[texts + 1] in out, starts uint64[texts] of their lines, the lines without a text, how many lines,
    blank ones, surrogates replaced). A line without a text: (start, stop, place of the fault, its name in
    json_line.hpp). lines must be valid UTF-8.
    """

class JsonLongLine:
    """A line for `json_texts` that comes in pieces, without its LF: the same text, the same faults."""

    def __init__(self, path: Sequence[bytes], replace_surrogates: bool = False) -> None: ...
    def feed(self, piece: Buffer, final: bool, out: NDArray[np.uint8]) -> tuple[int, int]:
        """(bytes used, bytes of text written to out); what was not used, under 12 bytes, belongs before the next piece.

        piece: valid UTF-8 cut between characters; out has len(piece) + 16 bytes of room. After a fault all is used.
        """

    @property
    def fault(self) -> str:
        """What is wrong, as by `json_texts`, "none" so far; known for sure after the final piece."""

    @property
    def place(self) -> int:
        """Of the byte at fault in the line."""

    @property
    def is_blank(self) -> bool:
        """Nothing but white space so far."""

    @property
    def replaced(self) -> int:
        """Surrogates replaced so far."""

class JsonArray:
    """Rewrites a JSON array of records as JSON Lines of the same length; see json_array.hpp."""

    def rewrite(self, bytes: NDArray[np.uint8]) -> int:
        """Rewrite the next bytes of the file in place.

        Returns the offset of the first byte that cannot follow the bytes before it, or len(bytes).
        """

    @property
    def is_array(self) -> bool:
        """Whether the file begins as an array; False while only white space was read."""

    @property
    def is_cut(self) -> bool:
        """Whether the closing bracket is missing so far."""

def simd_variants() -> list[str]:
    """As bpe._core.simd_variants."""

def set_simd_variant(name: str) -> None:
    """As bpe._core.set_simd_variant, for this module."""
