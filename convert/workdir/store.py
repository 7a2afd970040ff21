"""The work folder of an output on a store. The dataset's objects have their final names; its manifest comes last.

    journal/00000001   some lines of the journal          lease           held by the run at work
    manifest.json      until the dataset is verified      tasks/3/lease   held by task 3 of a job array

No reader opens a dataset without its manifest. A driver may be killed and started again on any machine that reaches the
store. A run deletes only objects with names that a run writes, each time right after it confirmed that no other run has
taken over (convert/workdir/journal.py).
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from convert.errors import Refused, StorageError, UsageError
from convert.options import ConvertOptions
from convert.planning.plan_record import PlanRecord
from convert.workdir.folder import FolderWorkDir
from convert.workdir.journal import StoreJournal
from convert.workdir.workdir import (
    INPUT_NAME,
    PLAN_NAME,
    Task,
    WorkDir,
    check_scratch,
    existing_dataset,
    holds,
    not_replaceable,
)
from flat_tokens.errors import DatasetError
from flat_tokens.storage.manifest import MANIFEST_NAME, read_files, read_manifest
from flat_tokens.unfinished import why_it_stays
from flat_tokens.writer import place_of
from tokenmill.stores import (
    AlreadyThere,
    Bytes,
    Entry,
    Store,
    StoreError,
    StoreNotFound,
    is_url,
    open_store,
    shown_url,
)
from tokenmill.stores.lease import NAME as LEASE_NAME
from tokenmill.stores.lease import Lease
from tokenmill.stores.url import parse
from tokenmill.stores.wrapped import WrappedStore

_OWN_KEY = re.compile(
    r"(plan|manifest|status(\.\d+)?)\.json|(tasks/\d+/)?lease|journal/(\d+\.)?\d{8}|stdin|job-[0-9a-f]{16}|shards/.+"
)
_TASK_LEASE = re.compile(r"tasks/(\d+)/lease")
_CONCURRENT_CHECKS = 64


class UnpublishedStore(WrappedStore):
    """A dataset at its final names except for its manifest, which is in the work folder.

    Readers do not open the output without a manifest, while verification sees the dataset as it will be.

    Runs of one command write the same bytes under each name. A late worker of a run with another plan may write
    others. Objects are therefore put if absent and compared, not replaced, and the next run removes foreign ones.

    target: the store of the dataset. partial: the store of its manifest.

    manifest_version: the version of the manifest that was put through this object.
    """

    def __init__(self, target: Store, partial: Store) -> None:
        super().__init__(target)
        self._partial = partial
        self.manifest_version = ""

    def holder(self, key: str) -> Store:
        """See WrappedStore."""
        return self._partial if key == MANIFEST_NAME else self._store

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """See Store."""
        yield from (entry for entry in self._store.list(prefix) if entry.key != MANIFEST_NAME)
        if not prefix:
            yield from (entry for entry in self._partial.list() if entry.key == MANIFEST_NAME)

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        """Put an object. Replace the manifest of an interrupted run; StorageError if another object differs."""
        if key == MANIFEST_NAME:
            entry = self._partial.put(key, data)
            self.manifest_version = entry.version
            return entry
        if not isinstance(data, bytes | bytearray | memoryview):
            return self._store.put(key, data)  # blocks come from the driver alone
        try:
            return self._store.put(key, data, if_absent=True)
        except AlreadyThere:
            if memoryview(self._store.read(key)) != memoryview(data).cast("B"):
                raise StorageError(
                    f"{self.url}/{key}: another run just wrote this object. End that run, then run the same "
                    "command again."
                ) from None
            return self._store.head(key)

    def delete(self, keys: Iterable[str]) -> None:
        """See Store."""
        for key in keys:
            self.holder(key).delete([key])


class StoreWorkDir(WorkDir):
    """See WorkDir."""

    dataset: UnpublishedStore
    log: StoreJournal

    def __init__(self, options: ConvertOptions) -> None:
        url, location = options.output.rstrip("/"), parse(options.output)
        shown = shown_url(url)
        if location.scheme in ("http", "https"):
            raise UsageError(
                f"{shown}: web servers cannot be written to. Choose a local --output or one in a bucket."
            )
        if not location.path.strip("/"):
            raise UsageError(
                f"{shown}: names a whole bucket. Add a path to --output, such as {shown}owt.zarr."
            )
        self._target = open_store(url, options.storage_options)
        partial = open_store(f"{url}.partial", options.storage_options)
        log = StoreJournal(partial, shown)
        super().__init__(options, shown, f"{url}.partial", log, partial, self._target)
        self.dataset = UnpublishedStore(self._target, partial)
        self._lease = Lease(partial, shown, Refused)

    def check_output(self) -> None:
        """See WorkDir. Wrong credentials show here, because this asks the store."""
        if self._target.is_local or self._store.is_local:
            raise UsageError(f"{self.output}: names a local folder. Pass its path instead of a URL.")
        check_scratch(self._given.scratch)
        first = next(iter(self._target.list()), None)
        if first is None:
            return
        try:
            manifest = read_manifest(place_of(self._target))
            files = () if manifest is None else read_files(place_of(self._target), manifest)
        except DatasetError as error:
            raise not_replaceable(self.output, error) from None
        if manifest is None:
            if holds(self._store, PLAN_NAME) or self.log.exists:
                return
            raise not_replaceable(self.output, f"contains {first.key} but no manifest.json")
        if not self._is_finished():
            return  # a run published after it was taken over: `open` resumes
        if not self._given.overwrite:
            raise existing_dataset(self.output)
        listed = {file.path for file in files} | {MANIFEST_NAME}
        foreign = next((entry.key for entry in self._target.list() if entry.key not in listed), None)
        if foreign is not None:
            raise not_replaceable(self.output, why_it_stays(foreign))

    def _is_finished(self) -> bool:
        """Return whether the output is a finished dataset and no run has started to make another."""
        if not holds(self._target, MANIFEST_NAME):
            return False
        if not holds(self._store, PLAN_NAME):
            return True
        try:
            return bytes(self._store.read(MANIFEST_NAME)) == bytes(self._target.read(MANIFEST_NAME))
        except StoreNotFound:
            return False

    def acquire(self, task: Task | None = None) -> None:
        if self._lease.is_held:
            return
        if task is not None:
            self.task, self.log.task = task, task[0]
            self._lease = self._lease_of(f"tasks/{task[0]}")
        self._lease.acquire()
        try:
            others = [""] if task is not None else self._folders_of_tasks()
            with ThreadPoolExecutor(_CONCURRENT_CHECKS) as checks:
                for _ in checks.map(lambda folder: self._lease_of(folder).check_free(), others):
                    pass
            self.shards = Path(tempfile.mkdtemp(prefix="tokenmill-"))
        except BaseException:
            self._lease.release()
            raise

    def _lease_of(self, folder: str) -> Lease:
        """The lease in a folder of the work folder, "" for the work folder itself."""
        store = open_store(f"{self.place}/{folder}", self._given.storage_options) if folder else self._store
        return Lease(store, self.output, Refused)

    def _folders_of_tasks(self) -> list[str]:
        return [
            f"tasks/{found[1]}"
            for entry in self._store.list("tasks")
            if (found := _TASK_LEASE.fullmatch(entry.key))
        ]

    def publish(self) -> None:
        """See WorkDir. Raise Refused (exit 6) if a run of the same command has published it."""
        try:
            manifest = bytes(self._store.read(MANIFEST_NAME, version=self.dataset.manifest_version))
        finally:  # a missing or different manifest means that another run has taken over
            self.log.confirm()
        is_ours = True
        try:
            self._target.put(MANIFEST_NAME, manifest, if_absent=True)
        except AlreadyThere:
            # From a run that was taken over right after it had confirmed. With another plan, its objects are gone.
            is_ours = bytes(self._target.read(MANIFEST_NAME)) != manifest
            if is_ours:
                self.log.confirm()
                self._target.put(MANIFEST_NAME, manifest)
        self.is_published = is_ours
        with suppress(Refused):  # a run that takes over now removes it
            self._remove()
        self._is_open = False
        self.close()
        if not is_ours:
            raise Refused(
                f"{self.output}: another run of the same command published it first. The dataset is complete."
            )

    def close(self) -> None:
        if not self._lease.is_held:
            return
        try:
            if self._is_open and not self.holds_work and self.task is None:
                with suppress(StoreError, Refused):  # the error that ended the run may prevent this too
                    self._delete(self._target, [MANIFEST_NAME])
                    self._delete(self._target, (entry.key for entry in self._target.list()))
                    self._remove()
        finally:
            self._is_open = False
            shutil.rmtree(self.shards, ignore_errors=True)
            self._lease.release()

    def remove_remains(self) -> None:
        if next(iter(self._store.list()), None) is None:
            return
        with suppress(StoreError, Refused):  # another run, or a store that is read-only
            self.acquire()
            self.log.claim()
            if self._is_finished():
                self._remove()
        self.close()

    def _recover(self) -> bool:
        self.log.claim()
        if not self._is_finished():
            return True
        if self._given.overwrite:
            return self.task is not None  # a task discards nothing
        if self.task is None:
            self._remove()
        raise existing_dataset(self.output)

    def _resumes(self, plan: PlanRecord) -> bool:
        is_resumed = super()._resumes(plan)
        if is_resumed and self.task is None:  # the dataset is unfinished until it was verified once more
            self._delete(self._store, [MANIFEST_NAME])
            self._delete(self._target, [MANIFEST_NAME])
        return is_resumed

    def _clear(self) -> None:
        if holds(self._target, MANIFEST_NAME) and not self._given.overwrite:
            raise existing_dataset(self.output)
        self._delete(self._target, [MANIFEST_NAME])
        self._remove({LEASE_NAME, INPUT_NAME, self.log.claimed})
        self._delete(self._target, (entry.key for entry in self._target.list()))

    def _remove(self, keep: Collection[str] = (LEASE_NAME,)) -> None:
        """Delete the work folder, but not the dataset."""
        self._remove_scratch()  # before the plan, which names it; without a plan the rest counts as not started
        self._delete(self._store, [PLAN_NAME])
        keys = (entry.key for entry in self._store.list())
        own = [key for key in keys if key not in keep and _OWN_KEY.fullmatch(key)]
        self._store.delete([*own, self.log.confirm()])


def open_workdir(options: ConvertOptions) -> WorkDir:
    """Return the work folder of options.output, a path or URL. Write nothing."""
    if is_url(options.output):
        return StoreWorkDir(options)
    if options.scratch is not None and is_url(options.scratch):
        raise UsageError(
            f"--scratch: must be a local folder unless --output is a URL (got {shown_url(options.scratch)})"
        )
    return FolderWorkDir(options)
