"""File operations that fail, are cut short, or are the last one of a process."""

from __future__ import annotations

import errno
import random
import signal

from bench import Bench, Fault
from injector import Counted, Injector
from processes import KILLED, Outcome


class FileFault(Fault):
    """One operation fails. The arguments are explained in shim.c."""

    def __init__(
        self,
        name: str,
        mode: str,
        codes: tuple[int, ...] = (),
        error: int = 0,
        who: str = "all",
        reads: bool = False,
        only: str = "",
    ) -> None:
        super().__init__(name, codes)
        self._mode, self._error, self._who, self._reads, self._only = mode, error, who, reads, only

    def count_points(self, bench: Bench) -> int:
        started = self._start(bench, 0)
        started.wait()
        return started.operations

    def strike(self, bench: Bench, at: int, rng: random.Random) -> Outcome:
        return self._start(bench, at).wait()

    def _start(self, bench: Bench, at: int) -> Counted:
        injector = Injector(bench.build, bench.root)
        how = (self._mode, self._error, self._who, self._reads) if at else ("", 0, self._who, self._reads)
        return injector.start(bench.command(), at, *how, only=self._only)


FILE_FAULTS = [
    FileFault("worker killed", "kill", who="worker"),
    FileFault("driver killed", "kill", (KILLED,), who="main"),
    FileFault("driver killed while a worker works", "killmain", (KILLED,), who="worker"),
    FileFault("group killed", "killgroup", (KILLED,)),
    FileFault("interrupted", "interruptmain", (130, -signal.SIGINT), who="main"),
    FileFault("no space, once", "errno", (4,), errno.ENOSPC),
    FileFault("no space from then on", "sticky", (4,), errno.ENOSPC),
    FileFault("I/O error, once", "errno", (4,), errno.EIO),
    FileFault("quota from then on", "sticky", (4,), errno.EDQUOT),
    FileFault("answer lost, repetition refused", "repeat", (4,), only="names"),
    FileFault("data lost, reported on close", "errno", (4,), errno.EDQUOT, only="close"),
    FileFault("short write", "short"),
    FileFault("short read", "short", reads=True),
    FileFault("read error, once", "errno", (2, 3, 4, 6), errno.EIO, reads=True),
]
