"""What a file of encoded_tokens decodes to, in a few numbers that `verify` can hold against seq_starts.

Decoding is most of what verification costs, and the process that writes a file has its tokens in memory. So the
writer takes these facts from the tokens it compresses, and they stand for the content of the file under two
conditions. The file has the digest that it was written with: `verify` reads it. And the compressed bytes hold just
these tokens: a zstd frame ends with a checksum of what it decodes to (RFC 8878, 3.1.1), which is compared with that
of the tokens themselves, taken apart from the compressor. Where there is no such checksum there are no facts, and the
file is decoded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.built import core
from flat_tokens.storage.file_digest import xxh64
from flat_tokens.storage.zstd_frames import content_checksum


class TokenFacts(NamedTuple):
    """token_count: tokens in the file, padding left out. start_count: those with a start flag. starts_digest: the XXH64
    of their positions in the file, uint64, little endian, end to end. largest: the largest encoded token."""

    token_count: int
    start_count: int
    starts_digest: int
    largest: int

    def has_starts(self, positions: npt.NDArray[np.uint64]) -> bool:
        """Whether start flags are at just these positions of the file, which ascend."""
        digest = xxh64(positions.astype("<u8").data.cast("B"))
        return (len(positions), digest) == (self.start_count, self.starts_digest)


def token_facts(encoded: npt.NDArray[np.uint32]) -> TokenFacts:
    """The facts of uint32[n], n at least 1, contiguous: [7, 4, 9] has starts at 0 and 2."""
    if core is None:
        return facts_with_python(encoded)
    return TokenFacts(len(encoded), *core.token_facts(encoded))


def facts_with_python(encoded: npt.NDArray[np.uint32]) -> TokenFacts:
    """The same without the core: its specification."""
    positions = np.flatnonzero(encoded & np.uint32(1)).astype("<u8")
    return TokenFacts(len(encoded), len(positions), xxh64(positions.data.cast("B")), int(encoded.max()))


def content_digest(values: npt.NDArray[Any]) -> int:
    """The XXH64 of a zarr chunk's values, little endian and contiguous."""
    return xxh64(values.data.cast("B"))


def is_content(payload: bytes, digest: int) -> bool:
    """Whether compressed bytes hold, by their own checksum of it, a content of this XXH64; False if they have none."""
    return content_checksum(payload) == digest & 0xFFFFFFFF
