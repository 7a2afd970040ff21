"""What the records of a shard's text came to, as its record keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class IntakeCounts:
    """What the records of a shard's text came to, as its record keeps it."""

    records: int = 0  # found, bad ones included
    text_bytes: int = 0  # of the documents that were taken in
    skipped: dict[str, int] = field(default_factory=dict)  # by reason, bad ones only
    blank: int = 0  # lines of white space
    with_special: int = 0  # records that hold the text of a special token
    with_end_text: int = 0  # records that hold END_TEXT, if it is no special token
    # (source, lines of it in the chunk) if it goes on behind the chunk; of the chunk's last shard.
    lines: tuple[tuple[int, int], ...] = ()
    longest: tuple[int, ...] = ()  # sequences, in tokens, falling
    first_ids: tuple[int, ...] = ()  # of the first sequence of train
    # Of the shard's quarantine file, -1 bytes where there is none: a shard is the same with and without.
    quarantine_bytes: int = field(default=-1, compare=False)
    quarantine_checksum: int = field(default=0, compare=False)

    @property
    def skipped_count(self) -> int:
        """How many records were left out."""
        return sum(self.skipped.values())

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> IntakeCounts:
        """The counts from a shard's record; KeyError, TypeError or ValueError for anything else."""
        lines = tuple((int(source), int(lines)) for source, lines in entry["lines"])
        longest, first_ids = tuple(map(int, entry["longest"])), tuple(map(int, entry["first_ids"]))
        return cls(**{**entry, "lines": lines, "longest": longest, "first_ids": first_ids})


def total_intake(counts: Iterable[IntakeCounts]) -> IntakeCounts:
    """The counts of all shards together, without their lines and files."""
    records = text_bytes = blank = with_special = with_end_text = 0
    longest: list[int] = []
    first_ids: tuple[int, ...] = ()
    skipped: dict[str, int] = {}
    for chunk in counts:
        records += chunk.records
        text_bytes += chunk.text_bytes
        blank += chunk.blank
        with_special += chunk.with_special
        with_end_text += chunk.with_end_text
        longest = sorted([*longest, *chunk.longest], reverse=True)[:3]
        first_ids = first_ids or chunk.first_ids
        for reason, count in chunk.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + count
    skipped = dict(sorted(skipped.items()))
    return IntakeCounts(
        records,
        text_bytes,
        skipped,
        blank,
        with_special,
        with_end_text,
        longest=tuple(longest),
        first_ids=first_ids,
    )
