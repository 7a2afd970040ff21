"""The work folder of an output on disk. It contains the dataset until two renames publish it.

    dataset    the unfinished dataset            lock      held by the active run, shared by tasks of a job array
    replaced   the former output, briefly        lock.3    held by task 3 of a job array

If the output replaces a former one, nothing has the final name between the two renames. A folder with other names in
it is rejected. An output is replaced only if it is a dataset without foreign files.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from convert.errors import Refused, UsageError
from convert.options import ConvertOptions
from convert.workdir.journal import Journal
from convert.workdir.workdir import (
    INPUT_NAME,
    PLAN_NAME,
    SHARDS_NAME,
    Task,
    WorkDir,
    check_scratch,
    existing_dataset,
    missing_folder,
    not_replaceable,
    remove_folder,
)
from flat_tokens.storage.manifest import MANIFEST_NAME
from flat_tokens.unfinished import is_empty_folder, not_ours
from tokenmill.stores import open_store
from tokenmill.stores.durability import sync, sync_folders
from tokenmill.stores.folder_lock import FolderLock
from tokenmill.stores.names import STILL_USED, names_in, remove_empty_folders, rename

DATASET_NAME = "dataset"
REPLACED_NAME = "replaced"
_LOCK_NAME = "lock"
_OWN_FILE = re.compile(
    r"(plan|status(\.\d+)?)\.json(\.tmp)?|(lock|journal)(\.\d+)?|stdin|job-[0-9a-f]{16}|\.put-.*"
)
_OWN_FOLDER = re.compile(r"(shards|dataset|replaced)(\.removed)?")


class FolderWorkDir(WorkDir):
    """See WorkDir."""

    dataset: Path

    def __init__(self, options: ConvertOptions) -> None:
        self._target = Path(options.output)  # "out.zarr/" and "out.zarr" are the same output
        if self._target.name in ("", ".."):  # ".", "/", "a/.."
            raise UsageError(
                f"{self._target}: cannot be the name of a dataset. Pass an --output such as owt.zarr."
            )
        folder = self._folder = self._target.with_name(f"{self._target.name}.partial")
        self.dataset, self.shards = folder / DATASET_NAME, folder / SHARDS_NAME
        stores = open_store(folder), open_store(self.dataset)
        super().__init__(options, f"{self._target}", f"{folder}", Journal(folder), *stores)
        self._locks: list[FolderLock] = []

    def check_output(self) -> None:
        """See WorkDir. An empty folder, as from `mktemp -d`, is accepted."""
        if os.path.lexists(self._target) and not is_empty_folder(self._target):
            if not self._given.overwrite:
                if (self._target / MANIFEST_NAME).is_file() and not self._target.is_symlink():
                    raise existing_dataset(self.output)
                raise Refused(
                    f"{self.output}: already exists and is not a tokenmill dataset. Choose another --output."
                )
            reason = not_ours(self._target)
            if reason:
                raise not_replaceable(self.output, reason)
        if not self._target.parent.is_dir():
            raise missing_folder(self._target.parent, "--output")
        check_scratch(self._given.scratch)

    def acquire(self, task: Task | None = None) -> None:
        if self._locks:
            return
        if os.path.lexists(self._folder) and (self._folder.is_symlink() or not self._folder.is_dir()):
            raise _foreign(self._folder)
        self._folder.mkdir(exist_ok=True)
        for name in sorted(names_in(self._folder)):
            path = self._folder / name
            own = _OWN_FOLDER if path.is_dir() else _OWN_FILE
            if not own.fullmatch(name) and os.path.lexists(path):  # another run may have removed it by now
                raise _foreign(path)
        self.task, self.log.task = task, None if task is None else task[0]
        try:
            if task is not None:
                self._lock(f"{_LOCK_NAME}.{task[0]}")
                self._lock(_LOCK_NAME, shared=True)
            else:
                self._check_tasks()  # for an error that names the task, unlike the shared lock
                self._lock(_LOCK_NAME)
                # Some network disks do not show locks to other hosts, but files name their holders.
                self._check_tasks()
        except BaseException:
            self._unlock()
            raise

    def _lock(self, name: str, shared: bool = False) -> None:
        lock = FolderLock(self._folder / name, self._target, Refused, shared)
        lock.acquire()
        self._locks.append(lock)

    def _check_tasks(self) -> None:
        """Raise Refused if a task of a job array is running."""
        for path in self._folder.glob(f"{_LOCK_NAME}.*"):
            self._lock(path.name)
            self._locks.pop().release()

    def _unlock(self) -> None:
        while self._locks:
            self._locks.pop().release()

    def publish(self) -> None:
        sync_folders(self.dataset)
        if os.path.lexists(self._target):
            self.check_output()  # the output may have appeared during the run
            remove_folder(self._folder / REPLACED_NAME)  # of a run that ended right after it had published
            rename(self._target, self._folder / REPLACED_NAME)
        rename(self.dataset, self._target)
        sync(self._target.parent)
        self.is_published = True
        try:
            self._remove()
        except OSError as error:  # a network disk keeps files of the former output while they are read
            if error.errno not in STILL_USED:
                raise
        self.close()

    def close(self) -> None:
        if not self._locks:
            return
        holds_work = self.holds_work if self._is_open else (self._folder / PLAN_NAME).exists()
        is_needed = holds_work or self.task is not None or (self._folder / REPLACED_NAME).exists()
        if self.is_published or not is_needed:
            with suppress(OSError):  # the error that ended the run may also prevent this
                self._remove()
        self._is_open = False
        self._unlock()

    def remove_remains(self) -> None:
        is_ours = self._folder.is_dir() and not self._folder.is_symlink()
        if not is_ours or self.dataset.exists() or (self._folder / REPLACED_NAME).exists() or self._locks:
            return
        with suppress(OSError, Refused):  # another run, or a disk that is full or read-only
            self.acquire()
            self._remove()
        self._unlock()

    def clean_dataset(self, keep: set[str]) -> None:
        """See WorkDir. Also remove empty folders, because one may have the name of a new file."""
        super().clean_dataset(keep)
        remove_empty_folders(self.dataset)

    def _recover(self) -> bool:
        replaced = self._folder / REPLACED_NAME
        if replaced.exists() and not os.path.lexists(self._target):
            rename(replaced, self._target)
        self.check_output()
        return True

    def _open_shards(self) -> None:
        for folder in (self.shards, self.dataset):
            folder.mkdir(exist_ok=True)
        super()._open_shards()

    def _clear(self, keep: tuple[str, ...] = (INPUT_NAME,)) -> None:
        # Remove shards elsewhere before the plan that names them. Without a plan, the other files count as not started.
        self._remove_scratch()
        (self._folder / PLAN_NAME).unlink(missing_ok=True)
        for name in names_in(self._folder) - {*keep}:
            path = self._folder / name
            if path.is_dir():
                remove_folder(path.with_suffix(""))
            elif not name.startswith(_LOCK_NAME):
                path.unlink(missing_ok=True)

    def _remove(self) -> None:
        """Remove the work folder, and the lock of this run last."""
        self._clear(keep=())
        for path in self._folder.glob(f"{_LOCK_NAME}.*"):
            path.unlink(missing_ok=True)
        self._locks[0].remove_folder()
        self._unlock()


def _foreign(path: Path) -> Refused:
    return Refused(f"{path}: not created by tokenmill. Move it away.")
