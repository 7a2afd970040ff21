"""Locks of folders and leases in stores: one run works at a time, and after it the next one may.

In the model of folder locks, runs on several hosts acquire the lock, finish, stop or are killed at any moment, also
while another one looks at the lock file. All hosts see a lock of the system, or, on a network disk, only those with the
same kernel. Hosts with different names may have the same kernel, as containers do.
"""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from state_machines import run_model

from tokenmill.stores import Store, StoreNotFound, folder_lock, lease, open_store
from tokenmill.stores.folder_lock import FolderLock
from tokenmill.stores.lease import Lease

HOSTS = [("a", "kernel 1"), ("box", "kernel 1"), ("b", "kernel 2")]  # name, start of the kernel
HOST = st.integers(0, len(HOSTS) - 1)


class RefusedError(Exception):
    pass


class Locking(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._root = Path(self._folder.name, "out.partial")
        self._working, self._all, self._acquiring = list[FolderLock](), list[FolderLock](), list[FolderLock]()
        self._locks: list[tuple[int, str, FolderLock]] = []  # inode, hosts that see it, holder
        self._host, self._meanwhile = 0, list[Any]()
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(folder_lock, "host_name", lambda: HOSTS[self._host][0])
        self._patch.setattr(folder_lock, "boot_id", lambda: HOSTS[self._host][1])
        self._patch.setattr(fcntl, "flock", self._lock)

    @initialize(is_shared=st.booleans())
    def begin(self, is_shared: bool) -> None:
        """is_shared: all hosts see a lock."""
        self._is_shared = is_shared

    def teardown(self) -> None:
        for lock in self._all:
            lock.release()
        self._patch.undo()
        self._folder.cleanup()

    def _lock(self, file: io.FileIO, operation: int) -> None:
        while self._meanwhile:  # between opening the file and locking it
            self._meanwhile.pop()()
        domain = "all" if self._is_shared else HOSTS[self._host][1]
        inode = os.fstat(file.fileno()).st_ino
        self._locks = [held for held in self._locks if held[2] in self._acquiring or held[2].is_held]
        if any(held[:2] == (inode, domain) for held in self._locks):
            raise BlockingIOError
        self._locks.append((inode, domain, self._acquiring[-1]))

    def _acquire(self, host: int) -> bool:
        before, self._host = self._host, host
        self._root.mkdir(exist_ok=True)
        lock = FolderLock(self._root / "lock", self._root.with_suffix(""), RefusedError)
        self._all.append(lock)
        self._acquiring.append(lock)
        try:
            lock.acquire()
        except (RefusedError, FileNotFoundError):  # the folder was removed just now
            return False
        finally:
            self._acquiring.pop()
            self._host = before
        assert not self._working, "two runs work"
        self._working.append(lock)
        return True

    def _holder(self) -> dict[str, Any]:
        with suppress(FileNotFoundError, ValueError):
            found: dict[str, Any] = json.loads((self._root / "lock").read_text())
            return found
        return {}

    @rule(host=HOST)
    def acquire(self, host: int) -> None:
        is_free, holder = not self._working, self._holder()
        is_acquired = self._acquire(host)
        is_foreign = bool(holder) and holder["host"] != HOSTS[host][0] and holder["boot"] != HOSTS[host][1]
        assert is_acquired == (is_free and not is_foreign)

    @rule(host=HOST, rival=HOST, what=st.data())
    def acquire_while_something_happens(self, host: int, rival: int, what: st.DataObject) -> None:
        """Before the file is locked, the holder ends, and perhaps another run starts."""
        if not self._is_shared and HOSTS[host][1] != HOSTS[rival][1]:
            return  # runs that start at the same moment do not see each other there
        events = {
            "finish": self.finish,
            "kill": self.kill,
            "stop": self.stop,
            "acquire": lambda: self._rival(rival),
        }
        names = what.draw(st.lists(st.sampled_from(sorted(events)), min_size=1, max_size=3))
        self._meanwhile = [events[name] for name in reversed(names)]
        self._acquire(host)
        self._meanwhile = []

    def _rival(self, host: int) -> None:
        waiting, self._meanwhile = self._meanwhile, []
        self._acquire(host)
        self._meanwhile = waiting

    @rule()
    def finish(self) -> None:
        if self._working:
            assert (self._root / "lock").exists(), "a run works without a lock file"
            self._working.pop().remove_folder()

    @rule()
    def kill(self) -> None:
        if self._working:
            lock = self._working.pop()
            lock._file.close()  # type: ignore[union-attr]
            lock._file = None  # the file still names the holder

    @rule()
    def stop(self) -> None:
        """Stop orderly, with work left in the folder: any host may continue."""
        if self._working:
            self._working.pop().release()
            assert self._holder() == {}

    @rule()
    def delete_the_lock(self) -> None:
        """As a person does, as the error says, when no run works."""
        if not self._working:
            (self._root / "lock").unlink(missing_ok=True)


@pytest.mark.promise("one-run")
def test_one_run_works_at_a_time() -> None:
    run_model(Locking, 100, 25)


def lock_of(folder: Path) -> FolderLock:
    return FolderLock(folder / "lock", folder, RefusedError)


def test_a_look_at_a_lock_does_not_take_it(tmp_path: Path) -> None:
    first, second = lock_of(tmp_path), lock_of(tmp_path)
    second.check_free()
    assert not list(tmp_path.iterdir())
    first.acquire()
    for attempt in (second.check_free, second.acquire):
        with pytest.raises(RefusedError, match=f"process {os.getpid()} on "):
            attempt()
    first.release()
    second.check_free()
    first.acquire()
    first.release()


def test_a_lock_that_cannot_name_its_holder_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder is synced, since a client of NFS delays writes. The disk may be full by then."""

    def refuse(descriptor: int) -> None:
        assert json.loads(os.pread(descriptor, 1000, 0))["process"] == os.getpid()
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    lock = lock_of(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(OSError, match="Disk quota exceeded: '.*lock'"):
            lock.acquire()
    assert not lock.is_held
    assert (tmp_path / "lock").read_bytes() == b""
    lock.acquire()
    lock.remove_folder()
    assert not tmp_path.exists()


@pytest.mark.usefixtures("open_files_keep_names")
def test_a_lock_file_that_was_removed_or_keeps_a_name_on_nfs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run ended with "Directory not empty" after all was done."""
    folder, flock = tmp_path / "out.partial", fcntl.flock
    folder.mkdir()
    lock = lock_of(folder)
    lock.acquire()
    lock.remove_folder()
    assert not folder.exists()

    def lock_and_remove(file: io.FileIO, operation: int) -> None:
        flock(file, operation)
        (tmp_path / "lock").unlink()

    monkeypatch.setattr(fcntl, "flock", lock_and_remove)
    with pytest.raises(RefusedError):
        lock_of(tmp_path).acquire()


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    if request.param == "memory":
        pytest.importorskip("obstore", reason="obstore is not installed")
    monkeypatch.setattr(lease, "WATCHED_SECONDS", 0.1)
    return open_store(
        str(tmp_path) if request.param == "folder" else f"memory://{tmp_path.name}-{id(request)}"
    )


def test_a_lease_excludes_others_until_it_is_released(store: Store) -> None:
    first, second = (Lease(store, "out", RefusedError) for _ in "12")
    assert first.check_free() is None
    first.acquire()
    assert (first.is_held, second.is_held) == (True, False)
    for attempt in (second.acquire, second.check_free):
        with pytest.raises(RefusedError, match=f"process {os.getpid()} on "):
            attempt()
    first.release()
    first.release()
    second.acquire()
    second.release()
    with pytest.raises(StoreNotFound):
        store.head(lease.NAME)


@pytest.mark.promise("lease")
@pytest.mark.parametrize("age", [lease.TAKEN_OVER_SECONDS + 1, -3600.0])
def test_a_lease_that_is_not_renewed_is_taken_over(
    store: Store, monkeypatch: pytest.MonkeyPatch, age: float
) -> None:
    killed, next_run = (Lease(store, "out", RefusedError) for _ in "12")
    with monkeypatch.context() as patch:
        now = lease.time.time()
        patch.setattr(lease.time, "time", lambda: now - age)
        killed._write()
    monkeypatch.setattr(lease.time, "sleep", lambda _: killed.renew())  # it lives, with another clock
    with pytest.raises(RefusedError):
        next_run.acquire()
    with monkeypatch.context() as patch:
        patch.setattr(lease.time, "time", lambda: now - age)
        killed.renew()
    monkeypatch.setattr(lease.time, "sleep", lambda _: None)
    next_run.acquire()
    killed.renew()
    killed.release()
    assert json.loads(bytes(store.read(lease.NAME)))["holder"] == next_run.holder
    next_run.release()


def test_of_two_runs_that_start_at_once_one_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (Lease(store, "out", RefusedError) for _ in "12")
    monkeypatch.setattr(second, "check_free", lambda: first.acquire())
    with pytest.raises(RefusedError, match="same moment"):
        second.acquire()
    first.release()
