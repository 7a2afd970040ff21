"""The file between encoding and merging: the ids of one text chunk, one shard a chunk.

    train starts: uint64[sequences] | validation starts | train ids: uint16 or uint32[tokens] | validation ids

Starts count from the shard's own first token of the split and increase strictly. Ids have the narrowest type that
holds the vocabulary. The file has no header: what it holds is said by its `ShardRecord`, which the journal keeps and
which exists only after the shard is whole under its final name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from convert.errors import BrokenInvariant, naming

SPLITS = ("train", "validation")
_START_BYTES = 8


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
    """Where the parts of a shard file lie."""

    chunk_index: int
    token_bytes: int
    sequences: tuple[int, int]  # train, validation
    tokens: tuple[int, int]

    def sequence_count(self, split: str) -> int:
        """How many sequences of `split` the shard holds."""
        return self.sequences[SPLITS.index(split)]

    @property
    def part_bytes(self) -> list[int]:
        """The sizes of the four arrays, in the order of the file."""
        return [count * _START_BYTES for count in self.sequences] + [
            count * self.token_bytes for count in self.tokens
        ]

    @property
    def file_bytes(self) -> int:
        """The size the file must have."""
        return sum(self.part_bytes)

    def starts_offset(self, split: str) -> int:
        """The byte at which the starts of `split` begin."""
        return self.sequences[0] * _START_BYTES if split == SPLITS[1] else 0

    def tokens_offset(self, split: str) -> int:
        """The byte at which the ids of `split` begin."""
        before = self.tokens[0] if split == SPLITS[1] else 0
        return sum(self.sequences) * _START_BYTES + before * self.token_bytes


@dataclass(frozen=True)
class ShardRecord:
    """All that is known of a finished shard; the journal's entry."""

    chunk_index: int
    text_bytes: int
    replaced: int  # invalid UTF-8 sequences that became U+FFFD
    token_bytes: int
    checksum: int
    train: SplitCounts
    validation: SplitCounts
    digests: tuple[
        tuple[int, int, str], ...
    ]  # (source, block, hex) of the source blocks that start in the chunk

    @property
    def shape(self) -> ShardShape:
        """Where the parts lie."""
        return ShardShape(
            self.chunk_index,
            self.token_bytes,
            (self.train.sequences, self.validation.sequences),
            (self.train.tokens, self.validation.tokens),
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
        return cls(**{**entry, **counts, "digests": digests})


def token_dtype(max_token_id: int) -> np.dtype[Any]:
    """uint16 if ids up to `max_token_id` fit, else uint32."""
    return np.dtype(np.uint16 if max_token_id < 1 << 16 else np.uint32)


def shard_path(folder: Path, chunk_index: int) -> Path:
    """Where the shard of a text chunk lies."""
    return folder / f"{chunk_index:08}.shard"


def write_shard(
    folder: Path,
    chunk_index: int,
    starts: Sequence[NDArray[np.uint64]],
    tokens: Sequence[NDArray[Any]],
) -> int:
    """Write the shard of a text chunk under a temporary name, close it, rename it; gives its checksum.

    The checksum is XXH64 of each array, seeded with that of the one before.

    starts, tokens: train, validation. OSError names the file.
    """
    path = shard_path(folder, chunk_index)
    temporary = path.with_suffix(".tmp")
    checksum = 0
    with naming(temporary):
        try:
            with temporary.open("wb", buffering=0) as file:
                for part in (*starts, *tokens):
                    view = np.ascontiguousarray(part).data.cast("B") if part.size else memoryview(b"")
                    checksum = _core.xxh64(view, checksum)
                    while view.nbytes:
                        view = view[file.write(view) :]
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)  # on a full disk its space is needed to go on
            raise
    return checksum


def is_intact(folder: Path, record: ShardRecord) -> bool:
    """Whether the shard of `record` is there with every byte it was written with; reads it once."""
    try:
        with shard_path(folder, record.chunk_index).open("rb") as file:
            if os.fstat(file.fileno()).st_size != record.shape.file_bytes:
                return False
            checksum = 0
            for part_bytes in record.shape.part_bytes:
                checksum = _core.xxh64(file.read(part_bytes), checksum)
    except FileNotFoundError:
        return False
    return checksum == record.checksum


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

    def starts(self, split: str, start: int, stop: int) -> NDArray[np.uint64]:
        """Where sequences [start, stop) of the split start, in tokens from the shard's first: uint64[stop - start]."""
        out = np.empty(stop - start, dtype=np.uint64)
        self._read(self._shape.starts_offset(split) + start * _START_BYTES, out)
        return out

    def tokens(self, split: str, start: int, stop: int) -> NDArray[Any]:
        """Ids [start, stop) of the split: uint16 or uint32[stop - start]."""
        out = np.empty(stop - start, dtype=np.dtype(f"u{self._shape.token_bytes}"))
        self._read(self._shape.tokens_offset(split) + start * self._shape.token_bytes, out)
        return out

    def _read(self, offset: int, out: NDArray[Any]) -> None:
        if not out.size:
            return
        self._file.seek(offset)
        view = out.data.cast("B")
        while view.nbytes:
            got = self._file.readinto(view)
            if not got:
                raise BrokenInvariant(
                    f"{self._path} is shorter than its record says; delete it and run again"
                )
            view = view[got:]
