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


class FileDigest:
    """The digest of a file that comes block by block. b"a", b"bc" -> "44bc2cf5ad770999"."""

    def __init__(self) -> None:
        self._hash: Any
        if core is not None:
            self._hash = core.Xxh64()
            return
        try:
            import xxhash
        except ImportError:
            raise ImportError("flat_tokens: digests require the native core or the package xxhash") from None
        self._hash = xxhash.xxh64()

    def update(self, block: bytes | memoryview) -> None:
        """Add the next bytes."""
        self._hash.update(block)

    def text(self) -> str:
        """The XXH64 of all blocks in 16 hexadecimal digits."""
        value = self._hash.intdigest() if core is None else self._hash.digest()
        return f"{value:0{XXH64_DIGITS}x}"


def file_digest(blocks: Iterable[bytes | memoryview]) -> str:
    """The digest of all blocks, end to end."""
    found = FileDigest()
    for block in blocks:
        found.update(block)
    return found.text()
