"""The workspace of an output on a store: state, shards and manifest lie in `<output>.partial/` there.

    plan.json, log/<number>    what was planned, what is done       shards/         finished shards
    lease                      of the run at work                   manifest.json   until all is verified
    job                        for workers that this process does not start

A folder of this machine has copies of plan and log, which the work goes on from as if it were a local one. A driver may
die and be started again anywhere that sees the store. The dataset's objects lie under their final names; the manifest,
without which no reader opens it, is put there last of all.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from array import array
from collections.abc import Iterable
from pathlib import Path

from convert.errors import Refused, UsageError
from convert.places.lease import Lease
from convert.places.scratch import check_scratch, remove_folder
from convert.places.store_log import StoreLog
from convert.places.unpublished import UnpublishedStore
from convert.places.workspace import JOB_NAME, PLAN_NAME, SHARDS_NAME, Workspace
from convert.planning.plan_record import PlanRecord
from convert.shards.shard_store import FolderShards, ShardStore, StoreShards
from flat_tokens.errors import DatasetError
from flat_tokens.storage.manifest import MANIFEST_NAME, read_manifest
from flat_tokens.writer import place_of
from stores import StorageOptions, Store, StoreNotFound, is_url, open_store, shown_url


class StoreWorkspace:
    """See Workspace. scratch: a folder or URL for shards, None: beside the state."""

    def __init__(
        self,
        output: str,
        overwrite: bool = False,
        scratch: str | None = None,
        options: StorageOptions | None = None,
    ) -> None:
        url = output.rstrip("/")
        self.output = shown_url(url)
        self._url, self._options, self._overwrite = url, dict(options or {}), overwrite
        self._target = open_store(url, self._options)
        self._partial = open_store(f"{url}.partial", self._options)
        self.dataset = UnpublishedStore(self._target, self._partial)
        self.root = f"{self.output}.partial"
        self._scratch = scratch
        digest = hashlib.sha256(url.encode()).hexdigest()[:16]
        self._home = Path(tempfile.gettempdir()) / f"tokenmill-{os.getuid()}-{digest}"
        self._local = Workspace(self._home / "out", overwrite)
        self._lease = Lease(self._partial, self.output)
        self.log = StoreLog(self._local.shards, self._partial, self.output)
        self.stacks, self.crashed_text = self._local.stacks, self._local.crashed_text

    @property
    def touched(self) -> array[int]:
        """See Workspace."""
        return self._local.touched

    @property
    def plan(self) -> Path:
        """See Workspace."""
        return self._local.plan

    @property
    def shards(self) -> Path:
        """See Workspace."""
        return self._local.shards

    @property
    def standard_input(self) -> Path:
        """See Workspace."""
        return self._local.standard_input

    @property
    def shard_store(self) -> ShardStore:
        """See Workspace."""
        if self._scratch is not None and not is_url(self._scratch):
            return FolderShards(self._scratch_folder())
        url = f"{self._url}.partial/{SHARDS_NAME}" if self._scratch is None else self._scratch_url()
        return StoreShards(open_store(url, self._options), url, self._options)

    def _scratch_url(self) -> str:
        digest = hashlib.sha256(self._url.encode()).hexdigest()[:16]
        return f"{str(self._scratch).rstrip('/')}/{digest}.shards"

    def _scratch_folder(self) -> Path:
        digest = hashlib.sha256(self._url.encode()).hexdigest()[:16]
        return Path(str(self._scratch)).absolute() / f"{digest}.shards"

    def check_output(self) -> None:
        """Refuse (exit 6) an output that exists, or, with overwrite, one that is not ours; leaves it alone."""
        if self._target.is_local or self._partial.is_local:
            raise UsageError(f"--output {self.output}: a local folder is named by its path")
        if self._scratch is not None and not is_url(self._scratch):
            check_scratch(self._scratch)
        first = next(iter(self._target.list()), None)  # asks the store: credentials, bucket, permission
        if first is None:
            return
        try:
            manifest = read_manifest(place_of(self._target), most_sources=0)
        except DatasetError as error:
            raise Refused(f"{self.output} is left alone: {error}; choose another --output") from None
        if manifest is None:
            if self._is_begun():
                return
            raise Refused(
                f"{self.output} holds {first.key} and no manifest: it is no dataset of ours; choose another --output"
            )
        if not self._overwrite:
            raise Refused(
                f"{self.output} exists, a finished dataset; choose another --output, or replace it with --overwrite"
            )
        listed = {file.path for file in manifest.files} | {MANIFEST_NAME}
        foreign = next((entry.key for entry in self._target.list() if entry.key not in listed), None)
        if foreign is not None:
            raise Refused(
                f"{self.output} is left alone: it holds {foreign}, which its manifest does not list; choose another "
                f"--output"
            )

    def _is_begun(self) -> bool:
        """Whether the partial folder is ours."""
        try:
            self._partial.head(PLAN_NAME)
        except StoreNotFound:
            return False
        return True

    def take(self) -> None:
        """See Workspace: the lease of the store, and the lock of the copy."""
        if not self._lease.is_held:
            self._home.mkdir(mode=0o700, exist_ok=True)
            self._local.take()
            self._lease.acquire()

    def open(self, plan: PlanRecord) -> bool:
        """See Workspace."""
        self.take()
        self._fetch()
        goes_on = self._local.open(plan)
        if not goes_on:
            self._clear()
            self.log.number = 1
            self._put_plan()
        if isinstance(self.shard_store, FolderShards):
            self.shard_store.folder.mkdir(exist_ok=True)
        return goes_on

    def _fetch(self) -> None:
        """Make the copy: nothing of a former one is used."""
        self._local.clear()
        try:
            plan = self._partial.read(PLAN_NAME)
        except StoreNotFound:
            return
        self._local.shards.mkdir(exist_ok=True)
        self.log.fetch()
        self._local.plan.write_bytes(plan)

    def settle(self) -> None:
        """See Workspace."""
        self._local.settle()
        self._put_plan()

    def _put_plan(self) -> None:
        self._partial.put(PLAN_NAME, self._local.plan.read_bytes())

    def put_job(self, data: bytes) -> tuple[str, tuple[tuple[str, str], ...]]:
        """See Workspace."""
        self._partial.put(JOB_NAME, data)
        return f"{self._url}.partial/{JOB_NAME}", tuple(sorted(self._options.items()))

    def on_disk(self, paths: Iterable[str]) -> list[str]:
        """See Workspace: an object is as safe as its store makes it."""
        return []

    def clean_dataset(self, keep: set[str]) -> None:
        """See Workspace."""
        self._target.delete([entry.key for entry in self._target.list() if entry.key not in keep])

    def publish(self) -> None:
        """See Workspace."""
        self.log.confirm()
        self.dataset.publish()
        self._remove()
        self.close()

    def close(self) -> None:
        """Let go of the lease; what was finished stays."""
        if self._lease.is_held:
            if not self._local.log.holds_work and self._is_begun():
                self._remove()
            self._lease.release()
            self._local.close()

    def _remove(self) -> None:
        """Remove all but the dataset."""
        shards = self.shard_store
        if isinstance(shards, FolderShards):
            remove_folder(shards.folder)
        else:
            _delete_all(shards.store)
        _delete_all(self._partial, first=PLAN_NAME)
        self._local.clear()

    def _clear(self) -> None:
        """Remove what another plan left, the dataset's manifest first of all."""
        self._target.delete([MANIFEST_NAME])
        self._remove_shards_and_state()
        _delete_all(self._target)

    def _remove_shards_and_state(self) -> None:
        shards = self.shard_store
        if isinstance(shards, StoreShards):
            _delete_all(shards.store)
        else:
            remove_folder(shards.folder)
        _delete_all(self._partial, first=PLAN_NAME)


AnyWorkspace = Workspace | StoreWorkspace


def open_workspace(
    output: str, overwrite: bool, scratch: str | None, options: StorageOptions
) -> AnyWorkspace:
    """The workspace of an output, a path or URL."""
    if is_url(output):
        return StoreWorkspace(output, overwrite, scratch, options)
    if scratch is not None and is_url(scratch):
        raise UsageError("--scratch is a folder where --output is one; a URL is for outputs on a store")
    return Workspace(output, overwrite, scratch)


def _delete_all(store: Store, first: str = "") -> None:
    """Delete all objects, `first` first; but for the lease, which is let go of at the end."""
    if first:
        store.delete([first])
    store.delete([entry.key for entry in store.list() if entry.key != "lease"])
