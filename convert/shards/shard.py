"""A temporary shard: the encoded documents of a text chunk, or of a part of it, in at most two files.

    <chunk>.<number>.train   uint32[tokens of train]
    <chunk>.<number>.rest    uint32[tokens of validation], then uint64[starts] of train and of validation

Tokens of train have a separate file, so that it can be deleted right after they are merged. Starts are merged later.

Tokens are stored as in the dataset: id * 2, plus 1 at the first token of a sequence. With a loss mask IDs are below
2^30, and NOT_TRAINED marks tokens that are not trained. Starts count from the shard's first token of their split and
begin at a multiple of 8 bytes. The files have no header: the `ShardRecord` in the journal describes them, with a digest
of every block of BLOCK_BYTES.

All attempts of a run to encode a shard write the same bytes, and a file gets its name when it is complete. Late or
lost attempts therefore cannot interfere. Runs with different plans use different folders.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from convert.planning.plan import ShardId
from convert.shards.intake_counts import IntakeCounts
from tokenmill.inputs._core import xxh64

if TYPE_CHECKING:
    from typing_extensions import Buffer

SPLITS = ("train", "validation")
ARRAYS = ("tokens", "starts")
ITEM_BYTES = {"tokens": 4, "starts": 8}
TRAIN, REST, QUARANTINE = ".train", ".rest", ".quarantine"  # suffixes of files
BLOCK_BYTES = 256 << 10
DIGEST_BYTES = 8
NOT_TRAINED = np.uint32(1 << 31)


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
    """A file of a shard. digests: XXH64 of its blocks, 8 bytes each."""

    name: str
    size: int
    digests: bytes


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

    digests: digests of the blocks of both files.
    is_last: whether it is the last shard of its chunk.
    text_bytes: the bytes of the chunk in its sources, 0 unless is_last.
    sources: those with sequences in the shard, in order.
    """

    id: ShardId
    train: SplitCounts
    validation: SplitCounts
    digests: tuple[bytes, bytes]
    sources: tuple[SourceCounts, ...] = ()
    intake: IntakeCounts = field(default_factory=IntakeCounts)
    is_last: bool = False
    text_bytes: int = 0

    @property
    def name(self) -> str:
        """Return the name of the files, without suffix."""
        return shard_name(self.id)

    def split(self, name: str) -> SplitCounts:
        """Return the counts of a split."""
        return self.validation if name == "validation" else self.train

    def files(self) -> list[ShardFile]:
        """Return the files that exist."""
        sizes = (4 * self.train.tokens, self._start("validation", "starts") + 8 * self.validation.sequences)
        named = zip((TRAIN, REST), sizes, self.digests, strict=True)
        return [ShardFile(self.name + suffix, size, digests) for suffix, size, digests in named if size]

    def merged_bytes(self) -> dict[str, int]:
        """Return the bytes per file that merge tasks read: all except the padding."""
        padding = padding_bytes(self.validation.tokens)
        return {file.name: file.size - (padding if file.name.endswith(REST) else 0) for file in self.files()}

    def slice(self, split: str, array: str, start: int, stop: int, added: int) -> ShardSlice:
        """Return items [start, stop) of an array of a split."""
        suffix = TRAIN if (split, array) == ("train", "tokens") else REST
        file = next(file for file in self.files() if file.name.endswith(suffix))
        first, item = self._start(split, array), ITEM_BYTES[array]
        return ShardSlice(file, first + start * item, first + stop * item, added)

    def _start(self, split: str, array: str) -> int:
        """Return the offset of an array in its file."""
        if array == "tokens":
            return 0
        start = 4 * self.validation.tokens + padding_bytes(self.validation.tokens)
        return start + (8 * self.train.sequences if split == "validation" else 0)

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON-able values; `from_json` is the inverse."""
        digests = [base64.b64encode(digests).decode() for digests in self.digests]
        return {**vars(self), "digests": digests, "intake": vars(self.intake)}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> ShardRecord:
        """Return the record that `as_json` wrote."""
        first, second = map(base64.b64decode, entry["digests"])
        return cls(
            ShardId(*entry["id"]),
            SplitCounts(*entry["train"]),
            SplitCounts(*entry["validation"]),
            (first, second),
            tuple(SourceCounts(*counts) for counts in entry["sources"]),
            IntakeCounts.of(entry["intake"]),
            entry["is_last"],
            entry["text_bytes"],
        )


def shard_name(shard: ShardId) -> str:
    """Return the name of the files of a shard, without suffix."""
    return f"{shard.chunk_index}.{shard.number}"


def padding_bytes(tokens: int) -> int:
    """Return the bytes that pad tokens to a multiple of 8 bytes."""
    return tokens % 2 * 4


def digest_of(block: Buffer) -> bytes:
    """Return the XXH64 of a block of a file."""
    return xxh64(block, 0).to_bytes(DIGEST_BYTES, "big")
