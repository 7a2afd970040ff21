"""The work folder `<output>.partial`: all that an unfinished run needs to resume, in a folder or on a store.

    plan.json      what shards depend on, and where they are      stdin         standard input, if it is an input
    journal        finished work (convert/workdir/journal.py)     status.json   progress, for other programs
    shards         temporary shards, unless --scratch is given    job-...       the job, for workers of a cluster

A run calls check_output, acquire, open, log.append, publish and close, in this order. Tasks of a job array work side by
side: each calls acquire, open, log.append and close. A run without a task excludes them all. It resumes from the
journals of all tasks, merges and publishes.

Each plan has a random run number. Shards and journal lines of another run number are ignored, so a new plan discards
all former work at once, and the deletion that follows may be interrupted.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from convert.errors import Refused, StorageError, printable
from convert.options import ConvertOptions
from convert.planning.plan_record import FormerPlan, PlanRecord, differences
from convert.shards.shard_store import ShardStore, shards_at
from convert.workdir.journal import Journal, Recorded
from flat_tokens.writer import Destination
from tokenmill.stores import AlreadyThere, Store, StoreError, StoreNotFound, is_url
from tokenmill.stores.durability import write_lasting
from tokenmill.stores.folder_lock import FolderLock
from tokenmill.stores.lease import Lease
from tokenmill.stores.names import remove_tree

PLAN_NAME = "plan.json"
SHARDS_NAME = "shards"
INPUT_NAME = "stdin"
OWN_NAME = re.compile(
    r"(plan|manifest|status(\.\d+)?)\.json(\.tmp)?|lock(\.\d+)?|(tasks/\d+/)?lease|journal(\.\d+)?|stdin|\.put-.*"
    r"|journal/(\d+\.)?\d{8}-[0-9a-f]{16}|job-[0-9a-f]{16}|(shards|dataset|replaced)(\.removed)?/.*"
)
STATUS_SECONDS = 3.0
MAX_DIFFERENCES = 4
_CONCURRENT_CHECKS = 64


class WorkDir(ABC):
    """The work folder of one output.

    output, root: the output and its work folder, for messages. place: the path or URL of the work folder.
    stores: the work folder, and the files of the dataset.

    dataset: the destination of the arrays.
    shards: a folder of this machine for temporary files.
    shard_store: the temporary shards, once the work folder is open.
    log: the journal. recorded: its entries from earlier runs, once the work folder is open.
    is_published: whether the dataset has its final name.
    """

    dataset: Destination
    shards: Path
    shard_store: ShardStore

    def __init__(self, options: ConvertOptions, output: str, place: str, stores: tuple[Store, Store]) -> None:
        self.output, self.place, self.root = output, place, f"{output}.partial"
        self._given, (self._store, self._objects) = options, stores
        self._task = options.task_index
        self._lock = self._lock_of(self._task)
        self.log, self.recorded = Journal(self._store, self._task, self._lock.confirm), Recorded({}, {})
        self.is_published = False
        self._run, self._scratch = "0", ""
        self._is_open = False
        self._next_status = 0.0

    # -- back ends

    @abstractmethod
    def check_output(self) -> None:
        """Raise Refused (exit 6) if the output exists and may not be replaced. Write nothing."""

    @abstractmethod
    def _lock_of(self, task: int | None) -> FolderLock | Lease:
        """Return the lock of a task, or of a run that is not a task."""

    @abstractmethod
    def _tasks(self) -> list[int]:
        """Return the tasks with a lock, held or not."""

    @abstractmethod
    def _is_finished(self) -> bool:
        """Return whether the output is complete, so that nothing in the work folder is needed."""

    @abstractmethod
    def _recover(self) -> bool:
        """Repair the output if a run was killed while it published; return whether its work may be resumed."""

    @abstractmethod
    def _publish(self) -> None:
        """Give the finished dataset its name."""

    @abstractmethod
    def _clear(self, keep: Collection[str]) -> None:
        """Delete everything in the work folder except locks and the names in `keep`."""

    @abstractmethod
    def _release(self) -> None:
        """Unlock the work folder, and remove it if nothing else is in it."""

    # -- one run

    def acquire(self) -> None:
        """Make and lock the work folder. Raise Refused (exit 6) if another run uses it.

        Tasks of a job array may use it at the same time.
        """
        self._lock.acquire()
        try:
            with ThreadPoolExecutor(_CONCURRENT_CHECKS) as checks:
                others = map(self._lock_of, self._tasks() if self._task is None else [None])
                for _ in checks.map(lambda lock: lock.check_free(), others):
                    pass
        except BaseException:
            self._lock.release()
            raise

    def publish(self) -> None:
        """Publish the finished dataset, which must be on disk, and remove the work folder."""
        self._publish()
        self.is_published = True
        self.close()

    def close(self) -> None:
        """Unlock the work folder, and remove its content if it has no finished work."""
        if not self._lock.is_held:
            return
        try:
            with suppress(OSError, StoreError, Refused):  # the error that ended the run may prevent this too
                if self.is_published or not self._is_needed():
                    self._remove()
        finally:
            self._is_open = False
            self._release()

    def _is_needed(self) -> bool:
        """Return whether a later run needs the work folder."""
        return self._task is not None or (self.log.holds_work if self._is_open else self.has_plan)

    def _remove(self) -> None:
        """Delete the work folder. Without a plan the rest counts as not started."""
        if self._is_open and not self.is_published:
            self.clean_dataset(set())
        self._remove_scratch()  # before the plan, which names it
        self._delete(self._store, [PLAN_NAME])
        self._clear(())

    def remove_remains(self) -> None:
        """Remove the work folder of a run that was killed after it published the dataset."""
        with suppress(OSError, StoreError, Refused):  # another run, or a disk that is full or read-only
            if self._task is None and self._is_finished():
                self.acquire()
                self.is_published = self._is_finished()
        self.close()

    def open(self, plan: PlanRecord) -> bool:
        """Start or resume a run with this plan; return whether it resumes finished work.

        Raise Refused (exit 6) if the output has been finished, or if an unfinished run has another plan and is not to
        be restarted.
        """
        is_resumed = self._recover() and not self._given.restart and self._resumes(plan)
        if not is_resumed and not self._start(plan):
            is_resumed = self._resumes(plan)
        check_folder(self._scratch, "--scratch")  # it may have been on another machine
        self.shard_store = self._shards_of(self._run, self._scratch)
        if self.shard_store.store.is_local:
            self.shard_store.store.path.mkdir(parents=True, exist_ok=True)
        self._is_open = True
        return is_resumed

    def clean_dataset(self, keep: set[str]) -> None:
        """Delete all files of the unfinished dataset except `keep`, paths in it."""
        self._delete(self._objects, (entry.key for entry in self._objects.list() if entry.key not in keep))

    @property
    def has_plan(self) -> bool:
        """Whether there is an unfinished run."""
        return holds(self._store, PLAN_NAME)

    @property
    def standard_input(self) -> str:
        """The path or URL of the copy of standard input, which workers of a cluster can read."""
        return f"{self.place}/{INPUT_NAME}"

    def put_job(self, data: bytes) -> str:
        """Store the job for workers that this process does not start; return its path or URL."""
        name = f"job-{hashlib.sha256(data).hexdigest()[:16]}"
        self._store.put(name, data)
        return f"{self.place if is_url(self.place) else Path(self.place).absolute()}/{name}"

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Write status.json, or status.<task>.json, unless it was written in the last few seconds.

        Errors are ignored: progress that cannot be written must not end the run.
        """
        if self._is_open and time.monotonic() >= self._next_status:
            self._next_status = time.monotonic() + STATUS_SECONDS
            name = "status.json" if self._task is None else f"status.{self._task}.json"
            with suppress(OSError, StoreError):
                self._store.put(name, json.dumps(dict(status)).encode() + b"\n")

    def _delete(self, store: Store, keys: Iterable[str]) -> None:
        """Delete objects. Raise Refused (exit 6) if another run has taken over."""
        if own := list(keys):
            self._lock.confirm()
            store.delete(own)

    def _former_plan(self) -> FormerPlan | None:
        """Return the plan of the unfinished run, if there is one; ValueError if it is damaged."""
        return FormerPlan.of(bytes(self._store.read(PLAN_NAME))) if self.has_plan else None

    def _resumes(self, plan: PlanRecord) -> bool:
        """Return whether there is an unfinished run with this plan; Refused if its plan differs."""
        try:
            if (former := self._former_plan()) is None:
                return False
            found = list(islice(differences(former, plan), MAX_DIFFERENCES))
        except ValueError as error:
            raise Refused(f"{self.root}/{PLAN_NAME}: damaged ({error}). Start over with --restart.") from None
        if found:
            again = "start over with --restart" if self._task is None else "delete it to start over"
            started = f"{self.root}: started with {', '.join(found)}"
            raise Refused(printable(f"{started}. Resume with the former inputs and options, or {again}."))
        self._run, self._scratch = former.run, former.scratch
        self.recorded = self.log.begin(former.run)
        return True

    def _start(self, plan: PlanRecord) -> bool:
        """Write the plan of a new run. Return False if another task of the job array has written one."""
        is_task, scratch = self._task is not None, self._given.scratch
        if not is_task:
            self._remove_scratch()  # before the plan that names it is replaced
        self._scratch = scratch if scratch is not None and is_url(scratch) else ""
        if scratch is not None and not is_url(scratch):
            self._scratch = str(Path(scratch).absolute())
        self._run = os.urandom(8).hex()
        lines = plan.lines(self._run, self._scratch)
        self._lock.confirm()
        try:
            if self._store.is_local and not is_task:
                write_lasting(Path(self.place, PLAN_NAME), lines)
            else:
                self._store.put(PLAN_NAME, lines, if_absent=is_task)
        except AlreadyThere:
            return False
        if not is_task:
            self._clear({PLAN_NAME, INPUT_NAME})
        self.recorded = self.log.begin(self._run)
        return True

    def _shards_of(self, run: str, scratch: str) -> ShardStore:
        """Return the shards of a run. The name is random, because outputs on two machines may have equal paths."""
        place = f"{self.place}/{SHARDS_NAME}/{run}"
        if scratch:
            place = f"{scratch.rstrip('/')}/{self.output.rpartition('/')[2]}-{run}.shards"
        return shards_at(place, self._given.storage_options)

    def _remove_scratch(self) -> None:
        """Remove the shards of the unfinished run that are outside the work folder."""
        with suppress(ValueError):
            if (former := self._former_plan()) is not None and former.scratch:
                shards = self._shards_of(former.run, former.scratch).store
                if shards.is_local:
                    remove_folder(shards.path)
                else:
                    self._delete(shards, (entry.key for entry in shards.list()))


def check_folder(folder: str | Path | None, flag: str) -> None:
    """Raise StorageError if the path of an option is not a folder."""
    if folder and not is_url(f"{folder}") and not Path(folder).is_dir():
        raise StorageError(f"{folder}: not a folder. Create it, or choose another {flag}.")


def remove_folder(folder: Path) -> None:
    """Remove a folder. Rename it first, because a task that counts as lost may still write there."""
    aside = folder.with_name(f"{folder.name}.removed")
    remove_tree(aside)
    with suppress(FileNotFoundError):
        folder.rename(aside)
    remove_tree(aside)


def holds(store: Store, key: str) -> bool:
    """Return whether the store has the object."""
    with suppress(StoreNotFound):
        return store.head(key).key == key
    return False
