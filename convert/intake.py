"""What becomes of the records of a corpus: taken in, or found bad and treated as --on-error says. Each is counted.

A *record* is what an input holds one document in: a stretch of text between separators, a JSON line, a Parquet row.
Records that cannot give their text are *bad*. Conservation: records = documents + skipped, for every shard.

Quarantined records go to a file beside the shard, one JSON object a line; when all shards are done the files become
`quarantine.jsonl` in the dataset, with line numbers counted from the beginning of each source.
"""

from __future__ import annotations

import base64
import codecs
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bpe import _core
from convert.errors import BadInput, DataLost, naming, printable
from convert.inputs.source_list import Source
from convert.inputs.sources import recorded_path
from convert.plan import ShardId
from convert.rules import IntakeRules

SHOWN_BYTES = 80
END_TEXT = b"<|endoftext|>"  # what ends a document in most corpora
INVALID_UTF8 = "invalid UTF-8"  # the one reason that --invalid skip tolerates
MALFORMED, FIELD_MISSING = "malformed", "field missing"
QUARANTINE_NAME = "quarantine.jsonl"


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


class BadRecord(NamedTuple):
    """A record that gives no text. place: its first byte in the (decompressed) source, or its row.

    reason: the kind of fault, under which it is counted; detail: what exactly. data: its bytes, or the first of
    `length`. line: from 0, counted from the first line of the piece.
    """

    reason: str
    detail: str
    place: int
    data: bytes
    length: int
    line: int | None = None
    is_row: bool = False


class Intake:
    """The records of one shard after the other: counts them, and treats the bad ones as the rules say."""

    def __init__(self, rules: IntakeRules, folder: Path) -> None:
        self.rules = rules
        self._folder = folder
        self.begin(None)

    def begin(self, shard: ShardId | None) -> None:
        """What comes from now on belongs to a shard; None: to one that is there already, so nothing becomes of it."""
        self._shard = shard
        self.records = 0
        self.text_bytes = 0
        self.blank = 0
        self.with_special = 0
        self.with_end_text = 0
        self.replaced = 0
        self._skipped: dict[str, int] = {}
        self._lines: list[tuple[int, int]] = []
        self._quarantine: io.FileIO | None = None
        self._temporary = self._folder
        self._quarantine_bytes, self._checksum = -1, 0

    def add_lines(self, source_index: int, lines: int) -> None:
        """The chunk has so many lines, good, bad and blank, of a source that goes on in the next one."""
        self._lines.append((source_index, lines))

    def bad(self, source_index: int, source: Source, record: BadRecord) -> None:
        """A bad record: BadInput (exit 3) under "fail" or beyond max_errors; else counted, and kept if it is to be."""
        if self._shard is None:
            return
        tolerated = self.rules.invalid == "skip" and record.reason == INVALID_UTF8
        if self.rules.on_error == "fail" and not tolerated:
            raise BadInput(self._message(source, record))
        self._skipped[record.reason] = self._skipped.get(record.reason, 0) + 1
        check_error_count(sum(self._skipped.values()), self.rules.max_errors)
        if self.rules.on_error == "quarantine":
            self._set_aside(self._shard, _quarantine_line(source_index, record) + b"\n")

    def _set_aside(self, shard: ShardId, line: bytes) -> None:
        if self._quarantine is None:
            # A name of this attempt's own: the shard may be encoded by another at the same time.
            path = quarantine_path(self._folder, shard)
            self._temporary = path.with_suffix(f".{os.urandom(8).hex()}.tmp")
        with naming(self._temporary):
            if self._quarantine is None:
                self._quarantine = io.FileIO(self._temporary, "xb")
                self._quarantine_bytes = 0
            view = memoryview(line)
            while view.nbytes:
                view = view[self._quarantine.write(view) :]
        self._quarantine_bytes += len(line)
        self._checksum = _core.xxh64(line, self._checksum)

    def finish(self, longest: Sequence[int] = (), first_ids: Sequence[int] = ()) -> IntakeCounts:
        """The counts, with what the shard says of its sequences; a quarantine file gets its name."""
        self.close()
        if self._quarantine is not None and self._shard is not None:
            with naming(self._temporary):
                self._temporary.replace(quarantine_path(self._folder, self._shard))
        return IntakeCounts(
            self.records,
            self.text_bytes,
            self._skipped,
            self.blank,
            self.with_special,
            self.with_end_text,
            tuple(self._lines),
            tuple(longest),
            tuple(first_ids),
            self._quarantine_bytes,
            self._checksum,
        )

    def close(self) -> None:
        """Close the quarantine file; what an error left under its temporary name is deleted at the end."""
        if self._quarantine is not None:
            self._quarantine.close()

    @staticmethod
    def _message(source: Source, record: BadRecord) -> str:
        if record.is_row:
            where = f"row {record.place}"
        elif record.line is None or source.kind.format != "jsonl":
            where = f"byte {record.place}"
        else:
            line = _line_number(source.path, record.place) if source.kind.is_plain else record.line + 1
            where = f"line {line} (byte {record.place})"
        shown = record.data[:SHOWN_BYTES].decode("utf-8", "backslashreplace")
        if shown:
            shown = f": {shown}{'...' if record.length > SHOWN_BYTES else ''}"
        return printable(f"{source.path}: {where}: {record.detail}{shown}; {_way_out(record)}")


def _way_out(record: BadRecord) -> str:
    """What to do about a bad record: what is wrong with the first one is often wrong with all."""
    start = record.data[:SHOWN_BYTES].strip()
    if record.line == 0 and record.place <= len(codecs.BOM_UTF8):  # of the file, as its first byte is in it
        if start.startswith(b"["):
            return "a list of records is no JSON Lines; make it a record a line first: jq -c '.[]'"
        if start.startswith(b"{") and record.reason == MALFORMED and record.length < SHOWN_BYTES:
            return "JSON Lines has a record a line, mend it; if the records have several each: jq -c ."
    way_out = "mend it, or go on without such records: --on-error skip"
    if record.reason == FIELD_MISSING:
        with suppress(ValueError, RecursionError):  # of a long record there is the beginning only
            names = ", ".join(list(json.loads(record.data))[:10])
            return f"name another with --text-field (there is {names or 'none'}), {way_out}"
    return way_out


def _line_number(path: str, place: int) -> int:
    """The number of the line that begins at byte `place`, from 1; reads all that lies before it, for an error."""
    number = 1
    with io.FileIO(path) as file:
        while place > 0 and (block := file.read(min(1 << 20, place))):
            number += block.count(b"\n")
            place -= len(block)
    return number


def check_error_count(count: int, max_errors: int | None) -> None:
    """Raise BadInput (exit 3) if there are more bad records than allowed."""
    if max_errors is not None and count > max_errors:
        raise BadInput(
            f"more than {max_errors} bad records; see what is wrong (--on-error quarantine keeps them, --text-field "
            f"names the field), or allow more with --max-errors"
        )


def quarantine_path(folder: Path, shard: ShardId) -> Path:
    """Where the quarantined records of a shard lie, beside it."""
    return folder / f"{shard.chunk_index:08}-{shard.number}.quarantine"


def is_usable(counts: IntakeCounts, rules: IntakeRules) -> bool:
    """Whether what was left out of a finished shard would be left out under `rules`, too."""
    if rules.on_error == "fail":
        return not counts.skipped or (rules.invalid == "skip" and set(counts.skipped) == {INVALID_UTF8})
    return True


def needs_quarantine(counts: IntakeCounts, rules: IntakeRules) -> bool:
    """Whether a finished shard is of use only with its quarantine file; without one it is made again."""
    return rules.on_error == "quarantine" and bool(counts.skipped)


def is_quarantine_intact(folder: Path, shard: ShardId, counts: IntakeCounts) -> bool:
    """Whether the quarantine file of a shard is there with every byte it was written with."""
    size = checksum = 0
    try:
        for line in _lines(quarantine_path(folder, shard)):
            size += len(line)
            checksum = _core.xxh64(line, checksum)
    except FileNotFoundError:
        return False
    return (size, checksum) == (counts.quarantine_bytes, counts.quarantine_checksum)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


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
    folder: Path, sources: Sequence[Source], shards: Iterable[tuple[ShardId, IntakeCounts]]
) -> Iterator[bytes]:
    """The lines of the dataset's quarantine file: paths for numbers, lines counted from 1 in each source.

    DataLost for a shard's file that is not what its worker wrote.
    """
    lines_before: Counter[int] = Counter()
    for shard, counts in shards:
        if counts.quarantine_bytes >= 0:
            if not is_quarantine_intact(folder, shard, counts):
                raise DataLost(
                    f"{quarantine_path(folder, shard)} is not what was written there; run the same command again, "
                    "which makes it again"
                )
            for line in _lines(quarantine_path(folder, shard)):
                entry = json.loads(line)
                source_index = entry["source"]
                entry["source"] = recorded_path(sources[source_index].path)
                if "line" in entry:
                    entry["line"] += lines_before[source_index] + 1
                yield json.dumps(entry).encode() + b"\n"
        for source_index, lines in counts.lines:
            lines_before[source_index] += lines


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
