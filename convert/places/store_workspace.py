"""The workspace of an output on a store: state, shards and manifest lie in `<output>.partial/` there.

    plan.json, log/<number>    what was planned, what is done       shards/         finished shards
    lease                      of the run at work                   manifest.json   until all is verified
    job-<digest>               for workers that this process does not start
    scratch                    where shards lie instead, with --scratch

A folder of this machine has copies of plan and log, which the work goes on from as if it were a local one. A driver may
die and be started again anywhere that sees the store. The dataset's objects lie under their final names; the manifest,
without which no reader opens it, is put there last of all. What a driver deletes it deletes right after it confirmed
that no other has taken over (convert/places/store_log.py).
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from convert.errors import Refused, UsageError
from convert.options import ConvertOptions
from convert.places.scratch import NOTE_NAME, check_scratch, remove_folder
from convert.places.store_log import FOLDER as LOG_NAME
from convert.places.store_log import StoreLog
from convert.places.unpublished import UnpublishedStore
from convert.places.workspace import (
    JOB_NAME,
    PLAN_NAME,
    SHARDS_NAME,
    Workspace,
    existing_dataset,
    existing_part,
    not_replaceable,
)
from convert.planning.plan_record import PlanRecord, RecordFile
from convert.shards.shard_store import ShardStore, shards_at
from flat_tokens.errors import DatasetError
from flat_tokens.storage.existing_output import why_it_stays
from flat_tokens.storage.manifest import MANIFEST_NAME, read_manifest
from flat_tokens.storage.versions import is_part_name
from flat_tokens.writer import place_of
from tokenmill.stores import (
    AlreadyThere,
    StorageOptions,
    Store,
    StoreError,
    StoreNotFound,
    is_url,
    open_store,
    shown_url,
)
from tokenmill.stores.lease import NAME as LEASE_NAME
from tokenmill.stores.lease import Lease
from tokenmill.stores.system import user_name
from tokenmill.stores.url import parse

_OWN_FOLDERS = (f"{LOG_NAME}/", f"{SHARDS_NAME}/", JOB_NAME)
_OWN_NAMES = {PLAN_NAME, MANIFEST_NAME, NOTE_NAME}


class StoreWorkspace:
    """See Workspace. scratch: a folder or URL for shards, None: beside the state; of a run that goes on where they are,
    known once it is open."""

    def __init__(
        self,
        output: str,
        overwrite: bool = False,
        scratch: str | None = None,
        options: StorageOptions | None = None,
        restart: bool = False,
    ) -> None:
        url = output.rstrip("/")
        location = parse(output)
        if location.scheme in ("http", "https"):
            raise UsageError(
                f"{shown_url(output)}: web servers cannot be written to. Choose a local --output or one in a bucket."
            )
        if not location.path.strip("/"):
            raise UsageError(
                f"{shown_url(output)}: names a whole bucket. Add a path to --output, such as "
                f"{shown_url(url)}/owt.zarr."
            )
        self.output = shown_url(url)
        self.is_published = False
        self._url, self._options, self._overwrite = url, dict(options or {}), overwrite
        self._target = open_store(url, self._options)
        self._partial = open_store(f"{url}.partial", self._options)
        self.dataset = UnpublishedStore(self._target, self._partial)
        self.root = f"{self.output}.partial"
        self._scratch = scratch if scratch is None or is_url(scratch) else str(Path(scratch).absolute())
        self._digest = hashlib.sha256(url.encode()).hexdigest()[:16]
        self._home = Path(tempfile.gettempdir()) / f"tokenmill-{user_name()}-{self._digest}"
        self._local = Workspace(self._home / "out", overwrite, restart=restart)
        self._lease = Lease(self._partial, self.output, Refused)
        self._is_open = False
        self.log = StoreLog(self._local.shards, self._partial, self.output, self._lease.holder)
        self.plan, self.shards, self.stacks = self._local.plan, self._local.shards, self._local.stacks
        self.standard_input, self.crashed_text = self._local.standard_input, self._local.crashed_text
        self.maybe_modified = self._local.maybe_modified

    @property
    def shard_store(self) -> ShardStore:
        """See Workspace."""
        return self._shards_in(self._scratch)

    def _shards_in(self, scratch: str | None) -> ShardStore:
        if scratch is not None and not is_url(scratch):
            return shards_at(Path(scratch) / f"{self._digest}.shards")
        url = f"{self._url}.partial/{SHARDS_NAME}"
        if scratch is not None:
            url = f"{scratch.rstrip('/')}/{self._digest}.shards"
        return shards_at(url, self._options)

    @property
    def holds_work(self) -> bool:
        """Whether this run leaves anything that the next one goes on from."""
        return self._is_open and self._local.log.holds_work

    def check_output(self) -> None:
        """See Workspace. Asks the store, so wrong credentials show here."""
        if self._target.is_local or self._partial.is_local:
            raise UsageError(f"{self.output}: names a local folder. Pass its path instead of a URL.")
        if self._scratch is not None and not is_url(self._scratch):
            check_scratch(self._scratch)
        first = next(iter(self._target.list()), None)  # asks the store: credentials, bucket, permission
        if first is None:
            return
        try:
            manifest = read_manifest(place_of(self._target), most_sources=0)
        except DatasetError as error:
            raise not_replaceable(self.output, error) from None
        if manifest is None:
            if self._is_begun():
                return
            raise not_replaceable(self.output, f"contains {first.key} but no manifest.json")
        if not self._is_published():
            return  # its run was taken over, and put the manifest all the same: `open` goes on
        if not self._may_replace():
            raise self._exists()
        listed = {file.path for file in manifest.files} | {MANIFEST_NAME}
        foreign = next((entry.key for entry in self._target.list() if entry.key not in listed), None)
        if foreign is not None:
            raise not_replaceable(self.output, why_it_stays(foreign))

    def _is_part(self) -> bool:
        parent, _, name = self._url.rpartition("/")
        return (
            is_part_name(name)
            and bool(parse(parent).path.strip("/"))
            and _holds(open_store(parent, self._options), MANIFEST_NAME)
        )

    def _may_replace(self) -> bool:
        return self._overwrite and not self._is_part()

    def _exists(self) -> Refused:
        return existing_part(self.output) if self._is_part() else existing_dataset(self.output)

    def _is_begun(self) -> bool:
        """Whether a run has been at work in the partial folder."""
        return _holds(self._partial, PLAN_NAME) or next(iter(self._partial.list(LOG_NAME)), None) is not None

    def _is_published(self) -> bool:
        """Whether the output is a finished dataset, and no run has begun to make another."""
        if not _holds(self._target, MANIFEST_NAME):
            return False
        if not _holds(self._partial, PLAN_NAME):
            return True
        try:
            if self._partial.head(MANIFEST_NAME).size != self._target.head(MANIFEST_NAME).size:
                return False
            return bytes(self._partial.read(MANIFEST_NAME)) == bytes(self._target.read(MANIFEST_NAME))
        except StoreNotFound:
            return False

    def remove_remains(self) -> None:
        """Remove the partial folder of a run that was killed between publishing and cleaning up, and its copy here."""
        if self._home.is_dir():
            with suppress(OSError, Refused):  # another run: then it stays
                self._local.take()
                self._remove_copy()
        if next(iter(self._partial.list()), None) is None:
            return
        # Another run, or a store that may not be written to: then it stays.
        with suppress(StoreError, Refused):
            self._lease.acquire()
            self.log.take_over()
            if self._is_published():
                self._remove()
        self._lease.release()

    def take(self) -> None:
        """See Workspace: the lease of the store, and the lock of the copy."""
        if not self._lease.is_held:
            self._lease.acquire()
            try:
                self._home.mkdir(mode=0o700, exist_ok=True)
                self._local.take()
            except BaseException:
                self._lease.release()
                raise

    def open(self, plan: PlanRecord) -> bool:
        """See Workspace."""
        self.take()
        self.log.take_over()
        if self._is_published():  # since `check_output`, or to be replaced
            if not self._may_replace():
                self._remove()
                raise self._exists()
            self._local.clear()
        else:
            self._fetch()
        goes_on = self._local.open(plan)
        if goes_on:
            # Until all is verified once more.
            self._delete(self._partial, [MANIFEST_NAME])
            self._delete(self._target, [MANIFEST_NAME])
            self._go_on_with_scratch()
        elif _holds(self._target, MANIFEST_NAME) and not self._may_replace():
            raise self._exists()
        else:
            self._clear(everything=False)
            if self._scratch is not None:
                self._partial.put(NOTE_NAME, self._scratch.encode())
            self._put_plan()
        if (shards := self.shard_store.store).is_local:
            shards.path.mkdir(exist_ok=True)
        self._is_open = True
        return goes_on

    def _fetch(self) -> None:
        """Make the copy: nothing of a former one is used."""
        self._local.clear()
        if (plan := _read(self._partial, PLAN_NAME)) is not None:
            self.shards.mkdir(exist_ok=True)
            self.log.fetch()
            self.plan.write_bytes(plan)

    def _noted_scratch(self) -> str | None:
        noted = _read(self._partial, NOTE_NAME)
        return None if noted is None else noted.decode()

    def _go_on_with_scratch(self) -> None:
        """The shards stay where they are, unless that is a folder that this machine does not see."""
        noted = self._noted_scratch()
        if noted is not None and not is_url(noted) and not Path(noted).is_dir():
            self._partial.put(NOTE_NAME, (self._scratch or "").encode())
        else:
            self._scratch = noted

    def former_plan(self) -> RecordFile | None:
        """See Workspace."""
        plan = _read(self._partial, PLAN_NAME)
        return None if plan is None else RecordFile(plan)

    def settle(self) -> None:
        """See Workspace."""
        self._local.settle()
        self._put_plan()

    def _put_plan(self) -> None:
        self.log.confirm()
        self._partial.put(PLAN_NAME, self.plan.read_bytes())

    def put_job(self, data: bytes) -> str:
        """See Workspace."""
        name = f"{JOB_NAME}-{hashlib.sha256(data).hexdigest()[:16]}"
        self._partial.put(name, data)
        return f"{self._url}.partial/{name}"

    def on_disk(self, paths: Iterable[str]) -> list[str]:
        """See Workspace: an object is as safe as its store makes it."""
        return []

    def clean_dataset(self, keep: set[str]) -> None:
        """See Workspace."""
        self._delete(self._target, (entry.key for entry in self._target.list() if entry.key not in keep))

    def publish(self) -> None:
        """See Workspace. Refused (exit 6) if another run has published the same since this one was begun."""
        try:
            manifest = bytes(self._partial.read(MANIFEST_NAME, version=self.dataset.manifest_version))
        finally:  # one that is gone or another was another run's to take
            self.log.confirm()
        is_ours = True
        try:
            self._target.put(MANIFEST_NAME, manifest, if_absent=True)
        except AlreadyThere:
            # Of a run that was taken over right after it had confirmed. If its plan was another, what it lists is gone.
            is_ours = bytes(self._target.read(MANIFEST_NAME)) != manifest
            if is_ours:
                self.log.confirm()
                self._target.put(MANIFEST_NAME, manifest)
        self.is_published = is_ours
        with suppress(Refused):  # whoever takes over now removes it
            self._remove()
        self._local.clear()
        self._is_open = False
        self.close()
        if not is_ours:
            raise Refused(
                f"{self.output}: another run of the same command published it first. The dataset is complete."
            )

    def close(self) -> None:
        """Let go of the lease; what was finished stays in the store."""
        if self._lease.is_held:
            try:
                if self._is_open and not self._local.log.holds_work:
                    with suppress(StoreError, Refused):  # the error that ended the run may prevent this too
                        self._clear(everything=True)
            finally:
                self._is_open = False
                self._lease.release()
                self._remove_copy()

    def _remove_copy(self) -> None:
        if not any(path.exists() and path.stat().st_size for path in (self.stacks, self.crashed_text)):
            self._local.clear()  # else messages speak of them
        self._local.close()
        with suppress(OSError):
            self._home.rmdir()

    def _delete(self, store: Store, keys: Iterable[str]) -> None:
        """Delete objects, if this run is still the one that may; Refused (exit 6) if not."""
        if own := list(keys):
            self.log.confirm()
            store.delete(own)

    def _clear(self, everything: bool) -> None:
        """Remove what another plan left, or this run, the dataset's manifest first of all; unless `everything`, what
        says that the output is ours stays."""
        self._delete(self._target, [MANIFEST_NAME])
        if everything:
            self._delete(self._target, (entry.key for entry in self._target.list()))
            self._remove()
        else:
            self._remove({LEASE_NAME, self.log.claim})
            self._delete(self._target, (entry.key for entry in self._target.list()))

    def _remove(self, keep: Iterable[str] = (LEASE_NAME,)) -> None:
        """Remove all but the dataset."""
        self._delete(self._partial, [PLAN_NAME])  # what is left without it counts as not begun
        shards = self._shards_in(self._noted_scratch() or None).store
        if shards.is_local:
            remove_folder(shards.path)
        else:
            self._delete(shards, (entry.key for entry in shards.list()))
        own = [entry.key for entry in self._partial.list() if entry.key not in keep and _is_own(entry.key)]
        self._partial.delete([*own, self.log.confirm()])


AnyWorkspace = Workspace | StoreWorkspace


def open_workspace(options: ConvertOptions) -> AnyWorkspace:
    """Return the work folder of options.output, a path or URL."""
    output, scratch = options.output, options.scratch
    if is_url(output):
        return StoreWorkspace(output, options.overwrite, scratch, options.storage_options, options.restart)
    if scratch is not None and is_url(scratch):
        raise UsageError(
            f"--scratch: must be a local folder unless --output is a URL (got {shown_url(scratch)})"
        )
    return Workspace(output, options.overwrite, scratch, options.restart)


def _holds(store: Store, key: str) -> bool:
    try:
        store.head(key)
    except StoreNotFound:
        return False
    return True


def _read(store: Store, key: str) -> bytes | None:
    try:
        return bytes(store.read(key))
    except StoreNotFound:
        return None


def _is_own(key: str) -> bool:
    return key in _OWN_NAMES or key.startswith(_OWN_FOLDERS)
