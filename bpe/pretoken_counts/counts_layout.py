"""The layout of counts files: sorted pretokens with counts, in hashed blocks.

All numbers are little-endian; XXH64 is the content hash of bpe.native. The file is, end to end,

    "tmcounts"  uint32 version (1)  uint32 0
    block       uint32 pretokens n >= 1, uint8 a, uint8 b, uint16 0, uint64 bytes t
                uint a bytes wide [n] lengths, uint b bytes wide [n] counts, t bytes of the pretokens end to end
                uint64 XXH64 of the block up to here; the seed is the index of the block
    footer      JSON in UTF-8: the facts (`CountsFacts.to_json`), and "blocks", "distinct", "total", "pretoken_bytes"
    tail        uint64 offset of the footer, uint64 XXH64 of header, footer and this offset, "tmcntend"

Pretokens ascend as byte strings across the whole file, without empty or repeated ones, so that files of any size can be
merged in one pass. A reader checks every hash, the order and the sums, and returns exactly the counts that were
written.
"""

from __future__ import annotations

import json
import struct
from typing import BinaryIO, Final, NamedTuple

from bpe.pretoken_counts.counts_facts import CountsFacts
from tokenmill.inputs import _core

VERSION: Final = 1
MAGIC: Final = b"tmcounts"
END: Final = b"tmcntend"
HEADER: Final = struct.Struct("<8sII")
FILE_HEADER: Final = HEADER.pack(MAGIC, VERSION, 0)
SUMS: Final = ("blocks", "distinct", "total", "pretoken_bytes")
BLOCK: Final = struct.Struct("<IBBHQ")
TAIL: Final = struct.Struct("<QQ8s")
HASH_BYTES: Final = 8
# Small, so that merging many files takes little memory: about 40 MB for 64 files.
BLOCK_PRETOKENS: Final = 1 << 14
BLOCK_BYTES: Final = 1 << 18
MARK_BYTES: Final = 32


class Mark(NamedTuple):
    """Block `number` begins at byte `offset`. `key` is its first pretoken, at most MARK_BYTES of it."""

    key: bytes
    offset: int
    number: int


def write_end(file: BinaryIO, facts: CountsFacts, sums: dict[str, int], blocks_stop: int) -> None:
    """Write the footer and the tail. blocks_stop: offset of the end of the blocks."""
    footer = json.dumps(facts.to_json() | sums, separators=(",", ":")).encode()
    offset = blocks_stop.to_bytes(8, "little")
    digest = _core.xxh64(FILE_HEADER + footer + offset).to_bytes(8, "little")
    file.write(footer + offset + digest + END)
