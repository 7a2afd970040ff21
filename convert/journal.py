"""What is already done: a line in one file for each finished shard and each merged run, put there by the parent alone
after the data it speaks of.

    1f0a...92 {"id": [3, 0], ...}                  XXH64 of the JSON behind it, which tells a torn line
    77b1...0c {"run": ["train", "tokens", 0], ...}

Of lines that speak of the same the last counts. A record is trusted only with its data: size and digest are checked
before anything is taken over from an earlier run, so a torn write (power loss, full disk) is simply done again. Shards
are not synced to disk for that reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from convert.errors import naming
from convert.plan import ShardId
from convert.shards.merge import WrittenFile
from convert.shards.runs import Run
from convert.shards.shard import ShardRecord
from corpus import _core
from flat_tokens.storage.files import write_all
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.token_facts import TokenFacts

_NAME = "journal"
_DIGITS = 16


class Recorded:
    """What the journal of an earlier run says; it may be gone or damaged by now.

    shards: in the order in which they were finished.
    """

    def __init__(self, entries: Iterator[dict[str, Any]]) -> None:
        self.shards: dict[ShardId, ShardRecord] = {}
        self._runs: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._thresholds: dict[int, int] = {}
        for entry in entries:
            if "run" in entry:
                self._runs[tuple(entry["run"])] = entry
            elif "threshold" in entry:
                self._thresholds[entry["documents"]] = entry["threshold"]
            else:
                record = ShardRecord.from_json(entry)
                self.shards.pop(record.id, None)
                self.shards[record.id] = record

    def of_chunk(self, chunk_index: int) -> Iterator[ShardRecord]:
        """The shards of a text chunk from its first on, as far as none is missing, up to its last."""
        for number in count():
            record = self.shards.get(ShardId(chunk_index, number))
            if record is None:
                return
            yield record
            if record.is_last:
                return

    def run(self, run: Run) -> list[WrittenFile] | None:
        """The files of a run that was written once; None: it was not."""
        entry = self._runs.get(_key(run))
        if entry is None or entry["items"] != run.item_count:
            return None
        return [
            WrittenFile(FileRecord(*record), None if facts is None else TokenFacts(*facts))
            for *record, facts in entry["files"]
        ]

    def threshold(self, count: int) -> int | None:
        """What `keep_threshold` noted for so many documents; None: nothing."""
        return self._thresholds.get(count)


class Journal:
    """The records of what is finished, in `folder` beside the shards."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _NAME

    @property
    def holds_work(self) -> bool:
        """Whether anything was finished that it would cost to do again: not so shards of text without a record."""
        return any(entry.get("intake", {}).get("records", 1) for entry in self._entries())

    def recorded(self) -> Recorded:
        """All that can be read."""
        return Recorded(self._entries())

    def finish(self, record: ShardRecord) -> None:
        """Note that the shard of `record` is done."""
        self._append(record.as_json())

    def finish_run(self, run: Run, files: Sequence[WrittenFile]) -> None:
        """Note that a run is written."""
        listed = [(*file.record, file.facts) for file in files]
        self._append({"run": _key(run), "items": run.item_count, "files": listed})

    def keep_threshold(self, count: int, threshold: int) -> None:
        """Note the hash below which the `count` documents of --validation-docs lie: the corpus was read for it."""
        self._append({"documents": count, "threshold": threshold})

    def _append(self, entry: dict[str, Any]) -> None:
        text = json.dumps(entry).encode("ascii")
        # The line break in front ends a line that was torn.
        line = b"\n%0*x %b" % (_DIGITS, _core.xxh64(text, 0), text)
        with naming(self.path):
            write_all(self.path, line, os.O_APPEND)

    def _entries(self) -> Iterator[dict[str, Any]]:
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            for line in file:
                digits, text = line[:_DIGITS], line[_DIGITS + 1 :].rstrip(b"\n")
                if digits == b"%0*x" % (_DIGITS, _core.xxh64(text, 0)):
                    yield json.loads(text)


def _key(run: Run) -> tuple[str, str, int]:
    return run.split, run.array, run.first
