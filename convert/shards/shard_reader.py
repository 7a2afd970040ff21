"""Reading shards back: no byte is used before its block was compared with the digest that its writer recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convert.errors import naming
from convert.planning.plan import ShardId
from convert.shards import shard as shard_module
from convert.shards.shard import Part
from convert.shards.shard_store import ShardStore
from tokenmill.inputs import _core
from tokenmill.inputs.buffers import thread_buffer
from tokenmill.inputs.digest import DIGEST_BYTES
from tokenmill.stores import RandomFile, StoreNotFound
from tokenmill.stores.files import fill_at


class Damage(NamedTuple):
    """A shard that is not what its writer recorded. text: the file and the bytes of it, and what is wrong."""

    shard: ShardId
    part: str
    text: str


class DamagedShard(Exception):  # noqa: N818 - named for what is wrong
    """Raised within a worker, where a block differs from its digest, or is not there."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(damage)
        self.damage = damage


class PartReader:
    """Reads one part of a shard, open as a context.

    DamagedShard if a block is not what its writer recorded, or is not there.
    """

    def __init__(self, shards: ShardStore, part: Part) -> None:
        self._shards, self._part = shards, part
        self._dtype = np.dtype(f"u{part.item_bytes}")
        self._open: RandomFile | None = None

    def __enter__(self) -> PartReader:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()

    def items(self, start: int, stop: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """(first, items from it on) of items [start, stop), some at a time: uint16 or uint32[n] of ids, else uint64[n],
        valid until the next. Starts are in tokens from the shard's first.

        The part must have the digests of these (`Part.for_items`).
        """
        blocks = self._part.blocks(start, stop)
        self._expect(blocks)
        for block in blocks:
            first, values = self._items(block)
            low, high = max(start - first, 0), min(stop - first, len(values))
            yield first + low, values[low:high]

    def starts_within(self, token_start: int, token_stop: int) -> NDArray[np.uint64]:
        """The starts that lie in [token_start, token_stop), uint64[n], of a part of starts with all its digests; memory
        is that of the answer."""
        borders = np.array([token_start, token_stop], np.uint64)
        found = [np.empty(0, np.uint64)]
        block_count = len(self._part.blocks(0, self._part.item_count))
        for block in range(self._block_of_start(token_start, block_count), block_count):
            _, values = self._items(block)
            low, high = values.searchsorted(borders)
            found.append(values[low:high].copy())
            if high < len(values):
                break
        return np.concatenate(found)

    def _block_of_start(self, token: int, block_count: int) -> int:
        """The last block of starts that begins with one at or before the token, or the first of all."""
        low, high = 0, block_count  # it lies in [low, high)
        while high - low > 1:
            middle = (low + high) // 2
            if self._items(middle)[1][0] <= token:
                low = middle
            else:
                high = middle
        return low

    def _items(self, block: int) -> tuple[int, NDArray[Any]]:
        """The first item that begins in a block, and the block's items."""
        first = block * shard_module.DIGEST_BLOCK_BYTES // self._part.item_bytes
        return first, self.block(block).view(self._dtype)

    def block(self, block: int) -> NDArray[np.uint8]:
        """The bytes of a block of the part, valid until the next."""
        part, block_bytes = self._part, shard_module.DIGEST_BLOCK_BYTES
        start = block * block_bytes
        size = min(block_bytes, part.size - start)
        if part.inline:
            return np.frombuffer(part.inline, np.uint8)[start : start + size]
        data = thread_buffer("shard block", size, np.uint8)
        path = self._shards.where(part.file)
        where = f"{path}, bytes {part.offset + start} to {part.offset + start + size}"
        with naming(path):
            try:
                is_whole = fill_at(self._file(), part.offset + start, data.data) == size
            except StoreNotFound:
                raise self._damaged(f"{path}: missing") from None
            if not is_whole:
                raise self._damaged(f"{where}: truncated")
        digest = part.digests[(block - part.first_block) * DIGEST_BYTES :][:DIGEST_BYTES]
        if _core.xxh64(data.data, 0).to_bytes(DIGEST_BYTES, "big") != digest:
            raise self._damaged(f"{where}: checksum mismatch")
        return data

    def _expect(self, blocks: range) -> None:
        """These blocks will be read in order."""
        part, block_bytes = self._part, shard_module.DIGEST_BLOCK_BYTES
        if blocks and not part.inline:
            stop = min(blocks.stop * block_bytes, part.size)
            with suppress(StoreNotFound):  # told when it is read
                self._file().expect(part.offset + blocks.start * block_bytes, part.offset + stop)

    def _file(self) -> RandomFile:
        """The open file that the part lies in; StoreNotFound."""
        if self._open is None:
            self._open = self._shards.open(self._part.file, self._part.offset + self._part.size)
        return self._open

    def _damaged(self, text: str) -> DamagedShard:
        return DamagedShard(Damage(self._part.shard, self._part.name, text))
