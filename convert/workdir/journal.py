"""The journal: a line for each finished shard and each written span of an array, appended by the driver alone.

    1f0a...92 {"id": [3, 0], ...}                        XXH64 of the JSON text, seeded with the number of the run
    77b1...0c {"task": "merge-train-tokens-0", ...}

The checksum detects lines that a power failure or a full disk tore, and lines of a discarded run; both are ignored. Of
several lines about the same shard or span the last one counts. The driver appends a line when the files exist, without
a sync. A later run compares the files with the line, and if the machine has started again since, all their bytes.

In a folder the journal is a file. On a store it is a series of numbered objects, each with some lines. Each task of
a job array appends to a separate journal, and a run reads the journals of all tasks.

    journal                   journal/00000001         of a run
    journal.3                 journal/3.00000001       of task 3 of a job array
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from convert.errors import Refused, naming
from convert.planning.plan import ShardId
from convert.shards.merge import MergeTask, WrittenFiles
from convert.shards.shard import ShardRecord
from flat_tokens.storage.files import write_all
from tokenmill.inputs import _core
from tokenmill.stores import AlreadyThere, Entry, Store, StoreNotFound
from tokenmill.stores.folder_lock import boot_id
from tokenmill.stores.store import put_own

PUT_SECONDS = 1.0
FOLDER = "journal"
_DIGITS = 16
_CONCURRENT_READS = 16
_FILE_NAME = re.compile(r"journal(?:\.(\d+))?")
_OBJECT_NAME = re.compile(r"journal/(?:(\d+)\.)?(\d{8})")


def merge_entry(task: MergeTask, files: Iterable[WrittenFiles]) -> dict[str, Any]:
    """Return the entry of a finished merge task."""
    return {"task": task.name, "items": task.item_count, "files": [*files], "boot": boot_id()}


def threshold_entry(documents: int, threshold: int) -> dict[str, Any]:
    """Return the entry for the hash below which the documents of --validation-docs are."""
    return {"task": f"threshold-{documents}", "threshold": threshold}


class Recorded(NamedTuple):
    """The entries of the journals of an unfinished run. The data that they describe may be missing or damaged.

    shards: in the order in which they were finished. tasks: the entries of other finished tasks, by name.
    """

    shards: dict[ShardId, ShardRecord]
    tasks: dict[str, dict[str, Any]]

    def files(self, task: MergeTask) -> list[WrittenFiles] | None:
        """Return the files that a merge task has written, or None if it was not finished."""
        entry = self.tasks.get(task.name, {})
        if entry.get("items") != task.item_count:
            return None
        return [WrittenFiles(*files) for files in entry["files"]]

    def is_in_memory(self, task: MergeTask) -> bool:
        """Whether the machine has not started again since a task wrote its files, so the system still has all bytes."""
        boot = boot_id()
        return boot is not None and self.tasks.get(task.name, {}).get("boot") == boot

    def threshold(self, documents: int) -> int | None:
        """Return the threshold that was recorded for this number of documents, or None."""
        threshold: int | None = self.tasks.get(f"threshold-{documents}", {}).get("threshold")
        return threshold


class Journal:
    """Lines that are appended to one journal and read from all, in a folder.

    task: the index of this task of a job array, or None.
    holds_work: whether any recorded work would have to be repeated without the journals.
    """

    task: int | None = None
    holds_work = False
    _seed = 0

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, run: str, is_new: bool = False) -> None:
        """Read and write lines of one run only.

        run: its number, in hexadecimal. is_new: whether it has no lines yet.
        """
        self._seed = int(run, 16)
        self.holds_work = not is_new and any(map(_is_work, self._entries()))

    def recorded(self) -> Recorded:
        """Read all journals, first the ones of tasks."""
        recorded = Recorded({}, {})
        for entry in self._entries():
            if "task" in entry:
                recorded.tasks[entry["task"]] = entry
            else:
                record = ShardRecord.from_json(entry)
                recorded.shards.pop(record.id, None)
                recorded.shards[record.id] = record
        return recorded

    def append(self, entries: Iterable[dict[str, Any]]) -> None:
        """Append entries in one write."""
        lines = bytearray()
        for entry in entries:
            text = json.dumps(entry).encode("ascii")
            # The leading line break ends a torn line.
            lines += b"\n%0*x %b" % (_DIGITS, _core.xxh64(text, self._seed), text)
            self.holds_work = self.holds_work or _is_work(entry)
        if lines:
            self._write(lines)

    def flush(self) -> None:
        """Make all appended lines visible to the next run."""

    def confirm(self) -> str:
        """Raise Refused if another run has taken over; return the key of an object that proves it, "" in a folder."""
        return ""

    def _entries(self) -> Iterator[dict[str, Any]]:
        for line in self._lines():
            digits, text = line[:_DIGITS], line[_DIGITS + 1 :].rstrip(b"\n")
            if digits == b"%0*x" % (_DIGITS, _core.xxh64(text, self._seed)):
                yield json.loads(text)

    def _write(self, lines: bytearray) -> None:
        path = self._folder / (FOLDER if self.task is None else f"{FOLDER}.{self.task}")
        with naming(path):
            write_all(path, lines, os.O_APPEND)

    def _lines(self) -> Iterator[bytes]:
        paths = [path for path in self._folder.glob(f"{FOLDER}*") if _FILE_NAME.fullmatch(path.name)]
        for path in sorted(paths, key=lambda path: (path.name == FOLDER, path.name)):
            with path.open("rb") as file:
                yield from file


class StoreJournal(Journal):
    """A journal on a store, which has no locks. output: for errors.

    A run first claims the next number with an object that holds a random name. No former run can append afterwards:
    either its next number is taken, or its own claim is gone, and everything it wrote with it. A run looks for its
    claim before and after each put, because the numbers of a finished run are free again. A run calls `confirm` before
    it deletes or publishes anything.

    Lines are put about once per second, as one object.
    """

    def __init__(self, store: Store, output: str) -> None:
        self._store, self._output, self._holder = store, output, os.urandom(8).hex()
        self._number = 1  # of the next object
        self._claim: Entry | None = None
        self._waiting = bytearray()
        self._next_put = 0.0

    @property
    def claimed(self) -> str:
        """The key of this run's claim, or "" without one."""
        return "" if self._claim is None else self._claim.key

    @property
    def exists(self) -> bool:
        """Whether any run has claimed a journal here."""
        return next(self._objects(), None) is not None

    def claim(self) -> None:
        """Claim the journal. Raise Refused (exit 6) if another run does so at the same time."""
        own = [number for task, number, _ in self._objects() if task == self.task]
        self._number = max(own, default=0) + 1
        self._claim = self._put_next(b"")

    def flush(self) -> None:
        if self._waiting:
            self.confirm()
            self._next_put = time.monotonic() + PUT_SECONDS

    def confirm(self) -> str:
        self._check_claim()
        entry = self._put_next(bytes(self._waiting))
        try:
            self._check_claim()
        except Refused:
            # Another run finished between the first look and the put, so this number was free again.
            self._store.delete([entry.key])
            raise
        self._waiting.clear()
        return entry.key

    def _write(self, lines: bytearray) -> None:
        self._waiting += lines
        if time.monotonic() >= self._next_put:
            self.flush()

    def _lines(self) -> Iterator[bytes]:
        keys = [key for _, _, key in sorted(self._objects(), key=lambda found: (found[0] is None, found[2]))]
        with ThreadPoolExecutor(_CONCURRENT_READS) as readers:
            for start in range(0, len(keys), _CONCURRENT_READS):
                for data in readers.map(self._store.read, keys[start : start + _CONCURRENT_READS]):
                    yield from bytes(data).split(b"\n")

    def _objects(self) -> Iterator[tuple[int | None, int, str]]:
        """Yield (task, number, key) of all journals."""
        for entry in self._store.list(FOLDER):
            if found := _OBJECT_NAME.fullmatch(entry.key):
                yield None if found[1] is None else int(found[1]), int(found[2]), entry.key

    def _put_next(self, lines: bytes) -> Entry:
        prefix = "" if self.task is None else f"{self.task}."
        # The first line, which has no checksum, makes the object unlike any of another run.
        data = b"\nby %b" % self._holder.encode() + lines
        try:
            entry = put_own(self._store, f"{FOLDER}/{prefix}{self._number:08}", data)
        except AlreadyThere:
            raise self._taken_over() from None
        self._number += 1
        return entry

    def _check_claim(self) -> None:
        if self._claim is None:
            return
        try:
            if self._store.head(self._claim.key) == self._claim:
                return
        except StoreNotFound:
            pass
        raise self._taken_over()

    def _taken_over(self) -> Refused:
        return Refused(f"{self._output}: another run took over and continues from the work finished here")


def _is_work(entry: dict[str, Any]) -> bool:
    """Return whether an entry stands for work, unlike a shard without documents."""
    return bool(entry.get("intake", {}).get("records", 1))
