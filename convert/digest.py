"""A hash of each source that many workers compute together, while they have its bytes in hand anyway.

The digest of a file is the SHA-256 of the SHA-256 digests of its 4 MiB blocks, one after the other. It depends on
the file alone, not on text chunks or workers, costs no second reading, and can be checked without us:

    split -b 4M --filter='openssl dgst -sha256 -binary' FILE | sha256sum

A plain SHA-256 of the file cannot be computed in parts: at about 1 GB/s it would be the longest task of all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from convert.plan import BLOCK_BYTES
from convert.text_window import TextWindow

DIGEST_NAME = "sha256 of the sha256 of each 4 MiB"


def block_digests(window: TextWindow, start: int, stop: int) -> list[tuple[int, str]]:
    """(block number, hex digest) of the blocks whose first byte lies in [start, stop) of the file."""
    digests = []
    for block in range(-(-start // BLOCK_BYTES), -(-min(stop, window.size) // BLOCK_BYTES)):
        block_start = block * BLOCK_BYTES
        with window.view(block_start, min(block_start + BLOCK_BYTES, window.size)) as view:
            digests.append((block, hashlib.sha256(view).hexdigest()))
    return digests


def source_digest(block_digests: Iterable[str]) -> str:
    """The digest of a file, hex, from those of its blocks in order; no blocks: an empty file."""
    whole = hashlib.sha256()
    for digest in block_digests:
        whole.update(bytes.fromhex(digest))
    return whole.hexdigest()
