"""A temporary shard: the encoded documents of a text chunk, or of a part of it, with a file per array.

    <chunk>.<number>.train.encoded_tokens        uint32[tokens]
    <chunk>.<number>.train.seq_starts            uint64[sequences]
    <chunk>.<number>.validation.encoded_tokens   and .seq_starts
    <chunk>.<number>.quarantine                  bad records, one JSON object per line

Tokens are stored as in the dataset: id * 2, plus 1 at the first token of a sequence. With a loss mask IDs are below
2^30, and NOT_TRAINED marks tokens that are not trained. Starts count from the shard's first token of their split. Empty
files are left out. The files have no header: the `ShardRecord` in the journal describes them, with a digest of every
block of BLOCK_BYTES.

All attempts of a run to encode a shard write the same bytes, and a file gets its name when it is complete. Late or
lost attempts therefore cannot interfere. Runs with different plans use different folders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from convert.planning.plan import ShardId
from flat_tokens.format import SPLITS, STARTS_NAME, TOKENS_NAME

ARRAYS = (TOKENS_NAME, STARTS_NAME)
QUARANTINE = "quarantine"
BLOCK_BYTES = 256 << 10
NOT_TRAINED = np.uint32(1 << 31)


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
    messages, dropped: chat messages by role, and those that the template leaves out.
    first_ids: the first token IDs of train.
    lines: (source, lines of it in the chunk) if the source continues after the chunk; in its last shard only.
    unreadable: (source, error) for each file that is damaged or cannot be opened.
    """

    records: int = 0
    text_bytes: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    blank: int = 0
    with_special: int = 0
    with_end_text: int = 0
    replaced: int = 0
    messages: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    first_ids: tuple[int, ...] = ()
    lines: tuple[tuple[int, int], ...] = ()
    unreadable: tuple[tuple[int, str], ...] = ()

    @property
    def skipped_count(self) -> int:
        """The number of bad records."""
        return sum(self.skipped.values())

    @property
    def has_bad(self) -> bool:
        """Whether there are bad records or unreadable files."""
        return bool(self.skipped or self.unreadable)

    @classmethod
    def of(cls, counts: Mapping[str, Any]) -> IntakeCounts:
        """Return the counts by name, as in the journal entry of a shard."""
        return cls(**{own.name: _tuples(counts[own.name]) for own in fields(cls)})

    def plus(self, other: IntakeCounts) -> IntakeCounts:
        """Add two counts, except what only describes one shard: lines and unreadable files."""
        sums: dict[str, Any] = {"first_ids": self.first_ids or other.first_ids}
        for name, more in vars(other).items():
            if isinstance(more, int):
                sums[name] = getattr(self, name) + more
            elif isinstance(more, dict):
                sums[name] = dict(sorted((Counter(getattr(self, name)) + Counter(more)).items()))
        return IntakeCounts(**sums)


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


class ShardFile(NamedTuple):
    """A file of a shard, which exists unless its size is 0. digests: XXH64 of its blocks."""

    name: str
    size: int
    digests: tuple[int, ...]


@dataclass(frozen=True)
class ShardRecord:
    """A finished shard, as the journal records it.

    arrays: the files of train and validation, tokens before starts.
    sources: (source, sequences and tokens in train, sequences and tokens in validation), for sources with sequences.
    is_last: whether it is the last shard of its chunk.
    text_bytes: the bytes of the chunk in its sources, 0 unless is_last.
    quarantine: the file with bad records.
    """

    id: ShardId
    train: SplitCounts
    validation: SplitCounts
    arrays: tuple[ShardFile, ...]
    sources: tuple[tuple[int, ...], ...]
    intake: IntakeCounts
    is_last: bool
    text_bytes: int
    quarantine: ShardFile = field(compare=False)  # --on-error may change between runs

    def split(self, name: str) -> SplitCounts:
        """Return the counts of a split."""
        return self.validation if name == "validation" else self.train

    def file(self, split: str, array: str) -> ShardFile:
        """Return the file of an array."""
        return self.arrays[len(ARRAYS) * SPLITS.index(split) + ARRAYS.index(array)]

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> ShardRecord:
        """Return the record of a line of the journal, which `as_json` wrote."""
        values = {name: _tuples(value) for name, value in entry.items()}
        values |= {"id": ShardId(*entry["id"]), "intake": IntakeCounts.of(entry["intake"])}
        values |= {split: SplitCounts(*entry[split]) for split in SPLITS}
        files = [ShardFile(*file) for file in (*values["arrays"], values["quarantine"])]
        return cls(**values | {"arrays": tuple(files[:-1]), "quarantine": files[-1]})

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON-able values."""
        return {**vars(self), "intake": vars(self.intake)}


def file_name(shard: ShardId, kind: str) -> str:
    """Return the name of a file of a shard."""
    return f"{shard.chunk_index}.{shard.number}.{kind}"
