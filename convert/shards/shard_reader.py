"""Reading shards back: no byte is used before its block was compared with the digest that its writer recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convert.errors import naming
from convert.planning.plan import ShardId
from convert.shards import shard as shard_module
from convert.shards.shard import (
    DIGEST_BYTES,
    PARTS,
    START_BYTES,
    STARTS_OF,
    ShardShape,
    block_range,
)
from convert.shards.shard_store import ShardStore
from corpus import _core
from corpus.buffers import thread_buffer
from stores import RandomFile, StoreNotFound
from stores.files import fill_at


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


class ShardReader:
    """Reads parts of one shard, open as a context. [start, stop) count tokens or sequences of a split within it.

    DamagedShard if a block is not what its writer recorded, or is not there.
    """

    def __init__(self, shards: ShardStore, shape: ShardShape) -> None:
        self._shards = shards
        self._shape = shape
        self._open: dict[str, RandomFile] = {}
        self._files = ExitStack()

    def __enter__(self) -> ShardReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()

    def ids(self, split: str, start: int, stop: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """(first, ids from it on) of [start, stop), some at a time: uint16 or uint32[n], valid until the next.

        The shape must have the digests of just these (`ShardShape.for_slice`).
        """
        dtype = np.dtype(f"u{self._shape.token_bytes}")
        blocks = block_range(start * dtype.itemsize, stop * dtype.itemsize)
        self._expect(split, blocks)
        for block in blocks:
            first, values = self._items(split, block, block - blocks.start, dtype)
            low, high = max(start - first, 0), min(stop - first, len(values))
            yield first + low, values[low:high]

    def of_sequences(self, part: str, start: int, stop: int) -> NDArray[np.uint64]:
        """The starts or places, as `part` says, of sequences [start, stop): uint64[stop - start]. Starts are in tokens
        from the shard's first.

        The shape must have the digests of just these.
        """
        out = np.empty(stop - start, dtype=np.uint64)
        blocks = block_range(start * START_BYTES, stop * START_BYTES)
        self._expect(part, blocks)
        for block in blocks:
            first, values = self._items(part, block, block - blocks.start, out.dtype)
            low, high = max(start - first, 0), min(stop - first, len(values))
            out[first + low - start : first + high - start] = values[low:high]
        return out

    def starts_within(self, split: str, token_start: int, token_stop: int) -> NDArray[np.uint64]:
        """The starts that lie in [token_start, token_stop), as `of_sequences` gives them; memory is that of the answer.

        The shape must have the digests of all starts of the split.
        """
        part, dtype = STARTS_OF[split], np.dtype(np.uint64)
        borders = np.array([token_start, token_stop], dtype)
        found = [np.empty(0, dtype)]
        block_count = len(block_range(0, self._shape.part_bytes(part)))
        for block in range(self._block_of_start(split, token_start, block_count), block_count):
            _, values = self._items(part, block, block, dtype)
            low, high = values.searchsorted(borders)
            found.append(values[low:high].copy())
            if high < len(values):
                break
        return np.concatenate(found)

    def _block_of_start(self, split: str, token: int, block_count: int) -> int:
        """The last block of starts that begins with one at or before the token, or the first of all."""
        low, high = 0, block_count  # it lies in [low, high)
        while high - low > 1:
            middle = (low + high) // 2
            if self._items(STARTS_OF[split], middle, middle, np.dtype(np.uint64))[1][0] <= token:
                low = middle
            else:
                high = middle
        return low

    def _items(self, part: str, block: int, known: int, dtype: np.dtype[Any]) -> tuple[int, NDArray[Any]]:
        """The first item that begins in a block, and the block's items; known: the place of its digest."""
        start = block * shard_module.DIGEST_BLOCK_BYTES
        data = self.block(part, block, known)
        return start // dtype.itemsize, data.view(dtype)

    def block(self, part: str, block: int, known: int) -> NDArray[np.uint8]:
        """The bytes of a block of a part, valid until the next; known: the place of its digest in the shape."""
        shape, block_bytes = self._shape, shard_module.DIGEST_BLOCK_BYTES
        digest = shape.digests[PARTS.index(part)][known * DIGEST_BYTES :][:DIGEST_BYTES]
        name, offset = shape.place(part)
        start = block * block_bytes
        size = min(block_bytes, shape.part_bytes(part) - start)
        inline = shape.inline[PARTS.index(part)]
        if inline:
            return np.frombuffer(inline, np.uint8)[start : start + size]
        data = thread_buffer("shard block", size, np.uint8)
        path = self._shards.where(name)
        where = f"{path}, bytes {offset + start} to {offset + start + size}"
        with naming(path):
            try:
                file = self._file(part)
                is_whole = fill_at(file, offset + start, data.data) == size
            except StoreNotFound:
                raise self._damaged(part, f"{path} is not there") from None
            if not is_whole:
                raise self._damaged(part, f"{where}: the file is shorter")
        if _core.xxh64(data.data, 0).to_bytes(DIGEST_BYTES, "big") != digest:
            raise self._damaged(part, f"{where} are not what was written there")
        return data

    def _expect(self, part: str, blocks: range) -> None:
        """These blocks of a part will be read in order."""
        if blocks and not self._shape.inline[PARTS.index(part)]:
            block_bytes, (_, offset) = shard_module.DIGEST_BLOCK_BYTES, self._shape.place(part)
            stop = min(blocks.stop * block_bytes, self._shape.part_bytes(part))
            with suppress(StoreNotFound):  # told when it is read
                self._file(part).expect(offset + blocks.start * block_bytes, offset + stop)

    def _file(self, part: str) -> RandomFile:
        """The open file that a part lies in; StoreNotFound."""
        name, offset = self._shape.place(part)
        if name not in self._open:
            file = self._shards.open(name, offset + self._shape.part_bytes(part))
            self._open[name] = self._files.enter_context(file)
        return self._open[name]

    def _damaged(self, part: str, text: str) -> DamagedShard:
        return DamagedShard(Damage(self._shape.id, part, text))
