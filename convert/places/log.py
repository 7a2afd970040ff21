"""What is already done: a line for each finished shard and each written run, put there by the driver alone after the
data it speaks of, a batch at a time.

    1f0a...92 {"id": [3, 0], ...}                  XXH64 of the JSON behind it, which tells a torn line
    77b1...0c {"run": ["train", "tokens", 0], ...}

Of lines that speak of the same the last counts. A record is trusted only with its data: size and digest are checked
before anything is taken over from an earlier run, so a torn write (power loss, full disk) is simply done again. Shards
are not synced to disk for that reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from convert.errors import naming
from convert.planning.plan import ShardId
from convert.shards.shard import ShardRecord
from convert.shards.write_units import MergeTask
from convert.shards.written_files import WrittenFiles
from flat_tokens.storage.files import write_all
from tokenmill.inputs import _core

_NAME = "journal"
_DIGITS = 16
RunKey = tuple[str, str, int]


def merge_entry(task: MergeTask, files: Iterable[WrittenFiles]) -> dict[str, Any]:
    """Return the entry of a finished merge task."""
    return {"run": task.key, "items": task.item_count, "files": [own.as_json() for own in files]}


def threshold_entry(documents: int, threshold: int) -> dict[str, Any]:
    """The hash below which the documents of --validation-docs lie: the corpus was read for it."""
    return {"documents": documents, "threshold": threshold}


class Log:
    """The log in `folder`, beside the shards."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _NAME

    def append(self, entries: Iterable[dict[str, Any]]) -> bytearray:
        """Note these, in one write, whatever their number; the lines."""
        lines = bytearray()
        for entry in entries:
            text = json.dumps(entry).encode("ascii")
            # The line break in front ends a line that was torn.
            lines += b"\n%0*x %b" % (_DIGITS, _core.xxh64(text, 0), text)
        if lines:
            with naming(self.path):
                write_all(self.path, lines, os.O_APPEND)
        return lines

    def flush(self) -> None:
        """All that was noted is where an interrupted run is taken over from."""

    def confirm(self) -> str:
        """Refused if another run has taken over, which the lock of a folder does not let it; see StoreLog."""
        return ""

    @property
    def holds_work(self) -> bool:
        """Whether anything was finished that it would cost to do again: not so shards of text without a record."""
        return any(entry.get("intake", {}).get("records", 1) for _, entry in _entries(self.path))

    def recorded(self) -> Recorded:
        """All that can be read."""
        return Recorded(self.path)


class Recorded:
    """What the log of an earlier run says; what it speaks of may be gone or damaged by now.

    Of a line its place is kept: a log of many shards takes more memory than the shards it speaks of need. shards: those
    that are recorded, in the order in which they were finished.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.shards: dict[ShardId, int] = {}
        self._runs: dict[RunKey, int] = {}
        self._thresholds: dict[int, int] = {}
        for place, entry in _entries(path):
            if "run" in entry:
                split, array, first = entry["run"]
                self._runs[split, array, first] = place
            elif "threshold" in entry:
                self._thresholds[entry["documents"]] = entry["threshold"]
            else:
                shard = ShardId(*entry["id"])
                self.shards.pop(shard, None)
                self.shards[shard] = place

    def shard(self, shard: ShardId) -> ShardRecord | None:
        """The record of a shard that was finished once; None: it was not."""
        place = self.shards.get(shard)
        return None if place is None else ShardRecord.from_json(self._entry(place))

    def files(self, task: MergeTask) -> list[WrittenFiles] | None:
        """Return the files that a merge task has written, or None if it was not finished."""
        place = self._runs.get(task.key)
        entry = None if place is None else self._entry(place)
        if entry is None or entry["items"] != task.item_count:
            return None
        return [WrittenFiles.from_json(files) for files in entry["files"]]

    def threshold(self, documents: int) -> int | None:
        """What was noted for so many documents; None: nothing."""
        return self._thresholds.get(documents)

    def _entry(self, place: int) -> dict[str, Any]:
        with self._path.open("rb") as file:
            file.seek(place)
            entry: dict[str, Any] = json.loads(file.readline()[_DIGITS + 1 :])
        return entry


def _entries(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(where its line begins, entry) of the lines that are whole; none where there is no file."""
    try:
        file = path.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        return
    place = 0
    with file:
        for line in file:
            digits, text = line[:_DIGITS], line[_DIGITS + 1 :].rstrip(b"\n")
            if digits == b"%0*x" % (_DIGITS, _core.xxh64(text, 0)):
                yield place, json.loads(text)
            place += len(line)
