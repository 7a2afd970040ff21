"""Digests of the blocks of a source, which convert keeps in temporary shards and in the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tokenmill.errors import naming
from tokenmill.inputs._core import Xxh64, xxh64
from tokenmill.inputs.blocks import read_range
from tokenmill.inputs.source_list import Source
from tokenmill.stores import RandomFile

BLOCK_BYTES = 4 << 20
READ_BYTES = 1 << 20
DIGEST_BYTES = 8
DIGEST_NAME = "xxh64 of the xxh64 of each 4 MiB"


def block_digests(file: RandomFile, path: str, start: int, stop: int, size: int) -> bytes:
    """Return the digests of the blocks that begin in [start, stop) of a file of `size` bytes, end to end."""
    digests = bytearray()
    for begin in range(-(-start // BLOCK_BYTES) * BLOCK_BYTES, min(stop, size), BLOCK_BYTES):
        data = read_range(file, path, begin, min(begin + BLOCK_BYTES, size))
        digests += xxh64(data).to_bytes(DIGEST_BYTES, "big")
    return bytes(digests)


def hexadecimal(digest: Xxh64) -> str:
    """Return a digest as 16 digits."""
    return f"{digest.digest():016x}"


def digest_bytes(digest: Xxh64) -> bytes:
    """Return a digest as DIGEST_BYTES, big-endian."""
    return digest.digest().to_bytes(DIGEST_BYTES, "big")


def source_digest(block_digests: bytes) -> str:
    """Return the digest of a file from the digests of its blocks."""
    return f"{xxh64(block_digests):016x}"


def first_changed(source: Source, parts: Sequence[tuple[int, int, str]]) -> tuple[int, int] | None:
    """Return the first of the `parts` (start, stop, hex digest) of a file that has changed, None if none has."""
    with source.open() as file:
        buffer = memoryview(bytearray(READ_BYTES))
        for start, stop, digest in parts:
            own, offset = Xxh64(), start
            while offset < stop:
                with naming(f"{source.shown} at byte {offset}"):
                    count = file.readinto_at(offset, buffer[: min(READ_BYTES, stop - offset)])
                if not count:
                    break
                own.update(buffer[:count])
                offset += count
            if hexadecimal(own) != digest:
                return start, stop
    return None


def each_digest(digests: bytes) -> Iterator[bytes]:
    """Return digests that are stored end to end, one by one."""
    return (digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES))


def block_part(block: int, size: int, digest: bytes) -> tuple[int, int, str]:
    """Return block number `block` of a file of `size` bytes as (start, stop, hex digest)."""
    return block * BLOCK_BYTES, min((block + 1) * BLOCK_BYTES, size), digest.hex()
