"""`<output>.partial`: where everything happens until the dataset is whole, verified and gets its final name.

    plan.json   what the shards were made from       shards/     finished shards and the journal of what is done
    lock        held while a run is at work          dataset/    the dataset as it is written
    stacks.txt  where workers hung that were ended   replaced/   the former output, with --overwrite, for a moment
    stdin       what "-" among the inputs gave                crashed-text  which the encoder crashed at
    job         for workers that this process does not start   scratch   where shards lie instead, with --scratch

A folder is ours if it has our plan.json; only files of these names are ever deleted. An output is replaced only if it
is a dataset of ours without foreign files. Two renames publish; the only moment without an output under the final
name is between them, and only if there was one before.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from convert.errors import BrokenInvariant, Refused, UsageError, naming, printable
from convert.places.log import Log
from convert.places.scratch import (
    NOTE_NAME,
    REMOVED,
    check_scratch,
    missing_folder,
    note_scratch,
    noted_scratch,
    remove_folder,
)
from convert.planning.plan_record import PlanRecord, RecordFile, changed_source, compare, told
from convert.shards.shard_store import ShardStore, shards_at
from flat_tokens.storage.existing_output import is_empty_folder, is_part, not_ours
from flat_tokens.storage.manifest import MANIFEST_NAME
from tokenmill.stores.durability import sync, sync_folders, write_lasting
from tokenmill.stores.folder_lock import FolderLock
from tokenmill.stores.names import STILL_USED, names_in, rename

PLAN_NAME = "plan.json"
LOCK_NAME = "lock"
SHARDS_NAME = "shards"
DATASET_NAME = "dataset"
REPLACED_NAME = "replaced"
STACKS_NAME = "stacks.txt"
INPUT_NAME = "stdin"
CRASH_NAME = "crashed-text"
JOB_NAME = "job"
SHOWN_DIFFERENCES = 4
_OWN_NAMES = {PLAN_NAME, PLAN_NAME + ".tmp", LOCK_NAME, SHARDS_NAME, DATASET_NAME}
_OWN_NAMES |= {REPLACED_NAME, STACKS_NAME, INPUT_NAME, CRASH_NAME, JOB_NAME, NOTE_NAME, NOTE_NAME + ".tmp"}
_OWN_NAMES |= {name + REMOVED for name in (SHARDS_NAME, DATASET_NAME, REPLACED_NAME)}


def existing_dataset(output: object) -> Refused:
    return Refused(f"{output}: already exists. Pass --overwrite to replace it, or choose another --output.")


def existing_part(output: object) -> Refused:
    return Refused(
        f"{output}: another run wrote this part, and parts are never replaced. Run the command again."
    )


def not_replaceable(output: object, reason: object) -> Refused:
    return Refused(f"{output}: cannot be replaced ({reason}). Choose another --output.")


def _foreign(path: Path) -> Refused:
    return Refused(f"{path}: not created by tokenmill. Move it away.")


class Workspace:
    """The partial folder of one output; `open` takes it, `publish` ends it.

    shards: the journal, and files before they have their names. scratch: shards, in the same folder or in one of the
    given folder; of a run that goes on where they are, known once it is open. plan, stacks, standard_input,
    crashed_text: where files lie, if they are there (see above). log: what is done. maybe_modified: of the sources of
    an earlier run that goes on, by number, those whose bytes may be others by now.
    """

    def __init__(
        self,
        output: str | Path,
        overwrite: bool = False,
        scratch: str | None = None,
        restart: bool = False,
    ) -> None:
        # "out.zarr/" and "out.zarr" are one place.
        self.output = Path(output)
        if self.output.name in ("", ".."):  # ".", "/", "a/.."
            raise UsageError(
                f"{self.output}: cannot be the name of a dataset. Pass an --output such as owt.zarr."
            )
        self.root = self.output.with_name(self.output.name + ".partial")
        self.shards = self.scratch = self.root / SHARDS_NAME
        self._scratch_folder = scratch
        self.dataset = self.root / DATASET_NAME
        self.plan, self.stacks = self.root / PLAN_NAME, self.root / STACKS_NAME
        self.standard_input, self.crashed_text = self.root / INPUT_NAME, self.root / CRASH_NAME
        self.log = Log(self.shards)
        self.maybe_modified = array("q")
        self.is_published = False
        self._record: PlanRecord | None = None
        self._overwrite, self._restart = overwrite, restart
        self._lock = FolderLock(self.root / LOCK_NAME, self.output, Refused)

    def check_output(self) -> None:
        """Raise Refused (exit 6) for an output that exists, or, with overwrite, for one that is not ours.

        Writes nothing. An empty folder, as `mktemp -d` makes it, is accepted.
        """
        if os.path.lexists(self.output) and not is_empty_folder(self.output):
            if is_part(self.output):
                raise existing_part(self.output)
            if not self._overwrite:
                if (self.output / MANIFEST_NAME).is_file() and not self.output.is_symlink():
                    raise existing_dataset(self.output)
                raise Refused(
                    f"{self.output}: already exists and is not a tokenmill dataset. Choose another --output."
                )
            reason = not_ours(self.output)
            if reason:
                raise not_replaceable(self.output, reason)
        if not self.output.parent.is_dir():
            raise missing_folder(self.output.parent, "--output")
        check_scratch(self._scratch_folder)

    def open(self, plan: PlanRecord) -> bool:
        """Take the folder for `plan`; True if it holds work of an earlier run with the same plan, which goes on.

        Refused (exit 6): another run is at work there, the folder is not ours, or its plan differs (without
        restart; with it the old work is thrown away).
        """
        self.take()
        replaced = self.root / REPLACED_NAME
        if replaced.exists() and not os.path.lexists(self.output):
            rename(replaced, self.output)  # an earlier run ended between the two renames of `publish`
            self.check_output()
        goes_on = self._compare(plan)
        if not goes_on:
            self.clear()
        noted = noted_scratch(self.root)
        if not goes_on and self._scratch_folder is not None:
            noted = note_scratch(self.root, self._scratch_folder, self.output.name)
        self.scratch = noted or self.shards
        for folder in (self.shards, self.dataset, self.scratch):
            folder.mkdir(exist_ok=True)
        self._record = plan
        if not goes_on:
            self.settle()
        return goes_on

    def former_plan(self) -> RecordFile | None:
        """The record of an unfinished run, if there is one; ValueError if it is damaged."""
        return RecordFile(self.plan) if self.plan.exists() else None

    def settle(self) -> None:
        """Note the plan, in place of the one there is: the sources that were maybe_modified hold what they held."""
        if self._record is None:
            raise BrokenInvariant("settle() was called before open()")
        write_lasting(self.plan, self._record.lines())  # half a plan, after a power loss, would be refused
        del self.maybe_modified[:]

    def take(self) -> None:
        """Make the folder if need be and lock it; Refused (exit 6) if another run is at work or it is not ours."""
        if self._lock.is_held:
            return
        if os.path.lexists(self.root) and (self.root.is_symlink() or not self.root.is_dir()):
            raise _foreign(self.root)
        self.root.mkdir(exist_ok=True)
        foreign = sorted(names_in(self.root) - _OWN_NAMES)
        if foreign:
            raise _foreign(self.root / foreign[0])
        self._lock.acquire()

    @property
    def shard_store(self) -> ShardStore:
        """Where shards lie; the folder must be open."""
        return shards_at(self.scratch)

    def put_job(self, data: bytes) -> str:
        """Put the job where workers that are not started by this process read it; its path."""
        path = self.root / JOB_NAME
        with naming(path):
            path.write_bytes(data)
        return str(path.absolute())

    def on_disk(self, paths: Iterable[str]) -> list[str]:
        """Where files of the dataset lie that are to be synced, given their paths in it."""
        return [f"{self.dataset}/{path}" for path in paths]

    def clean_dataset(self, keep: set[str]) -> None:
        """Delete all files of the unfinished dataset but those of `keep`, paths relative to it."""
        for folder, _, names in os.walk(self.dataset):
            for name in names:
                path = Path(folder) / name
                if path.relative_to(self.dataset).as_posix() not in keep:
                    path.unlink(missing_ok=True)

    def publish(self) -> None:
        """Give the finished dataset, whose files are on the disk, its final name, and remove the folder."""
        sync_folders(self.dataset)
        if os.path.lexists(self.output):
            self.check_output()  # it may have come into being since
            rename(self.output, self.root / REPLACED_NAME)
        rename(self.dataset, self.output)
        sync(self.output.parent)
        self.is_published = True
        try:
            self._remove()
        except OSError as error:  # a network disk keeps files of the former output that are being read
            if error.errno not in STILL_USED:
                raise
        self.close()

    def remove_remains(self) -> None:
        """Remove the folder of a run that was killed between giving the dataset its name and cleaning up."""
        if self.root.is_symlink() or not self.root.is_dir() or self.dataset.exists() or self._lock.is_held:
            return
        if {path.name for path in self.root.iterdir()} - _OWN_NAMES or (self.root / REPLACED_NAME).exists():
            return
        # Another run, or a disk that is full or may not be written to: then it stays.
        with suppress(OSError, Refused):
            self._lock.acquire()
            self._remove()
        self._lock.release()

    def close(self) -> None:
        """Let go of the lock; finished shards stay. A folder without any is of no use and goes, as does one of a part
        that another run has made."""
        if self._lock.is_held:
            is_of_use = self.holds_work and not (is_part(self.output) and self.output.is_dir())
            if self.is_published or not (is_of_use or (self.root / REPLACED_NAME).exists()):
                with suppress(OSError):  # what ended the run may stand in the way of this too
                    self._remove()
            self._lock.release()

    def _compare(self, plan: PlanRecord) -> bool:
        if not self.plan.exists():
            return False  # an earlier run ended before it had begun
        maybe_modified = array("q")
        try:
            old = RecordFile(self.plan)
            found = list(islice(compare(old, plan, maybe_modified), SHOWN_DIFFERENCES))
            if not found and not self._restart:
                self.maybe_modified[:] = maybe_modified
                return True
            if self._restart or not self.holds_work:
                return False  # asked for, or nothing would be lost
            changed = changed_source(old, plan)
        except ValueError as error:
            if self._restart:
                return False
            raise Refused(f"{self.plan}: damaged ({error}). Start over with --restart.") from None
        if changed is not None:
            raise Refused(printable(f"{changed} since {self.root} was started. Start over with --restart."))
        changes = ", ".join(f"{told(name)} {_value(was)} (now {_value(is_)})" for name, was, is_ in found)
        raise Refused(
            printable(
                f"{self.root}: started with {changes}. Resume with the former options, or start over with --restart."
            )
        )

    @property
    def holds_work(self) -> bool:
        """Whether anything was finished; former versions kept a file for each record."""
        return self.log.holds_work or any(self.shards.glob("*.json"))

    def _remove(self) -> None:
        """Remove the folder."""
        self.clear()
        self.standard_input.unlink(missing_ok=True)
        self._lock.remove_folder()

    def clear(self) -> None:
        """Remove what the folder holds, but for its lock and standard input."""
        # The plan first: what is left without it counts as not begun.
        for path in (self.plan, self.stacks, self.crashed_text, self.root / JOB_NAME):
            path.unlink(missing_ok=True)
        for name in (SHARDS_NAME, DATASET_NAME, REPLACED_NAME):
            remove_folder(self.root / name)
        if (scratch := noted_scratch(self.root)) is not None:
            remove_folder(scratch)
            (self.root / NOTE_NAME).unlink(missing_ok=True)


def _value(value: Any) -> str:
    if isinstance(value, dict):  # an entry of the tokenizer
        value = value["text"]
    return "not given" if value is None else repr(value)
