"""A temporary shard: the encoded documents of a text chunk, or of a part of it, with a file per array.

    <chunk>.<number>.train.tokens        uint32[tokens]
    <chunk>.<number>.train.starts        uint64[sequences]
    <chunk>.<number>.validation.tokens   and .starts
    <chunk>.<number>.quarantine          bad records, one JSON object per line

Tokens are stored as in the dataset: id * 2, plus 1 at the first token of a sequence. With a loss mask IDs are below
2^30, and NOT_TRAINED marks tokens that are not trained. Starts count from the shard's first token of their split. Empty
files are left out. The files have no header: the `ShardRecord` in the journal describes them, with a digest of every
block of BLOCK_BYTES.

All attempts of a run to encode a shard write the same bytes, and a file gets its name when it is complete. Late or
lost attempts therefore cannot interfere. Runs with different plans use different folders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from convert.planning.plan import ShardId
from tokenmill.inputs._core import xxh64

if TYPE_CHECKING:
    from typing_extensions import Buffer

SPLITS = ("train", "validation")
ARRAYS = ("tokens", "starts")
ITEM_BYTES = {"tokens": 4, "starts": 8}
QUARANTINE = "quarantine"
BLOCK_BYTES = 256 << 10
DIGEST_DIGITS = 16
NOT_TRAINED = np.uint32(1 << 31)
_NUMBERS = ("records", "text_bytes", "blank", "with_special", "with_end_text", "replaced")
_BY_NAME = ("skipped", "messages", "dropped")


@dataclass(frozen=True)
class IntakeCounts:
    """The records of a shard's text. The sum over shards is reported in the summary and in the manifest.

    records: all, including bad ones.
    text_bytes: of the documents.
    skipped: bad records by reason.
    blank: blank lines.
    with_special: documents that contain the text of a special token.
    with_end_text: documents that contain <|endoftext|>, if it is not a special token.
    replaced: invalid UTF-8 sequences that became U+FFFD.
    lines: (source, lines of it in the chunk) if the source continues after the chunk; in its last shard only.
    first_ids: the first token IDs of train.
    unreadable: (source, error) for each file that is damaged or cannot be opened.
    messages, dropped: chat messages by role, and those that the template leaves out.
    """

    records: int = 0
    text_bytes: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    blank: int = 0
    with_special: int = 0
    with_end_text: int = 0
    replaced: int = 0
    lines: tuple[tuple[int, int], ...] = ()
    first_ids: tuple[int, ...] = ()
    unreadable: tuple[tuple[int, str], ...] = ()
    messages: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def skipped_count(self) -> int:
        """The number of bad records."""
        return sum(self.skipped.values())

    @classmethod
    def of(cls, counts: Mapping[str, Any]) -> IntakeCounts:
        """Return the counts by name, as in the journal entry of a shard."""
        return cls(**{own.name: _tuples(counts[own.name]) for own in fields(cls)})

    def plus(self, other: IntakeCounts) -> IntakeCounts:
        """Add two counts, except what only describes one shard: lines and unreadable files."""
        sums: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in _NUMBERS}
        for name in _BY_NAME:
            one, more = getattr(self, name), getattr(other, name)
            sums[name] = {key: one.get(key, 0) + more.get(key, 0) for key in sorted({*one, *more})}
        return IntakeCounts(**sums, first_ids=self.first_ids or other.first_ids)


def _tuples(value: Any) -> Any:
    """[[0, 5]] -> ((0, 5),): JSON has no tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


class SplitCounts(NamedTuple):
    """The counts of one split: documents = sequences + empty. not_trained: number of tokens."""

    documents: int = 0
    empty: int = 0
    sequences: int = 0
    tokens: int = 0
    max_token_id: int = 0
    not_trained: int = 0

    def plus(self, other: SplitCounts) -> SplitCounts:
        """Add two counts."""
        sums = SplitCounts(*map(sum, zip(self, other, strict=True)))
        return sums._replace(max_token_id=max(self.max_token_id, other.max_token_id))


class SourceCounts(NamedTuple):
    """The sequences and tokens of one source in a shard."""

    source_index: int
    train_sequences: int
    train_tokens: int
    validation_sequences: int
    validation_tokens: int


class ShardFile(NamedTuple):
    """A file of a shard. digests: XXH64 of its blocks, DIGEST_DIGITS hexadecimal digits each."""

    name: str
    size: int
    digests: str


class ShardSlice(NamedTuple):
    """Bytes [start, stop) of a file of a shard.

    added: number to add to each item, because the merged starts count from the beginning of the merged tokens.
    """

    file: ShardFile
    start: int
    stop: int
    added: int = 0


@dataclass(frozen=True)
class ShardRecord:
    """A finished shard, as the journal records it.

    digests: of the blocks of each array's file, by split and array.
    is_last: whether it is the last shard of its chunk.
    text_bytes: the bytes of the chunk in its sources, 0 unless is_last.
    sources: those with sequences in the shard, in order.
    quarantine: size and digests of the file with bad records.
    """

    id: ShardId
    train: SplitCounts
    validation: SplitCounts
    digests: tuple[tuple[str, ...], ...]
    sources: tuple[SourceCounts, ...] = ()
    intake: IntakeCounts = field(default_factory=IntakeCounts)
    is_last: bool = False
    text_bytes: int = 0
    quarantine: tuple[int, str] = field(default=(0, ""), compare=False)  # --on-error may change between runs

    def split(self, name: str) -> SplitCounts:
        """Return the counts of a split."""
        return self.validation if name == "validation" else self.train

    def file(self, split: str, array: str) -> ShardFile:
        """Return the file of an array. It exists unless its size is 0."""
        counts = self.split(split)
        size = ITEM_BYTES[array] * (counts.tokens if array == "tokens" else counts.sequences)
        digests = self.digests[SPLITS.index(split)][ARRAYS.index(array)]
        return ShardFile(file_name(self.id, f"{split}.{array}"), size, digests)

    @property
    def quarantine_file(self) -> ShardFile:
        """The file with bad records. It exists unless its size is 0."""
        return ShardFile(file_name(self.id, QUARANTINE), *self.quarantine)

    def files(self) -> list[ShardFile]:
        """Return the files of arrays that exist."""
        files = [self.file(split, array) for split in SPLITS for array in ARRAYS]
        return [file for file in files if file.size]

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON-able values; `from_json` is the inverse."""
        return {**vars(self), "intake": vars(self.intake)}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> ShardRecord:
        """Return the record that `as_json` wrote."""
        values = {name: _tuples(value) for name, value in entry.items()}
        values |= {"id": ShardId(*entry["id"]), "intake": IntakeCounts.of(entry["intake"])}
        values |= {split: SplitCounts(*entry[split]) for split in SPLITS}
        return cls(**values | {"sources": tuple(SourceCounts(*counts) for counts in entry["sources"])})


def file_name(shard: ShardId, kind: str) -> str:
    """Return the name of a file of a shard."""
    return f"{shard.chunk_index}.{shard.number}.{kind}"


def digest_of(block: Buffer) -> str:
    """Return the XXH64 of a block of a file."""
    return f"{xxh64(block, 0):016x}"
