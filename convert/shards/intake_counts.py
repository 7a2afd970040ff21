"""Counts of the records in the text of a shard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

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
    quarantine_bytes, quarantine_checksum: of the quarantine file; -1 bytes if there is none.
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
    quarantine_bytes: int = field(default=-1, compare=False)  # --on-error may change between runs
    quarantine_checksum: int = field(default=0, compare=False)
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
        """Add two counts, except what only describes one shard: lines, unreadable files, the quarantine."""
        sums: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in _NUMBERS}
        sums |= {name: _sum(getattr(self, name), getattr(other, name)) for name in _BY_NAME}
        return IntakeCounts(**sums, first_ids=self.first_ids or other.first_ids)


def _tuples(value: Any) -> Any:
    """[[0, 5]] -> ((0, 5),): JSON has no tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}
