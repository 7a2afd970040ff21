"""The files between encoding and merging: the ids of one text chunk, or of some of its documents, in six parts.

    train               uint16 or uint32[tokens], ids of the sequences in train
    train-starts        uint64[sequences], where they start
    validation          the same for validation
    validation-starts
    train-places        uint64[sequences], where they begin in their source, if that is recorded
    validation-places

Starts count from the shard's own first token of the split and increase strictly. Ids have the narrowest type that
holds the vocabulary. A large part is a file, small ones lie in one file together, a part without items is nowhere, and
starts that are very few are in the record itself: those of validation are read at the end only, and their files would
stay until then. No file holds parts of two shards (convert/shards/shard_files.py). The files have no header: what they
hold and where is said by the `ShardRecord`, which the journal keeps and which exists only after all parts are whole.
Parts are apart since each is written as its items come (convert/shards/shard_writer.py), and since they live for
different times: ids of train are merged soon, starts often at the end.

A record has a digest of every block of a part, and no byte of a part is used unless its block has the digest that its
writer recorded (convert/shards/shard_reader.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from convert.planning.plan import ShardId
from convert.shards.intake_counts import IntakeCounts
from tokenmill.inputs.digest import DIGEST_BYTES

SPLITS = ("train", "validation")
# A part is one array; those of the ids are named for their split.
STARTS_OF = {split: f"{split}-starts" for split in SPLITS}
PLACES_OF = {split: f"{split}-places" for split in SPLITS}
PARTS = (*SPLITS, *STARTS_OF.values(), *PLACES_OF.values())
START_BYTES = 8
# A part is hashed in blocks of this size. Runs share blocks at their borders, which are then read twice.
DIGEST_BLOCK_BYTES = 256 << 10
Place = tuple[str, int]  # name of a file beside the journal, offset in bytes
NOWHERE: Place = ("", 0)
# Shards of a dataset with a loss mask have ids of 32 bits; this bit is set where a token is not to be learned.
NOT_TRAINED = np.uint32(1 << 31)


class SplitCounts(NamedTuple):
    """What a shard holds of one split: documents = sequences + empty."""

    documents: int
    empty: int
    sequences: int
    tokens: int
    max_token_id: int  # 0 where there are no tokens
    not_trained: int = 0  # tokens that are not to be learned

    def plus(self, other: SplitCounts) -> SplitCounts:
        """The counts of both together."""
        sums = SplitCounts(*map(sum, zip(self, other, strict=True)))
        return sums._replace(max_token_id=max(self.max_token_id, other.max_token_id))


NOTHING = SplitCounts(0, 0, 0, 0, 0)


class SourceCounts(NamedTuple):
    """What a shard holds of one source."""

    source_index: int
    train_sequences: int
    train_tokens: int
    validation_sequences: int
    validation_tokens: int


class Part(NamedTuple):
    """One array of a shard: what it holds, and where it lies."""

    shard: ShardId
    name: str  # one of PARTS
    item_bytes: int
    item_count: int
    file: str  # beside the journal; "" where the part has no items or is `inline`
    offset: int  # of its first byte in the file
    digests: bytes  # the XXH64 of its blocks from `first_block` on, end to end
    inline: bytes = b""  # the part itself, where it is in no file
    first_block: int = 0

    @property
    def size(self) -> int:
        """In bytes."""
        return self.item_bytes * self.item_count

    def blocks(self, start: int, stop: int) -> range:
        """The blocks that items [start, stop) lie in."""
        first, end = start * self.item_bytes, stop * self.item_bytes
        return range(first // DIGEST_BLOCK_BYTES, -(-end // DIGEST_BLOCK_BYTES))

    def for_items(self, start: int, stop: int) -> Part:
        """The part with those digests alone that items [start, stop) need: a document of many GB is one shard with as
        many digests, and every run of it is sent to a worker."""
        blocks = self.blocks(start, stop)
        needed = self.digests[blocks.start * DIGEST_BYTES : blocks.stop * DIGEST_BYTES]
        return self._replace(digests=needed, first_block=blocks.start)


@dataclass(frozen=True)
class ShardRecord:
    """All that is known of a finished shard; the journal's entry."""

    id: ShardId
    token_bytes: int
    part_digests: tuple[bytes, ...]  # of each of PARTS: the XXH64 of its blocks, end to end
    train: SplitCounts
    validation: SplitCounts
    replaced: int = 0  # invalid UTF-8 sequences that became U+FFFD
    is_last: bool = False  # of its chunk; what is said of a chunk as a whole is said by the last one
    text_bytes: int = 0  # of the chunk in its sources, 0 in all but the last
    # Of the blocks that begin in the chunk, end to end (Plan.blocks); a million files are as many. In the last.
    digests: bytes = b""
    # (source, start, stop, hex) of what else was read. In the last.
    edges: tuple[tuple[int, int, int, str], ...] = ()
    intake: IntakeCounts = field(default_factory=IntakeCounts)
    sources: tuple[SourceCounts, ...] = ()  # those with sequences, in order
    # Of each of PARTS; the same shard may be written to another place the next time.
    places: tuple[Place, ...] = field(default=(NOWHERE,) * len(PARTS), compare=False)
    inline: tuple[bytes, ...] = (b"",) * len(PARTS)  # of each of PARTS that is in no file: the part itself

    def part(self, name: str) -> Part:
        """One of PARTS."""
        index = PARTS.index(name)
        counts = self.split(SPLITS[index % len(SPLITS)])
        items = (self.token_bytes, counts.tokens) if name in SPLITS else (START_BYTES, counts.sequences)
        return Part(self.id, name, *items, *self.places[index], self.part_digests[index], self.inline[index])

    def split(self, name: str) -> SplitCounts:
        """The counts of split `name`."""
        return self.validation if name == SPLITS[1] else self.train

    def as_json(self) -> dict[str, Any]:
        """The record as plain JSON; `from_json` is its inverse."""
        inner = {
            "digests": self.digests.hex(),
            "part_digests": [digests.hex() for digests in self.part_digests],
            "inline": [data.hex() for data in self.inline],
            "train": self.train._asdict(),
            "validation": self.validation._asdict(),
            "intake": vars(self.intake),
        }
        return {**vars(self), **inner}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> ShardRecord:
        """The record that `as_json` wrote."""
        own: dict[str, Any] = {name: SplitCounts(**entry[name]) for name in SPLITS}
        own |= {name: tuple(map(bytes.fromhex, entry[name])) for name in ("part_digests", "inline")}
        own |= {name: tuple(map(tuple, entry[name])) for name in ("edges", "places")}
        own["sources"] = tuple(SourceCounts(*counts) for counts in entry["sources"])
        own["id"], own["digests"] = ShardId(*entry["id"]), bytes.fromhex(entry["digests"])
        own["intake"] = IntakeCounts.from_json(entry["intake"])
        return cls(**{**entry, **own})


def token_dtype(max_token_id: int) -> np.dtype[Any]:
    """uint16 if ids up to `max_token_id` fit, else uint32."""
    return np.dtype(np.uint16 if max_token_id < 1 << 16 else np.uint32)
