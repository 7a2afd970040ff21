"""Join texts to blocks of UTF-8 that are large enough for one call of the core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from bpe.buffers import not_text

# Makes the fixed cost of a call negligible.
BLOCK_BYTES: Final = 64 << 10


def blocks_of(texts: Iterable[str], block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The UTF-8 of the texts in blocks of at least `block_bytes`, the last one excepted, each of whole characters."""
    parts: list[bytes] = []
    gathered_bytes = 0
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise not_text(text, f"text {number}")
        try:
            part = text.encode()
        except UnicodeEncodeError:
            raise not_text(text, f"text {number}") from None
        parts.append(part)
        gathered_bytes += len(part)
        if gathered_bytes >= block_bytes:
            yield b"".join(parts)
            parts, gathered_bytes = [], 0
    if gathered_bytes:
        yield b"".join(parts)
