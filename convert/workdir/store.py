"""The work folder of an output on a store. The dataset's objects have their final names; its manifest comes last.

    journal/...        some lines of the journal          lease           held by the run at work
    manifest.json      until the dataset is verified      tasks/3/lease   held by task 3 of a job array

No reader opens a dataset without its manifest. A driver may be killed and started again on any machine that reaches the
store. A run deletes and publishes only right after it confirmed that it still has the lease, and deletes only objects
with names that a run writes. The lease of a driver that was taken over is in other hands, or gone with the work folder.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from convert.errors import Refused, StorageError, UsageError
from convert.options import ConvertOptions
from convert.planning.plan_record import PlanRecord
from convert.workdir.folder import FolderWorkDir
from convert.workdir.workdir import OWN_NAME, WorkDir, check_folder, holds
from flat_tokens.errors import DatasetError
from flat_tokens.storage.manifest import MANIFEST_NAME, read_files, read_manifest
from flat_tokens.storage.places import StorePath
from flat_tokens.unfinished import existing, inside_dataset, is_dataset, not_replaceable, why_it_stays
from tokenmill.stores import (
    AlreadyThere,
    Bytes,
    Entry,
    Store,
    StoreNotFound,
    is_url,
    open_store,
    shown_url,
)
from tokenmill.stores.lease import NAME as LEASE_NAME
from tokenmill.stores.lease import Lease
from tokenmill.stores.store import WrappedStore
from tokenmill.stores.url import parse

_TASK_LEASE = re.compile(r"tasks/(\d+)/lease")


class UnpublishedStore(WrappedStore):
    """A dataset at its final names except for its manifest, which is in the work folder.

    Readers do not open the output without a manifest, while verification sees the dataset as it will be.

    Runs of one command write the same bytes under each name. A late worker of a run with another plan may write
    others. Objects are therefore put if absent and compared, not replaced, and the next run removes foreign ones.

    target: the store of the dataset. partial: the store of its manifest.
    """

    def __init__(self, target: Store, partial: Store) -> None:
        super().__init__(target)
        self._partial = partial

    def holder(self, key: str) -> Store:
        """See WrappedStore."""
        return self._partial if key == MANIFEST_NAME else self._store

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """See Store."""
        yield from (entry for entry in self._store.list(prefix) if entry.key != MANIFEST_NAME)
        with suppress(StoreNotFound):
            if not prefix:
                yield self._partial.head(MANIFEST_NAME)

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        """Put an object. Replace the manifest of an interrupted run; StorageError if another object differs."""
        if key == MANIFEST_NAME:
            return self._partial.put(key, data)
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


class StoreWorkDir(WorkDir):
    """See WorkDir."""

    dataset: UnpublishedStore

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
        self._url, self._temporary = url, ExitStack()
        self._target = open_store(url, options.storage_options)
        partial = open_store(f"{url}.partial", options.storage_options)
        super().__init__(options, shown, f"{url}.partial", (partial, self._target))
        self.dataset = UnpublishedStore(self._target, partial)

    def check_output(self) -> None:
        """See WorkDir. Wrong credentials show here, because this asks the store."""
        if self._target.is_local or self._store.is_local:
            raise UsageError(f"{self.output}: names a local folder. Pass its path instead of a URL.")
        check_folder(self._given.scratch, "--scratch")
        parent = self._url
        while parse(parent := parent.rpartition("/")[0]).path.strip("/"):
            if is_dataset(StorePath(open_store(parent, self._given.storage_options))):
                raise inside_dataset(self.output, shown_url(parent))
        first = next(iter(self._target.list()), None)
        root, listed = StorePath(self._target), {MANIFEST_NAME}
        try:
            manifest = read_manifest(root)
            if manifest is not None and self._given.overwrite:
                listed |= {file.path for file in read_files(root, manifest)}
        except DatasetError as error:
            raise not_replaceable(self.output, error) from None
        if first is None or (self.has_plan and not self._is_finished()):
            return  # also if a run published after it was taken over: `open` resumes
        if manifest is None:
            raise not_replaceable(self.output, f"contains {first.key} but no manifest.json")
        if not self._given.overwrite:
            raise existing(self.output)
        for entry in self._target.list():
            if entry.key not in listed:
                raise not_replaceable(self.output, why_it_stays(entry.key))

    def _is_finished(self) -> bool:
        """Return whether the output is a finished dataset and no run has started to make another."""
        if not holds(self._target, MANIFEST_NAME):
            return False
        if not self.has_plan:
            return True
        with suppress(StoreNotFound):
            return bytes(self._store.read(MANIFEST_NAME)) == bytes(self._target.read(MANIFEST_NAME))
        return False

    def _lock_of(self, task: int | None) -> Lease:
        if task is None:
            return Lease(self._store, self.output, Refused)
        store = open_store(f"{self.place}/tasks/{task}", self._given.storage_options)
        return Lease(store, self.output, Refused)

    def _tasks(self) -> list[int]:
        keys = (entry.key for entry in self._store.list("tasks"))
        return [int(found[1]) for key in keys if (found := _TASK_LEASE.fullmatch(key))]

    def _publish(self) -> None:
        try:
            manifest = bytes(self._store.read(MANIFEST_NAME))
        finally:  # a missing or different manifest means that another run has taken over
            self._lock.confirm()
        try:
            self._target.put(MANIFEST_NAME, manifest, if_absent=True)
        except AlreadyThere:  # from a run that was taken over right after it had confirmed
            raise Refused(
                f"{self.output}: another run published at the same time. Run the same command."
            ) from None

    def _recover(self) -> bool:
        if not self._is_finished():
            return True
        if self._given.overwrite:
            return self._task is not None  # a task discards nothing
        if self._task is None:
            self._remove()
        raise existing(self.output)

    def open(self, plan: PlanRecord) -> bool:
        is_resumed = super().open(plan)
        self.shards = Path(tempfile.mkdtemp(prefix="tokenmill-"))
        self._temporary.callback(shutil.rmtree, self.shards, ignore_errors=True)
        if self._task is None:  # the dataset is unfinished until it was verified once more
            for store in (self._store, self._target):
                self._delete(store, [MANIFEST_NAME])
        return is_resumed

    def _start(self, plan: PlanRecord) -> bool:
        if holds(self._target, MANIFEST_NAME) and not self._given.overwrite:
            raise existing(self.output)
        return super()._start(plan)

    def _clear(self, keep: Collection[str]) -> None:
        keys = (entry.key for entry in self._store.list())
        own = (key for key in keys if key not in (LEASE_NAME, *keep) and OWN_NAME.fullmatch(key))
        self._delete(self._store, own)

    def _release(self) -> None:
        self._temporary.close()
        self._lock.release()


def open_workdir(options: ConvertOptions) -> WorkDir:
    """Return the work folder of options.output, a path or URL. Write nothing."""
    if is_url(options.output):
        return StoreWorkDir(options)
    if options.scratch is not None and is_url(options.scratch):
        raise UsageError(
            f"--scratch: must be a local folder unless --output is a URL (got {shown_url(options.scratch)})"
        )
    return FolderWorkDir(options)
