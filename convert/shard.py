"""The file between encoding and merging: the ids of one text chunk, one shard a chunk.

Four arrays lie in it, each in one or more *segments*, in the order in which they were written:

    0  train starts: uint64[sequences]         2  train ids: uint16 or uint32[tokens]
    1  validation starts: uint64[sequences]    3  validation ids: uint16 or uint32[tokens]

Starts count from the shard's own first token of the split and increase strictly. Ids have the narrowest type that
holds the vocabulary. A text chunk of usual size gives one segment an array; a document of 2 GB some more, since no
part of a shard waits in memory for another (convert/shard_writer.py). The file has no header: what it holds is said by
its `ShardRecord`, which the journal keeps and which exists only after the shard is whole under its final name.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from convert.errors import BrokenInvariant, naming
from convert.intake import IntakeCounts

SPLITS = ("train", "validation")
STARTS, TOKENS = 0, 2  # the array of a split is one of these + its place in SPLITS
DROPPED = 4  # the array of ids that belong to no document after all; nobody reads it
START_BYTES = 8
# Up to so many starts of a shard are read at once; among more, those of a run are searched for in the file.
STARTS_AT_ONCE = 1 << 17
_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class SplitCounts:
    """What a text chunk gave to one split: documents = sequences + empty."""

    documents: int
    empty: int
    sequences: int
    tokens: int
    max_token_id: int  # 0 where there are no tokens


@dataclass(frozen=True)
class ShardShape:
    """Where the arrays of a shard lie. segments: (array, bytes) one after the other, the whole file."""

    chunk_index: int
    token_bytes: int
    sequences: tuple[int, int]  # train, validation
    tokens: tuple[int, int]
    segments: tuple[tuple[int, int], ...]

    def sequence_count(self, split: str) -> int:
        """How many sequences of `split` the shard holds."""
        return self.sequences[SPLITS.index(split)]

    @property
    def file_bytes(self) -> int:
        """The size the file must have."""
        return sum(size for _, size in self.segments)

    @property
    def is_consistent(self) -> bool:
        """Whether the segments are just those arrays."""
        array_bytes = [0] * 4
        for array, size in self.segments:
            if not 0 <= array <= DROPPED or size < 0:
                return False
            if array != DROPPED:
                array_bytes[array] += size
        return array_bytes == [count * START_BYTES for count in self.sequences] + [
            count * self.token_bytes for count in self.tokens
        ]


@dataclass(frozen=True)
class ShardRecord:
    """All that is known of a finished shard; the journal's entry."""

    chunk_index: int
    text_bytes: int
    replaced: int  # invalid UTF-8 sequences that became U+FFFD
    token_bytes: int
    checksum: int  # XXH64 of the file
    segments: tuple[tuple[int, int], ...]
    train: SplitCounts
    validation: SplitCounts
    digests: tuple[
        tuple[int, int, str], ...
    ]  # (source, block, hex) of the source blocks that start in the chunk
    intake: IntakeCounts = field(default_factory=IntakeCounts)

    @property
    def shape(self) -> ShardShape:
        """Where the parts lie."""
        return ShardShape(
            self.chunk_index,
            self.token_bytes,
            (self.train.sequences, self.validation.sequences),
            (self.train.tokens, self.validation.tokens),
            self.segments,
        )

    def split(self, name: str) -> SplitCounts:
        """The counts of split `name`."""
        return self.validation if name == SPLITS[1] else self.train

    def as_json(self) -> dict[str, Any]:
        """The record as plain JSON; `from_json` is its inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> ShardRecord:
        """The record that `as_json` wrote; KeyError, TypeError or ValueError for anything else."""
        counts = {name: SplitCounts(**entry[name]) for name in SPLITS}
        digests = tuple((int(source), int(block), str(hex_)) for source, block, hex_ in entry["digests"])
        segments = tuple((int(array), int(size)) for array, size in entry["segments"])
        intake = IntakeCounts.from_json(entry["intake"])
        return cls(**{**entry, **counts, "digests": digests, "segments": segments, "intake": intake})


def token_dtype(max_token_id: int) -> np.dtype[Any]:
    """uint16 if ids up to `max_token_id` fit, else uint32."""
    return np.dtype(np.uint16 if max_token_id < 1 << 16 else np.uint32)


def shard_path(folder: Path, chunk_index: int) -> Path:
    """Where the shard of a text chunk lies."""
    return folder / f"{chunk_index:08}.shard"


def is_intact(folder: Path, record: ShardRecord) -> bool:
    """Whether the shard of `record` is there with every byte it was written with; reads it once, 1 MiB at a time."""
    if not record.shape.is_consistent:
        return False
    path = shard_path(folder, record.chunk_index)
    try:
        with path.open("rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size != record.shape.file_bytes:
                return False
            checksum = _core.Xxh64()
            with naming(path):
                while block := file.read(_READ_BYTES):
                    checksum.update(block)
    except FileNotFoundError:
        return False
    return checksum.digest() == record.checksum


class _Array:
    """Where the bytes of one array lie: segment k holds those from starts[k] on, at offsets[k] of the file."""

    def __init__(self, shape: ShardShape, array: int) -> None:
        places = accumulate((size for _, size in shape.segments), initial=0)
        own = [
            (offset, size)
            for (which, size), offset in zip(shape.segments, places, strict=False)
            if which == array
        ]
        self.offsets = [offset for offset, _ in own]
        self.starts = [0, *accumulate(size for _, size in own)]

    def read(self, file: Any, path: Path, start: int, view: memoryview) -> None:
        """Fill `view` with the array's bytes from `start` on."""
        while view.nbytes:
            segment = bisect_right(self.starts, start) - 1
            if segment >= len(self.offsets):
                raise BrokenInvariant(f"{path}: byte {start} of an array of {self.starts[-1]} is asked for")
            file.seek(self.offsets[segment] + start - self.starts[segment])
            with naming(path):
                got = file.readinto(view[: self.starts[segment + 1] - start])
            if not got:
                raise BrokenInvariant(f"{path} is shorter than its record says; delete it and run again")
            view = view[got:]
            start += got


class ShardReader:
    """Reads parts of one shard, open as a context. [start, stop) count tokens or sequences of a split within it."""

    def __init__(self, folder: Path, shape: ShardShape) -> None:
        self._path = shard_path(folder, shape.chunk_index)
        self._shape = shape
        self._file = self._path.open("rb", buffering=0)

    def __enter__(self) -> ShardReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    @cached_property
    def _arrays(self) -> list[_Array]:
        return [_Array(self._shape, array) for array in range(4)]

    def starts(self, split: str, start: int, stop: int) -> NDArray[np.uint64]:
        """Where sequences [start, stop) of the split start, in tokens from the shard's first: uint64[stop - start]."""
        out = np.empty(stop - start, dtype=np.uint64)
        self._read(STARTS, split, start * START_BYTES, out)
        return out

    def tokens(self, split: str, start: int, stop: int) -> NDArray[Any]:
        """Ids [start, stop) of the split: uint16 or uint32[stop - start]."""
        out = np.empty(stop - start, dtype=np.dtype(f"u{self._shape.token_bytes}"))
        self._read(TOKENS, split, start * self._shape.token_bytes, out)
        return out

    def starts_within(self, split: str, token_start: int, token_stop: int) -> NDArray[np.uint64]:
        """The starts that lie in [token_start, token_stop), as `starts` gives them.

        Memory is that of the answer, or of STARTS_AT_ONCE; among more starts, 8 bytes are read some 25 times.
        """
        count = self._shape.sequence_count(split)
        if count > STARTS_AT_ONCE:
            low = self._first_start_from(split, token_start, count)
            return self.starts(split, low, self._first_start_from(split, token_stop, count))
        starts = self.starts(split, 0, count)
        # As uint64 like the starts: for a list of int, numpy would turn both to float64.
        low, high = np.searchsorted(starts, np.array([token_start, token_stop], dtype=np.uint64))
        return starts[low:high]

    def _first_start_from(self, split: str, token: int, count: int) -> int:
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if int(self.starts(split, middle, middle + 1)[0]) < token:
                low = middle + 1
            else:
                high = middle
        return low

    def _read(self, kind: int, split: str, start: int, out: NDArray[Any]) -> None:
        if out.size:
            array = self._arrays[kind + SPLITS.index(split)]
            array.read(self._file, self._path, start, out.data.cast("B"))
