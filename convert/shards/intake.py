"""The records of a shard's text, counted (tokenmill/inputs/intake.py), and the bad ones of them that are set aside.

Quarantined records go to a file beside the shard, one JSON object a line; when all shards are done the files become
`quarantine.jsonl` in the dataset, with line numbers counted from the beginning of each source.
"""

from __future__ import annotations

import base64
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from convert.errors import DataLost, naming
from convert.planning.plan import ShardId
from convert.shards.intake_counts import IntakeCounts
from convert.shards.shard_store import ShardStore
from flat_tokens.storage.files import write_all
from tokenmill.inputs import _core
from tokenmill.inputs.errors import FatalInput
from tokenmill.inputs.intake import INVALID_UTF8, UNREADABLE, BadRecord, Intake
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Source
from tokenmill.inputs.sources import recorded_path
from tokenmill.stores import StoreNotFound
from tokenmill.stores.names import rename

END_TEXT = b"<|endoftext|>"  # what ends a document in most corpora
QUARANTINE_NAME = "quarantine.jsonl"


class ShardIntake(Intake):
    """The records of one shard after the other, and their quarantine files. What an error left of one under its
    temporary name is deleted with the folder."""

    def __init__(self, rules: IntakeRules) -> None:
        super().__init__(rules)
        self.begin(None)

    def begin(self, shard: ShardId | None, folder: Path = Path()) -> None:
        """What comes from now on belongs to a shard, and what is set aside to `folder`; None: to one that is there
        already, so nothing becomes of it."""
        self.reset()
        self._shard = shard
        self.text_bytes = self.with_special = self.with_end_text = 0
        self._quarantine = folder / ("" if shard is None else quarantine_name(shard))
        # A name of this attempt's own: the shard may be encoded by another at the same time.
        self._temporary = f"{self._quarantine}.{os.urandom(8).hex()}.tmp"
        self._quarantine_bytes, self._checksum = -1, 0

    def bad(self, source_index: int, source: Source, record: BadRecord) -> None:
        """See Intake; nothing for a shard that is there already."""
        if self._shard is not None:
            super().bad(source_index, source, record)

    def bad_file(self, source_index: int, source: Source, error: Exception) -> None:
        """See Intake; ignored for a shard that an earlier run encoded."""
        if self._shard is not None or isinstance(error, FatalInput):
            super().bad_file(source_index, source, error)

    def set_aside(self, source_index: int, record: BadRecord) -> None:
        """Write the record to the shard's quarantine file."""
        line = _quarantine_line(source_index, record) + b"\n"
        with naming(self._temporary):
            write_all(self._temporary, line, os.O_APPEND)
        self._quarantine_bytes = max(self._quarantine_bytes, 0) + len(line)
        self._checksum = _core.xxh64(line, self._checksum)

    def finish(self, longest: Sequence[int] = (), first_ids: Sequence[int] = ()) -> IntakeCounts:
        """The counts, with what the shard says of its sequences; a quarantine file gets its name."""
        if self._quarantine_bytes >= 0:
            with naming(self._temporary):
                rename(self._temporary, self._quarantine)
        return IntakeCounts(
            self.records,
            self.text_bytes,
            self.skipped,
            self.blank,
            self.with_special,
            self.with_end_text,
            tuple(self.lines),
            tuple(longest),
            tuple(first_ids),
            tuple(self.unreadable),
            self._quarantine_bytes,
            self._checksum,
            self.messages,
            self.dropped,
        )


def quarantine_name(shard: ShardId) -> str:
    """What the file of a shard's quarantined records is called, beside it."""
    return f"{shard.chunk_index:08}-{shard.number}.quarantine"


def is_usable(counts: IntakeCounts, rules: IntakeRules) -> bool:
    """Whether what was left out of a finished shard would be left out under `rules`, too."""
    if rules.on_error == "fail":
        if counts.unreadable:
            return False
        return not counts.skipped or (rules.invalid == "skip" and set(counts.skipped) == {INVALID_UTF8})
    return True


def has_quarantine(shards: ShardStore, shard: ShardId, counts: IntakeCounts, rules: IntakeRules) -> bool:
    """Whether the bad records of a finished shard are set aside, every byte of them, if they are to be."""
    is_needed = rules.on_error == "quarantine" and bool(counts.skipped or counts.unreadable)
    return not is_needed or _quarantined(shards, shard, counts) is not None


def _quarantined(shards: ShardStore, shard: ShardId, counts: IntakeCounts) -> io.BytesIO | None:
    """The lines of a shard's quarantine file; None if they are not what was written there."""
    try:
        lines = io.BytesIO(shards.read(quarantine_name(shard)))
    except StoreNotFound:
        return None
    size = checksum = 0
    for line in lines:
        size += len(line)
        checksum = _core.xxh64(line, checksum)
    lines.seek(0)
    return lines if (size, checksum) == (counts.quarantine_bytes, counts.quarantine_checksum) else None


def _quarantine_line(source_index: int, record: BadRecord) -> bytes:
    entry: dict[str, Any] = {"source": source_index}
    if record.line is not None:
        entry["line"] = record.line
    entry["row" if record.is_row else "byte"] = record.place
    entry |= {"bytes": record.length, "reason": record.reason, "detail": record.detail}
    try:
        entry["record"] = record.data.decode()
    except UnicodeDecodeError:
        entry["record_base64"] = base64.b64encode(record.data).decode()
    return json.dumps(entry).encode()


def quarantine_lines(
    shards: ShardStore, sources: Sequence[Source], intakes: Iterable[tuple[ShardId, IntakeCounts]]
) -> Iterator[bytes]:
    """The lines of the dataset's quarantine file: paths for numbers, lines counted from 1 in each source.

    DataLost for a shard's file that is not what its worker wrote.
    """
    lines_before: Counter[int] = Counter()
    unreadable: set[int] = set()  # sources; several pieces of one may be damaged
    for shard, counts in intakes:
        if counts.quarantine_bytes >= 0:
            kept = _quarantined(shards, shard, counts)
            if kept is None:
                raise DataLost(
                    f"{shards.where(quarantine_name(shard))}: checksum mismatch. Run the same command again to "
                    "rebuild it."
                )
            for line in kept:
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
        for source_index, lines in counts.lines:
            lines_before[source_index] += lines
