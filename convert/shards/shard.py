"""The files between encoding and merging: the ids of one text chunk, or of some of its documents, in four parts.

    train               uint16 or uint32[tokens], ids of the sequences in train
    train-starts        uint64[sequences], where they start
    validation          the same for validation
    validation-starts

Starts count from the shard's own first token of the split and increase strictly. Ids have the narrowest type that
holds the vocabulary. A part is a file, which is written over when the part is merged (convert/shards/slots.py), or, if
it is small, a piece of a file that holds many; one without items is nowhere. The files have no header: what they hold
and where is said by the `ShardRecord`, which the journal keeps and which exists only after all parts are whole.
Parts are apart since each is written as its items come (convert/shards/shard_writer.py), and since they live for
different times: ids of train are merged soon, starts often at the end.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from convert.errors import BrokenInvariant, naming
from convert.intake import IntakeCounts
from convert.plan import ShardId

SPLITS = ("train", "validation")
# A part is one array; those of the ids are named for their split.
STARTS_OF = {split: f"{split}-starts" for split in SPLITS}
PARTS = (*SPLITS, *STARTS_OF.values())
START_BYTES = 8
# Up to so many starts of a shard are read at once; among more, those of a run are searched for in the file.
STARTS_AT_ONCE = 1 << 17
_READ_BYTES = 1 << 20
Place = tuple[str, int]  # name of a file beside the journal, offset in bytes
NOWHERE: Place = ("", 0)


class SplitCounts(NamedTuple):
    """What a shard holds of one split: documents = sequences + empty."""

    documents: int
    empty: int
    sequences: int
    tokens: int
    max_token_id: int  # 0 where there are no tokens


class ShardShape(NamedTuple):
    """How long the parts of a shard are and where they lie."""

    id: ShardId
    token_bytes: int
    sequences: tuple[int, int]  # train, validation
    tokens: tuple[int, int]
    places: tuple[Place, ...]  # of each of PARTS

    def sequence_count(self, split: str) -> int:
        """How many sequences of `split` the shard holds."""
        return self.sequences[SPLITS.index(split)]

    def token_count(self, split: str) -> int:
        """How many tokens of `split` the shard holds."""
        return self.tokens[SPLITS.index(split)]

    def part_bytes(self, part: str) -> int:
        """The size of one of PARTS."""
        if part in SPLITS:
            return self.token_count(part) * self.token_bytes
        return self.sequences[PARTS.index(part) - len(SPLITS)] * START_BYTES

    def place(self, part: str) -> Place:
        """Where one of PARTS lies."""
        return self.places[PARTS.index(part)]


@dataclass(frozen=True)
class ShardRecord:
    """All that is known of a finished shard; the journal's entry."""

    id: ShardId
    is_last: bool  # of its chunk; what is said of a chunk as a whole is said by the last one
    text_bytes: int  # of the chunk in its sources, 0 in all but the last
    replaced: int  # invalid UTF-8 sequences that became U+FFFD
    token_bytes: int
    checksums: tuple[int, ...]  # XXH64 of each of PARTS
    train: SplitCounts
    validation: SplitCounts
    # Of the blocks that begin in the chunk, end to end (Plan.blocks); a million files are as many. In the last.
    digests: bytes = b""
    # (source, start, stop, hex) of what else was read. In the last.
    edges: tuple[tuple[int, int, int, str], ...] = ()
    intake: IntakeCounts = field(default_factory=IntakeCounts)
    # Of each of PARTS; the same shard may be written to another place the next time.
    places: tuple[Place, ...] = field(default=(NOWHERE,) * len(PARTS), compare=False)

    @property
    def shape(self) -> ShardShape:
        """How long the parts are and where they lie."""
        return ShardShape(
            self.id,
            self.token_bytes,
            (self.train.sequences, self.validation.sequences),
            (self.train.tokens, self.validation.tokens),
            self.places,
        )

    def split(self, name: str) -> SplitCounts:
        """The counts of split `name`."""
        return self.validation if name == SPLITS[1] else self.train

    def as_json(self) -> dict[str, Any]:
        """The record as plain JSON; `from_json` is its inverse."""
        inner = {
            "digests": self.digests.hex(),
            "train": self.train._asdict(),
            "validation": self.validation._asdict(),
            "intake": vars(self.intake),
        }
        return {**vars(self), **inner}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> ShardRecord:
        """The record that `as_json` wrote; KeyError, TypeError or ValueError for anything else."""
        id_ = ShardId(*entry["id"])
        counts = {name: SplitCounts(**entry[name]) for name in SPLITS}
        digests = bytes.fromhex(entry["digests"])
        edges = tuple((int(source), int(a), int(b), str(hex_)) for source, a, b, hex_ in entry["edges"])
        checksums = tuple(int(checksum) for checksum in entry["checksums"])
        intake = IntakeCounts.from_json(entry["intake"])
        places = tuple((str(name), int(offset)) for name, offset in entry["places"])
        lists = {"digests": digests, "edges": edges, "checksums": checksums, "places": places}
        return cls(**{**entry, **counts, **lists, "id": id_, "intake": intake})


def token_dtype(max_token_id: int) -> np.dtype[Any]:
    """uint16 if ids up to `max_token_id` fit, else uint32."""
    return np.dtype(np.uint16 if max_token_id < 1 << 16 else np.uint32)


def is_intact(folder: Path, record: ShardRecord, parts: Sequence[str] = PARTS) -> bool:
    """Whether the `parts` of the shard of `record` are there with every byte they were written with; reads them."""
    shape = record.shape
    return all(
        _is_part_intact(folder, shape.place(part), shape.part_bytes(part), checksum)
        for part, checksum in zip(PARTS, record.checksums, strict=True)
        if part in parts
    )


def _is_part_intact(folder: Path, place: Place, size: int, checksum: int) -> bool:
    if size == 0:
        return True
    name, offset = place
    found = _core.Xxh64()
    path = folder / name
    try:
        with path.open("rb", buffering=0) as file, naming(path):
            file.seek(offset)
            while size and (block := file.read(min(_READ_BYTES, size))):
                found.update(block)
                size -= len(block)
    except FileNotFoundError:
        return False
    return size == 0 and found.digest() == checksum


class ShardReader:
    """Reads parts of one shard, open as a context. [start, stop) count tokens or sequences of a split within it."""

    def __init__(self, folder: Path, shape: ShardShape) -> None:
        self._folder = folder
        self._shape = shape
        self._open: dict[str, io.FileIO] = {}
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
        self._read(STARTS_OF[split], start * START_BYTES, out)
        return out

    def tokens(self, split: str, start: int, stop: int, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Ids [start, stop) of the split: uint16 or uint32[stop - start]; `out`, of that kind, if it is given."""
        if out is None:
            out = np.empty(stop - start, dtype=np.dtype(f"u{self._shape.token_bytes}"))
        self._read(split, start * self._shape.token_bytes, out)
        return out

    def starts_within(self, split: str, token_start: int, token_stop: int) -> NDArray[np.uint64]:
        """The starts that lie in [token_start, token_stop), as `starts` gives them.

        Memory is that of the answer, or of STARTS_AT_ONCE; among more starts, 8 bytes are read some 40 times.
        """
        count = self._shape.sequence_count(split)
        if count > STARTS_AT_ONCE:
            low = self._first_start_from(split, token_start, count)
            return self.starts(split, low, self._first_start_from(split, token_stop, count))
        starts = self.starts(split, 0, count)
        # As uint64 like the starts: for a list of int, numpy would turn both to float64.
        low, high = starts.searchsorted(np.array([token_start, token_stop], dtype=np.uint64))
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

    def _read(self, part: str, offset: int, out: NDArray[Any]) -> None:
        if not out.size:
            return
        name, start = self._shape.place(part)
        path = f"{self._folder}/{name}"
        with naming(path):
            if part not in self._open:
                self._open[part] = self._files.enter_context(io.FileIO(path))
            read_at(self._open[part], start + offset, out.data.cast("B"), path)


def read_at(file: io.FileIO, offset: int, view: memoryview, path: str) -> None:
    """Fill `view` with the file's bytes from `offset` on."""
    file.seek(offset)
    while view.nbytes:
        got = file.readinto(view)
        if not got:
            raise BrokenInvariant(f"{path} is shorter than its record says; delete it and run again")
        view = view[got:]
