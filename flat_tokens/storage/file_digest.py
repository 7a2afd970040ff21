"""XXH64 digests of files, by which the manifest detects damage.

The native core hashes 14 GB/s. Without it the package xxhash is used. A digest is no protection against forgery: a
forger could rewrite the manifest as well. CRC-32C would not do, because a shard that ends with its own CRC-32C has one
that depends only on its length.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flat_tokens.built import core

XXH64_DIGITS = 16


def _new_hash() -> Any:
    if core is not None:
        return core.Xxh64()
    try:
        import xxhash
    except ImportError:
        raise ImportError("flat_tokens: digests require the native core or the package xxhash") from None
    return xxhash.xxh64()


class FileDigest:
    """The digest of a file that comes block by block. b"a", b"bc" -> "44bc2cf5ad770999"."""

    def __init__(self) -> None:
        self._hash = _new_hash()

    def update(self, block: bytes | memoryview) -> None:
        """Add the next bytes."""
        self._hash.update(block)

    def value(self) -> int:
        """The XXH64 of all blocks."""
        return int(self._hash.intdigest() if core is None else self._hash.digest())

    def text(self) -> str:
        """The same in 16 hexadecimal digits."""
        return f"{self.value():0{XXH64_DIGITS}x}"


def xxh64(data: bytes | memoryview) -> int:
    """The XXH64 of some bytes. b"abc" -> 0x44bc2cf5ad770999."""
    found = FileDigest()
    found.update(data)
    return found.value()


def file_digest(blocks: Iterable[bytes | memoryview]) -> str:
    """The digest of all blocks, end to end."""
    found = FileDigest()
    for block in blocks:
        found.update(block)
    return found.text()
