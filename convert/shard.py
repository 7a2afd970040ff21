"""The files between encoding and merging: the ids of one text chunk, up to three a chunk.

    00000003.train        uint16 or uint32[tokens], ids of the sequences in train
    00000003.validation   the same for validation
    00000003.starts       uint64[sequences] of train, then of validation

Starts count from the shard's own first token of the split and increase strictly. Ids have the narrowest type that
holds the vocabulary. A part without items has no file. The files have no header: what they hold is said by the
`ShardRecord`, which the journal keeps and which exists only after all parts are whole under their final names.
Parts are files of their own since they live for different times: ids are deleted as soon as they are merged.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from convert.errors import BrokenInvariant, naming

SPLITS = ("train", "validation")
PARTS = (*SPLITS, "starts")
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

    def token_count(self, split: str) -> int:
        """How many tokens of `split` the shard holds."""
        return self.tokens[SPLITS.index(split)]

    def part_bytes(self, part: str) -> int:
        """The size the file of one of PARTS must have; 0: there is none."""
        if part in SPLITS:
            return self.token_count(part) * self.token_bytes
        return sum(self.sequences) * _START_BYTES

    def array_bytes(self, part: str) -> tuple[int, ...]:
        """The sizes of the arrays in the file of one of PARTS, in their order."""
        if part in SPLITS:
            return (self.part_bytes(part),)
        return tuple(count * _START_BYTES for count in self.sequences)

    def starts_offset(self, split: str) -> int:
        """The byte at which the starts of `split` begin."""
        return self.sequences[0] * _START_BYTES if split == SPLITS[1] else 0


@dataclass(frozen=True)
class ShardRecord:
    """All that is known of a finished shard; the journal's entry."""

    chunk_index: int
    text_bytes: int
    replaced: int  # invalid UTF-8 sequences that became U+FFFD
    token_bytes: int
    checksums: tuple[int, ...]  # XXH64 of each of PARTS
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
        checksums = tuple(int(checksum) for checksum in entry["checksums"])
        return cls(**{**entry, **counts, "digests": digests, "checksums": checksums})


def token_dtype(max_token_id: int) -> np.dtype[Any]:
    """uint16 if ids up to `max_token_id` fit, else uint32."""
    return np.dtype(np.uint16 if max_token_id < 1 << 16 else np.uint32)


def part_path(folder: Path, chunk_index: int, part: str) -> Path:
    """Where one of PARTS of the shard of a text chunk lies."""
    return folder / f"{chunk_index:08}.{part}"


def write_shard(
    folder: Path,
    chunk_index: int,
    starts: Sequence[NDArray[np.uint64]],
    tokens: Sequence[NDArray[Any]],
) -> tuple[int, ...]:
    """Write the shard of a text chunk, each part under a temporary name that is renamed; the parts' checksums.

    starts, tokens: train, validation. OSError names the file.
    """
    arrays = {**dict(zip(SPLITS, ((ids,) for ids in tokens), strict=True)), "starts": tuple(starts)}
    return tuple(_write_part(part_path(folder, chunk_index, part), arrays[part]) for part in PARTS)


def _write_part(path: Path, arrays: Sequence[NDArray[Any]]) -> int:
    checksum = 0
    arrays = [array for array in arrays if array.size]
    if not arrays:
        path.unlink(missing_ok=True)
        return checksum
    temporary = path.with_suffix(path.suffix + ".tmp")
    with naming(temporary):
        try:
            with temporary.open("wb", buffering=0) as file:
                for array in arrays:
                    view = np.ascontiguousarray(array).data.cast("B")
                    checksum = _core.xxh64(view, checksum)
                    while view.nbytes:
                        view = view[file.write(view) :]
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)  # on a full disk its space is needed to go on
            raise
    return checksum


def is_intact(folder: Path, record: ShardRecord, parts: Sequence[str] = PARTS) -> bool:
    """Whether the `parts` of the shard of `record` are there with every byte they were written with; reads them."""
    shape = record.shape
    for part, checksum in zip(PARTS, record.checksums, strict=True):
        if part not in parts or shape.part_bytes(part) == 0:
            continue
        try:
            with part_path(folder, record.chunk_index, part).open("rb") as file:
                if os.fstat(file.fileno()).st_size != shape.part_bytes(part):
                    return False
                found = 0
                for array_bytes in shape.array_bytes(part):
                    found = _core.xxh64(file.read(array_bytes), found) if array_bytes else found
        except FileNotFoundError:
            return False
        if found != checksum:
            return False
    return True


def drop_part(folder: Path, chunk_index: int, part: str) -> None:
    """Delete one of PARTS that is not needed any more."""
    part_path(folder, chunk_index, part).unlink(missing_ok=True)


class ShardReader:
    """Reads parts of one shard, open as a context. [start, stop) count tokens or sequences of a split within it."""

    def __init__(self, folder: Path, shape: ShardShape) -> None:
        self._folder = folder
        self._shape = shape
        self._files = ExitStack()

    def __enter__(self) -> ShardReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()

    def starts(self, split: str, start: int, stop: int) -> NDArray[np.uint64]:
        """Where sequences [start, stop) of the split start, in tokens from the shard's first: uint64[stop - start]."""
        out = np.empty(stop - start, dtype=np.uint64)
        self._read("starts", self._shape.starts_offset(split) + start * _START_BYTES, out)
        return out

    def tokens(self, split: str, start: int, stop: int) -> NDArray[Any]:
        """Ids [start, stop) of the split: uint16 or uint32[stop - start]."""
        out = np.empty(stop - start, dtype=np.dtype(f"u{self._shape.token_bytes}"))
        self._read(split, start * self._shape.token_bytes, out)
        return out

    def _read(self, part: str, offset: int, out: NDArray[Any]) -> None:
        if not out.size:
            return
        path = part_path(self._folder, self._shape.chunk_index, part)
        file = self._files.enter_context(path.open("rb", buffering=0))
        file.seek(offset)
        view = out.data.cast("B")
        while view.nbytes:
            got = file.readinto(view)
            if not got:
                raise BrokenInvariant(f"{path} is shorter than its record says; delete it and run again")
            view = view[got:]
