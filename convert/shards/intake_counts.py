"""What the records of a shard's text came to, as its record keeps it."""

from __future__ import annotations

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
    unreadable: tuple[
        tuple[int, str], ...
    ] = ()  # (source, error) of files that are left out from the damage on
    # Of the shard's quarantine file, -1 bytes where there is none: a shard is the same with and without.
    quarantine_bytes: int = field(default=-1, compare=False)
    quarantine_checksum: int = field(default=0, compare=False)
    messages: dict[str, int] = field(default_factory=dict)  # of chats, by role
    dropped: dict[str, int] = field(default_factory=dict)  # of these, those that the template leaves out

    @property
    def skipped_count(self) -> int:
        """How many records were left out."""
        return sum(self.skipped.values())

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> IntakeCounts:
        """The counts from a shard's record."""
        own = {name: tuple(entry[name]) for name in ("longest", "first_ids")}
        return cls(
            **{
                **entry,
                **own,
                "lines": tuple(map(tuple, entry["lines"])),
                "unreadable": tuple(map(tuple, entry.get("unreadable", ()))),
            }
        )

    def plus(self, other: IntakeCounts) -> IntakeCounts:
        """The counts of both together, without their lines and files."""
        return IntakeCounts(
            self.records + other.records,
            self.text_bytes + other.text_bytes,
            _sum(self.skipped, other.skipped),
            self.blank + other.blank,
            self.with_special + other.with_special,
            self.with_end_text + other.with_end_text,
            longest=tuple(sorted((*self.longest, *other.longest), reverse=True)[:3]),
            first_ids=self.first_ids or other.first_ids,
            messages=_sum(self.messages, other.messages),
            dropped=_sum(self.dropped, other.dropped),
        )


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}
