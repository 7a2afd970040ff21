"""The work folder of an output on disk. It contains the dataset until two renames publish it.

    dataset    the unfinished dataset            lock      held by the active run, shared by tasks of a job array
    replaced   the former output, briefly        lock.3    held by task 3 of a job array

A folder with other names in it is rejected.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from convert.errors import Refused, UsageError
from convert.options import ConvertOptions
from convert.planning.plan_record import PlanRecord
from convert.workdir.workdir import (
    OWN_NAME,
    SHARDS_NAME,
    WorkDir,
    check_folder,
    remove_folder,
)
from flat_tokens.unfinished import check_output, make_work_folder, not_ours, restore_former, swap_in
from tokenmill.stores import open_store
from tokenmill.stores.durability import sync_folders
from tokenmill.stores.folder_lock import FolderLock
from tokenmill.stores.names import names_in, remove_empty_folders

_LOCK_NAME = "lock"


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
        self.dataset, self.shards = folder / "dataset", folder / SHARDS_NAME
        self._replaced = folder / "replaced"
        super().__init__(
            options, f"{self._target}", f"{folder}", (open_store(folder), open_store(self.dataset))
        )

    def check_output(self) -> None:
        check_output(self._target, self._given.overwrite, not_ours)
        check_folder(self._target.parent, "--output")
        check_folder(self._given.scratch, "--scratch")

    def _lock_of(self, task: int | None) -> FolderLock:
        name = _LOCK_NAME if task is None else f"{_LOCK_NAME}.{task}"
        return FolderLock(self._folder / name, self._target, Refused)

    def _tasks(self) -> list[int]:
        return [int(path.suffix[1:]) for path in self._folder.glob(f"{_LOCK_NAME}.*")]

    def acquire(self) -> None:
        make_work_folder(self._folder, OWN_NAME)
        super().acquire()

    def open(self, plan: PlanRecord) -> bool:
        is_resumed = super().open(plan)
        for folder in (self.shards, self.dataset):
            folder.mkdir(exist_ok=True)
        return is_resumed

    def clean_dataset(self, keep: set[str]) -> None:
        """See WorkDir. Also remove empty folders, because one may have the name of a new file."""
        super().clean_dataset(keep)
        remove_empty_folders(self.dataset)

    def _is_finished(self) -> bool:
        is_at_work = self.dataset.exists() or self._replaced.exists()
        return self._folder.exists() and not is_at_work

    def _is_needed(self) -> bool:
        return super()._is_needed() or self._replaced.exists()

    def _recover(self) -> bool:
        restore_former(self._replaced, self._target)
        self.check_output()
        return True

    def _publish(self) -> None:
        sync_folders(self.dataset)
        self.check_output()  # again, since it may exist by now
        remove_folder(self._replaced)  # of a run that ended right after it had published
        swap_in(self.dataset, self._target, self._replaced)

    def _clear(self, keep: Collection[str]) -> None:
        for name in names_in(self._folder) - {*keep}:
            path = self._folder / name
            if path.is_dir():
                remove_folder(path.with_suffix(""))
            elif not name.startswith(_LOCK_NAME):
                path.unlink(missing_ok=True)

    def _release(self) -> None:
        with suppress(OSError):
            if self._task is None and all(name.startswith(_LOCK_NAME) for name in names_in(self._folder)):
                for path in self._folder.glob(f"{_LOCK_NAME}.*"):
                    path.unlink()
                if isinstance(self._lock, FolderLock):
                    self._lock.remove_folder()
        self._lock.release()
