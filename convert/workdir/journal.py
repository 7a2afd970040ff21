"""The journal: a line for each finished shard and each written span of an array, appended by the driver alone.

    1f0a...92 {"id": [3, 0], ...}                        XXH64 of the JSON text, seeded with the number of the run
    77b1...0c {"task": "merge-train-tokens-0", ...}

The checksum detects lines that a power failure or a full disk tore, and lines of a discarded run; both are ignored. Of
several lines about the same shard or span the last one counts. The driver appends a line when the files exist, without
a sync. A later run compares the files with the line, and if the machine has started again since, all their bytes.

Each task of a job array appends to a separate journal, and a run reads the journals of all tasks. In a folder a journal
is a file. On a store it is a series of objects, put about once per second. Each driver has names of its own, so late
objects of a driver that was taken over replace nothing, and what they say about files is true.

    journal                   journal/00000001-5be1...   of a run
    journal.3                 journal/3.00000001-77a0... of task 3 of a job array
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from convert.errors import Refused, naming
from convert.planning.plan import ShardId
from convert.shards.shard import ShardRecord
from tokenmill.inputs import _core
from tokenmill.stores import Store

PUT_SECONDS = 1.0
_DIGITS = 16
_CONCURRENT_READS = 16
_FILE_NAME = re.compile(r"journal(\.\d+)?")
_OBJECT_NAME = re.compile(r"journal/(\d+\.)?(\d{8})-[0-9a-f]{16}")


class Recorded(NamedTuple):
    """The entries of the journals of an unfinished run. The data that they describe may be missing or damaged.

    shards: in the order in which they were finished. tasks: the entries of other finished tasks, by name.
    """

    shards: dict[ShardId, ShardRecord]
    tasks: dict[str, dict[str, Any]]


class Journal:
    """Lines that are appended to one journal and read from all.

    store: of the work folder. task: the index of this task of a job array, or None.
    confirm: raises Refused if another run has taken over.

    holds_work: whether any recorded work would have to be repeated without the journals.
    """

    def __init__(self, store: Store, task: int | None, confirm: Callable[[], None]) -> None:
        self._store, self._task, self._confirm = store, task, confirm
        self.holds_work = False
        self._seed = self._puts = 0
        self._holder = os.urandom(8).hex()
        self._waiting = bytearray()
        self._next_put = 0.0

    def begin(self, run: str) -> Recorded:
        """Read and write lines of one run only. Return the entries of earlier runs. run: its number, in hexadecimal."""
        self._seed = int(run, 16)
        recorded = Recorded({}, {})
        for line in self._lines():
            digits, text = line[:_DIGITS], line[_DIGITS + 1 :].rstrip(b"\n")
            if digits != self._checksum(text):
                continue
            entry = json.loads(text)
            self.holds_work = self.holds_work or _is_work(entry)
            if "task" in entry:
                recorded.tasks[entry["task"]] = entry
            else:
                record = ShardRecord.from_json(entry)
                recorded.shards.pop(record.id, None)
                recorded.shards[record.id] = record
        return recorded

    def append(self, entries: Collection[dict[str, Any]]) -> None:
        """Append entries in one write."""
        if not entries:
            return
        texts = [json.dumps(entry).encode("ascii") for entry in entries]
        # The leading line break ends a torn line.
        lines = b"".join(b"\n%b %b" % (self._checksum(text), text) for text in texts)
        self.holds_work = self.holds_work or any(map(_is_work, entries))
        if self._store.is_local:
            path = self._store.path / ("journal" if self._task is None else f"journal.{self._task}")
            with naming(path), path.open("ab") as file:
                file.write(lines)
            return
        self._waiting += lines
        if time.monotonic() >= self._next_put:
            self.flush()

    def flush(self) -> None:
        """Make all appended lines visible to the next run. Raise Refused if another run has taken over."""
        if not self._waiting:
            return
        prefix = "" if self._task is None else f"{self._task}."
        key = f"journal/{prefix}{self._puts + 1:08}-{self._holder}"
        self._store.put(key, bytes(self._waiting))
        try:
            self._confirm()
        except Refused:
            self._store.delete([key])  # the other run may have removed the work folder
            raise
        self._waiting.clear()
        self._puts += 1
        self._next_put = time.monotonic() + PUT_SECONDS

    def _checksum(self, text: bytes) -> bytes:
        return b"%0*x" % (_DIGITS, _core.xxh64(text, self._seed))

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines of all journals, first the journals of tasks."""
        if self._store.is_local:
            paths = [path for path in self._store.path.glob("journal*") if _FILE_NAME.fullmatch(path.name)]
            for path in sorted(paths, key=lambda path: (path.name == "journal", path.name)):
                with path.open("rb") as file:
                    yield from file
            return
        found = [
            match for entry in self._store.list("journal") if (match := _OBJECT_NAME.fullmatch(entry.key))
        ]
        keys = [match[0] for match in sorted(found, key=lambda match: (match[1] is None, match[2]))]
        self._puts = len(keys)
        with ThreadPoolExecutor(_CONCURRENT_READS) as readers:
            for start in range(0, len(keys), _CONCURRENT_READS):
                for data in readers.map(self._store.read, keys[start : start + _CONCURRENT_READS]):
                    yield from bytes(data).split(b"\n")


def _is_work(entry: dict[str, Any]) -> bool:
    """Return whether an entry stands for work, unlike a shard without documents."""
    return bool(entry.get("intake", {}).get("records", 1))
