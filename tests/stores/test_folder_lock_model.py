"""A model of the lock of a folder: runs on several hosts that take it, work, finish or are killed at any moment, also
while another looks at the lock file. At most one works there at a time, and where nobody does the next one may.

Locks of the system are those of this model: seen by all hosts, or (a network file system) by those of one kernel. A
host of another name may have the same kernel, as a container has.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from state_machines import finds_fault, run_model

from tokenmill.stores import folder_lock, system
from tokenmill.stores.folder_lock import FolderLock

HOSTS = [("a", "kernel 1"), ("box", "kernel 1"), ("b", "kernel 2")]  # name, start of the kernel


class RefusedError(Exception):
    pass


class Run:
    """One command at work, on a host."""

    def __init__(self, host: int) -> None:
        self.host = host
        self.lock: FolderLock | None = None

    @property
    def has_lock(self) -> bool:
        return self.lock is not None and self.lock.is_held


class Locking(RuleBasedStateMachine):
    """runs that work are those that have the lock; only those of the same folder harm each other."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._root = Path(self._folder.name, "out.partial")
        self._working, self._all = list[Run](), list[Run]()
        self._locks: list[tuple[int, str, Run]] = []  # inode, domain, holder
        self._acquiring = list[Run]()
        self._host, self._meanwhile = 0, list[Any]()
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(system, "host_name", lambda: HOSTS[self._host][0])
        self._patch.setattr(folder_lock, "boot_id", lambda: HOSTS[self._host][1])
        self._patch.setattr(system, "lock", self._lock)

    @initialize(shared=st.booleans())
    def begin(self, shared: bool) -> None:
        """shared: all hosts see a lock."""
        self._shared = shared

    def teardown(self) -> None:
        for run in self._all:
            if run.lock is not None:
                run.lock.release()
        self._patch.undo()
        self._folder.cleanup()

    def _lock(self, descriptor: int) -> None:
        while self._meanwhile:  # between opening the file and the lock
            self._meanwhile.pop()()
        domain = "all" if self._shared else HOSTS[self._host][1]
        inode = os.fstat(descriptor).st_ino
        self._locks = [held for held in self._locks if held[2] in self._acquiring or held[2].has_lock]
        if any(held[:2] == (inode, domain) for held in self._locks):
            raise BlockingIOError
        self._locks.append((inode, domain, self._acquiring[-1]))

    def _take(self, host: int) -> bool:
        before, self._host = self._host, host
        run = Run(host)
        self._all.append(run)
        self._root.mkdir(exist_ok=True)
        run.lock = FolderLock(self._root / "lock", self._root.with_suffix(""), RefusedError)
        self._acquiring.append(run)
        try:
            run.lock.acquire()
        except (RefusedError, FileNotFoundError):  # the folder itself was removed just now
            return False
        finally:
            self._acquiring.pop()
            self._host = before
        assert not self._working, "two work there"
        self._working.append(run)
        return True

    def _finish(self) -> None:
        if self._working:
            run = self._working.pop()
            assert run.lock is not None
            assert (self._root / "lock").exists(), "a run works there without a lock file"
            run.lock.remove_folder()

    def _kill(self) -> None:
        if self._working:
            lock = self._working.pop().lock
            assert lock is not None
            assert lock._file is not None
            lock._file.close()  # by the system; the lock file still names its holder
            lock._file = None

    def _stop(self) -> None:
        if self._working:
            lock = self._working.pop().lock
            assert lock is not None
            lock.release()  # and the folder stays, with the work done so far
            assert self._read_holder() == {}

    def _read_holder(self) -> dict[str, Any]:
        with suppress(FileNotFoundError), (self._root / "lock").open() as file:
            return folder_lock._holder(file)
        return {}

    @rule(host=st.integers(0, len(HOSTS) - 1))
    def take(self, host: int) -> None:
        holder = self._working[0].host if self._working else None
        by = self._read_holder() if holder is None else {}
        taken = self._take(host)
        assert not (taken and holder is not None)
        foreign = by and by.get("host") != HOSTS[host][0] and by.get("boot") != HOSTS[host][1]
        if holder is None and not foreign:
            assert taken, "nobody works there, and the next one may not"
        if foreign:
            assert not taken, "a run of a host that this one cannot look for was taken over"

    @rule(host=st.integers(0, len(HOSTS) - 1), rival=st.integers(0, len(HOSTS) - 1), what=st.data())
    def take_while_another_does_something(self, host: int, rival: int, what: st.DataObject) -> None:
        """Between the look at the file and its lock the holder ends, and perhaps a third one comes."""
        if not self._shared and HOSTS[host][1] != HOSTS[rival][1]:
            return  # two that begin at the same moment do not see each other there
        events = {
            "finish": self._finish,
            "kill": self._kill,
            "stop": self._stop,
            "take": lambda: self._take_inner(rival),
        }
        names = what.draw(st.lists(st.sampled_from(sorted(events)), min_size=1, max_size=3))
        self._meanwhile = [events[name] for name in reversed(names)]
        self._take(host)
        self._meanwhile = []

    def _take_inner(self, host: int) -> None:
        waiting, self._meanwhile = self._meanwhile, []
        self._take(host)
        self._meanwhile = waiting

    @rule()
    def finish(self) -> None:
        self._finish()

    @rule()
    def kill(self) -> None:
        self._kill()

    @rule()
    def stop(self) -> None:
        self._stop()

    @rule()
    def delete_the_lock(self) -> None:
        """A person does, as the error says, when nobody works there."""
        if not self._working:
            (self._root / "lock").unlink(missing_ok=True)


def test_one_works_at_a_time() -> None:
    run_model(Locking, 100, 25)


@pytest.mark.parametrize(
    "fault", ["the file was deleted meanwhile", "whose host cannot be looked for", "no lock"]
)
def test_the_model_finds_faults(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "the file was deleted meanwhile":
        monkeypatch.setattr(folder_lock, "has_name", lambda *_: True)
    elif fault == "whose host cannot be looked for":
        monkeypatch.setattr(folder_lock, "_holder", lambda file: {})
    else:
        monkeypatch.setattr(Locking, "_lock", lambda *_: None)
    finds_fault(Locking, 100, 25)
