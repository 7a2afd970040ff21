"""The work folder `<output>.partial`: all that an unfinished run needs to resume, in a folder or on a store.

    plan.json      what shards depend on, and where they are      stdin         standard input, if it is an input
    journal        finished work (convert/workdir/journal.py)     status.json   progress, for other programs
    shards         temporary shards, unless --scratch is given    job-...       the job, for workers of a cluster

A run calls check_output, acquire, open, log.append, publish and close, in this order. Tasks of a job array work side by
side: each calls acquire(task=(index, count)), open, log.append and close. A run without a task excludes them all. It
resumes from the journals of all tasks, merges and publishes.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from convert.errors import Refused, StorageError, printable
from convert.options import ConvertOptions
from convert.planning.plan_record import FormerPlan, PlanRecord, differences
from convert.shards.shard_store import ShardStore, shards_at
from convert.workdir.journal import Journal
from flat_tokens.writer import Destination
from tokenmill.stores import AlreadyThere, Store, StoreError, StoreNotFound, is_url
from tokenmill.stores.durability import write_lasting
from tokenmill.stores.names import remove_tree

PLAN_NAME = "plan.json"
SHARDS_NAME = "shards"
INPUT_NAME = "stdin"
REMOVED = ".removed"  # ends the name of a folder while it is removed
STATUS_SECONDS = 3.0
MAX_DIFFERENCES = 4
_SHARDS_ENDING = ".shards"
Task = tuple[int, int]  # index and count of a task of a job array


class WorkDir(ABC):
    """The work folder of one output.

    output, root: the output and its work folder, for messages.
    place: the path or URL of the work folder.
    dataset: the destination of the arrays.
    shards: a folder of this machine for temporary files.
    scratch: the path or URL of the shards if it is not in the work folder, else "".
    log: the journal.
    task: the task of a job array that this run is, or None.
    is_published: whether the dataset has its final name.

    store: of the work folder. objects: the store with the files of the dataset.
    """

    dataset: Destination
    shards: Path

    def __init__(
        self, options: ConvertOptions, output: str, place: str, log: Journal, store: Store, objects: Store
    ) -> None:
        self.output, self.place, self.log = output, place, log
        self.root = f"{output}.partial"
        self.task: Task | None = None
        self.scratch = ""
        self.is_published = False
        self._given, self._plan, self._store, self._objects = options, PlanRecord({}), store, objects
        self._run = "0"  # a random number that seeds the checksums of the journal
        self._is_open = False
        self._next_status = 0.0

    # -- back ends

    @abstractmethod
    def check_output(self) -> None:
        """Raise Refused (exit 6) if the output exists and may not be replaced. Write nothing."""

    @abstractmethod
    def acquire(self, task: Task | None = None) -> None:
        """Make and lock the work folder. Raise Refused (exit 6) if another run uses it.

        task: share it with the other tasks of a job array.
        """

    @abstractmethod
    def publish(self) -> None:
        """Publish the finished dataset, which must be on disk, and remove the work folder."""

    @abstractmethod
    def close(self) -> None:
        """Unlock the work folder, and remove it if it has no finished work."""

    @abstractmethod
    def remove_remains(self) -> None:
        """Remove the work folder of a run that was killed after it published the dataset."""

    @abstractmethod
    def _recover(self) -> bool:
        """Repair the output if a run was killed while it published; return whether its work may be resumed."""

    @abstractmethod
    def _clear(self) -> None:
        """Delete everything except locks and standard input."""

    # -- one run

    def open(self, plan: PlanRecord) -> bool:
        """Start or resume a run with this plan; return whether it resumes finished work.

        Raise Refused (exit 6) if the output has been finished, or if an unfinished run with another plan has finished
        work and is not to be restarted.
        """
        self.acquire()
        self._plan = plan
        is_resumed = self._recover() and not self._given.restart and self._resumes(plan)
        if not is_resumed and not self._start():
            is_resumed = self._resumes(plan)
        self._open_shards()
        self._is_open = True
        return is_resumed

    def clean_dataset(self, keep: set[str]) -> None:
        """Delete all files of the unfinished dataset except `keep`, paths in it."""
        self._delete(self._objects, (entry.key for entry in self._objects.list() if entry.key not in keep))

    @property
    def has_plan(self) -> bool:
        """Whether there is an unfinished run."""
        return holds(self._store, PLAN_NAME)

    def _former_plan(self) -> FormerPlan | None:
        """Return the plan of the unfinished run, if there is one; ValueError if it is damaged."""
        with suppress(StoreNotFound):
            return FormerPlan.of(bytes(self._store.read(PLAN_NAME)))
        return None

    def _write_plan(self, if_absent: bool = False) -> None:
        lines = self._plan.lines(self._run, self.scratch)
        self.log.confirm()
        if self._store.is_local and not if_absent:
            write_lasting(Path(self.place, PLAN_NAME), lines)
        else:
            self._store.put(PLAN_NAME, lines, if_absent)

    @property
    def holds_work(self) -> bool:
        """Whether a later run could resume something."""
        return self.log.holds_work

    @property
    def standard_input(self) -> str:
        """The path or URL of the copy of standard input, which workers of a cluster can read."""
        return f"{self.place}/{INPUT_NAME}"

    @property
    def shard_store(self) -> ShardStore:
        """The temporary shards of an open work folder. Late workers of a discarded run use another place."""
        place = self.scratch or f"{self.place}/{SHARDS_NAME}/{self._run}"
        return shards_at(place, self._given.storage_options)

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
            name = "status.json" if self.task is None else f"status.{self.task[0]}.json"
            with suppress(OSError, StoreError):
                self._store.put(name, json.dumps(dict(status)).encode() + b"\n")

    def _delete(self, store: Store, keys: Iterable[str]) -> None:
        """Delete objects. Raise Refused (exit 6) if another run has taken over."""
        if own := list(keys):
            self.log.confirm()
            store.delete(own)

    def _resumes(self, plan: PlanRecord) -> bool:
        """Return whether there is an unfinished run with this plan; Refused if its plan differs."""
        try:
            former = self._former_plan()
            if former is None:
                return False
            self.log.begin(former.run)
            found = list(islice(differences(former, plan), MAX_DIFFERENCES))
        except ValueError as error:
            raise Refused(f"{self.root}/{PLAN_NAME}: damaged ({error}). Start over with --restart.") from None
        is_needed = self.task is not None or self.log.holds_work or not former.is_of_this_version
        if found and is_needed:
            raise Refused(
                printable(
                    f"{self.root}: started with {', '.join(found)}. Resume with the former inputs and options, or "
                    f"{'delete it to start over' if self.task else 'start over with --restart'}."
                )
            )
        self._run, self.scratch = former.run, former.scratch
        return not found

    def _start(self) -> bool:
        """Write the plan of a new run. Return False if another task of the job array has written one."""
        if self.task is None:
            self._clear()
        self._run, self.scratch = os.urandom(8).hex(), self._new_scratch()
        try:
            self._write_plan(if_absent=self.task is not None)
        except AlreadyThere:
            return False
        self.log.begin(self._run, is_new=True)
        return True

    def _new_scratch(self) -> str:
        """Return a new location for shards. Its name is random: outputs on two machines may have equal paths."""
        scratch = self._given.scratch
        if scratch is None:
            return ""
        name = f"{self.output.rpartition('/')[2]}-{os.urandom(8).hex()}{_SHARDS_ENDING}"
        return f"{scratch.rstrip('/')}/{name}" if is_url(scratch) else f"{Path(scratch, name).absolute()}"

    def _open_shards(self) -> None:
        """Make the folder of the shards. A resumed run keeps it, unless it was on the disk of another machine."""
        if self.scratch and not is_url(self.scratch) and not Path(self.scratch).parent.is_dir():
            if self.task is not None:
                raise missing_folder(Path(self.scratch).parent, "--scratch")
            self.scratch = self._new_scratch()
            self._write_plan()
        shards = self.shard_store.store
        if shards.is_local:
            shards.path.mkdir(parents=True, exist_ok=True)

    def _remove_scratch(self) -> None:
        """Remove the shards of the unfinished run that are outside the work folder."""
        with suppress(ValueError):
            former = self._former_plan()
            if former is not None and former.scratch.endswith(_SHARDS_ENDING):
                shards = shards_at(former.scratch, self._given.storage_options).store
                if shards.is_local:
                    remove_folder(shards.path)
                else:
                    self._delete(shards, (entry.key for entry in shards.list()))


def existing_dataset(output: object) -> Refused:
    """Return the error for a finished dataset."""
    return Refused(f"{output}: already exists. Pass --overwrite to replace it, or choose another --output.")


def not_replaceable(output: object, reason: object) -> Refused:
    """Return the error for an output that --overwrite does not replace."""
    return Refused(f"{output}: cannot be replaced ({reason}). Choose another --output.")


def missing_folder(folder: object, flag: str) -> StorageError:
    """Return the error for a folder that an option needs and that does not exist."""
    return StorageError(f"{folder}: no such folder. Create it, or choose another {flag}.")


def check_scratch(folder: str | None) -> None:
    """Raise StorageError if --scratch is a path and not a folder."""
    if folder is not None and not is_url(folder) and not Path(folder).is_dir():
        if os.path.lexists(folder):
            raise StorageError(f"{folder}: not a folder. Choose another --scratch.")
        raise missing_folder(folder, "--scratch")


def remove_folder(folder: Path) -> None:
    """Remove a folder. Rename it first, because a task that counts as lost may still write there."""
    aside = folder.with_name(folder.name + REMOVED)
    remove_tree(aside)
    with suppress(FileNotFoundError):
        folder.rename(aside)
    remove_tree(aside)


def holds(store: Store, key: str) -> bool:
    """Return whether the store has the object."""
    try:
        store.head(key)
    except StoreNotFound:
        return False
    return True
