"""File operations that fail, are cut short, or are the last one of a process, and answers of network disks."""

from __future__ import annotations

import errno
import random
import signal
import time
from typing import Any

from bench import Bench, Fault
from injector import Injector
from processes import KILLED, Outcome


class FileFault(Fault):
    """One operation fails. options: see Injector.environment."""

    def __init__(
        self, name: str, mode: str, codes: tuple[int, ...] = (), error: int = 0, **options: Any
    ) -> None:
        super().__init__(name, codes)
        self._options = {"mode": mode, "error": error, **options}
        self.who = self._options.get("who", "all")

    def count_points(self, bench: Bench) -> int:
        injector = Injector(bench.build, bench.root)
        bench.run(environment=injector.environment(**self._options))
        return injector.operations

    def strike(self, bench: Bench, at: int, rng: random.Random) -> Outcome:
        injector = Injector(bench.build, bench.root)
        return bench.run(environment=injector.environment(at, delays=bench.delays, **self._options))


class Rival(Fault):
    """The same command starts a second time, as on another machine."""

    def count_points(self, bench: Bench) -> int:
        return 20

    def strike(self, bench: Bench, at: int, rng: random.Random) -> Outcome:
        started = bench.start()
        time.sleep(at * 0.05)
        rival = bench.rival()
        outcome = bench.wait(started)
        bench.end_rival(rival)
        return outcome


KILLS = [
    FileFault("worker killed", "kill", who="worker"),
    FileFault("driver killed", "kill", (KILLED,), who="main"),
    FileFault("driver killed while a worker works", "killmain", (KILLED,), who="worker"),
    FileFault("group killed", "killgroup", (KILLED,)),
    FileFault("interrupted", "interruptmain", (130, -signal.SIGINT), who="main"),
]
RIVAL = Rival("two at once", (6,))
FILE_FAULTS = [
    *KILLS,
    FileFault("no space, once", "errno", (4,), errno.ENOSPC),
    FileFault("no space from then on", "sticky", (4,), errno.ENOSPC),
    FileFault("I/O error, once", "errno", (4,), errno.EIO),
    FileFault("quota from then on", "sticky", (4,), errno.EDQUOT),
    FileFault("short write", "short"),
    FileFault("short read", "short", reads=True),
    FileFault("read error, once", "errno", (2, 3, 4, 6), errno.EIO, reads=True),
    FileFault("answer lost, repetition refused", "repeat", (4,), only="names"),
    FileFault("data lost, reported on close", "errno", (4,), errno.EDQUOT, only="close"),
    FileFault("stale file", "errno", (2, 3, 4, 6), errno.ESTALE, reads=True),
    FileFault("no locks", "sticky", (4,), errno.ENOLCK, only="locks"),
    FileFault("folders cannot be synced", "sticky", error=errno.EINVAL, only="folders"),
]
