"""The record counts of a shard, and its quarantine file: the bad records, one JSON object per line.

When all shards are done, their quarantine files become `quarantine.jsonl` in the dataset, with paths for source numbers
and with line numbers that count from the beginning of each source.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from convert.shards.shard import ShardFile, ShardRecord
from convert.shards.shard_store import ShardStore
from convert.shards.shard_writer import BlockFile
from tokenmill.inputs.intake import UNREADABLE, BadRecord, Intake
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Source
from tokenmill.inputs.sources import recorded_path

END_TEXT = b"<|endoftext|>"  # the text that ends documents in most corpora
QUARANTINE_NAME = "quarantine.jsonl"


class ShardIntake(Intake):
    """Counts the records of one shard after another; see `IntakeCounts`. Call `begin` before each.

    first_line: of an unpacked block in its source, so that lines are counted as if the source was read at once.
    """

    def __init__(self, rules: IntakeRules, first_line: int | None = None) -> None:
        super().__init__(rules)
        self._first_line = first_line
        self.begin()

    def begin(self, quarantine: BlockFile | None = None) -> None:
        """Reset all counts. quarantine: the file for the bad records of the shard."""
        self.reset()
        self.text_bytes = self.with_special = self.with_end_text = 0
        self._quarantine = quarantine

    def bad(self, source_index: int, source: Source, record: BadRecord) -> None:
        """See Intake."""
        if record.line is not None:
            record = record._replace(line=record.line + (self._first_line or 0))
        super().bad(source_index, source, record)

    def add_lines(self, source_index: int, lines: int) -> None:
        """See Intake."""
        if self._first_line is None:
            super().add_lines(source_index, lines)

    def set_aside(self, source_index: int, record: BadRecord) -> None:
        """Append a record to the quarantine file."""
        if self._quarantine is None:
            return
        entry: dict[str, Any] = {"source": source_index}
        if record.line is not None:
            entry["line"] = record.line
        entry["row" if record.is_row else "byte"] = record.place
        entry |= {"bytes": record.length, "reason": record.reason, "detail": record.detail}
        try:
            entry["record"] = record.data.decode()
        except UnicodeDecodeError:
            entry["record_base64"] = base64.b64encode(record.data).decode()
        self._quarantine.write(json.dumps(entry).encode() + b"\n")


def is_usable(record: ShardRecord, rules: IntakeRules) -> bool:
    """Return whether these rules accept the bad records of a finished shard."""
    return rules.on_error != "fail" or not record.intake.has_bad


def lacks_quarantine(record: ShardRecord, rules: IntakeRules) -> bool:
    """Return whether the bad records of a finished shard were not kept, and these rules require it."""
    return rules.on_error == "quarantine" and record.intake.has_bad and not record.quarantine.size


def quarantine_lines(
    shards: ShardStore,
    sources: Sequence[Source],
    kept: Iterable[tuple[ShardFile, Sequence[tuple[int, int]]]],
) -> Iterator[bytes]:
    """Yield the lines of the dataset's quarantine file. Lines are numbered from 1 in each source.

    kept: (quarantine file, counted lines) of each shard. DataLost if a file is missing or damaged.
    """
    lines_before: Counter[int] = Counter()
    unreadable: set[int] = set()  # sources: several chunks may fail on the same file
    for file, counted_lines in kept:
        for line in b"".join(map(bytes, shards.read(file) if file.size else ())).splitlines():
            entry = json.loads(line)
            source_index = entry["source"]
            if entry["reason"] == UNREADABLE:
                if source_index in unreadable:
                    continue
                unreadable.add(source_index)
            entry["source"] = recorded_path(sources[source_index].shown)
            if "line" in entry:
                entry["line"] += lines_before[source_index] + 1
            yield json.dumps(entry).encode() + b"\n"
        for source_index, lines in counted_lines:
            lines_before[source_index] += lines
