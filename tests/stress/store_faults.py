"""Faults of a conversion from a store to a store, at one of its requests.

A `Happening` applies one of `KINDS` to a run that reaches its store through a proxy. The proxy injects network faults.
While it holds a request, a Happening can also kill or stop processes and change inputs.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from faulty_proxy import HARMLESS, Faults, Proxy, Strike
from processes import KILLED, Outcome, Started

HANG_SECONDS = 120.0
_FOR_EVER = 1 << 30
_LATE_REQUESTS = 25  # other requests before a late one
INPUT, SHARD, OUTPUT = r"^GET \S*/in/", r"^PUT \S*/shards/", r"^PUT \S*/(encoded_tokens|seq_starts)/c/"
TASKS = f"{INPUT}|{SHARD}|{OUTPUT}|^GET \\S*/shards/"  # requests of workers
BATCH = r"^PUT \S*/journal/"


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    codes: exit codes of the run, in addition to 0.
    fault: of the proxy, for `count` requests.
    does: method of Happening to call, for the faults "before" and "after".
    of: pattern of the requests that it can strike.
    engine: of the run; "inline" is the driver alone.
    is_late: objects may be left next to a finished dataset, or written after the next run; one more run removes them.
    weight: share of the points.
    """

    codes: tuple[int, ...]
    fault: str
    does: str = ""
    of: str = ""
    count: int = 1
    engine: str = "inline"
    is_late: bool = False
    weight: int = 1


KINDS = {
    "driver killed before a journal batch": Kind((KILLED,), "before", "kill_driver", BATCH, weight=3),
    "driver killed after a journal batch": Kind((KILLED,), "after", "kill_driver", BATCH, weight=3),
    "driver killed before a request": Kind((KILLED,), "before", "kill_driver", weight=3),
    "driver killed after a request": Kind((KILLED,), "after", "kill_driver", weight=3),
    "driver killed while workers work": Kind(
        (KILLED,), "before", "kill_driver", TASKS, engine="own", is_late=True, weight=2
    ),
    "driver stopped, another takes over": Kind((6,), "after", "stop_driver", weight=3),
    "worker killed before its request": Kind((), "before", "kill_worker", TASKS, engine="own"),
    "worker killed after its request": Kind((), "after", "kill_worker", TASKS, engine="own"),
    "worker killed, its put comes late": Kind(
        (), "before", "kill_and_hold", f"{SHARD}|{OUTPUT}", engine="own", is_late=True, weight=2
    ),
    "worker declared lost goes on": Kind(
        (), "after", "stop_worker", f"{INPUT}|{SHARD}|{OUTPUT}", engine="dask", is_late=True, weight=2
    ),
    **{f"{fault}, once": Kind((), fault) for fault in (*HARMLESS, "lost", "stall")},
    "lost put": Kind((), "lost", of="^PUT"),
    "torn put": Kind((), "torn", of="^PUT"),
    **{f"{fault}, three in a row": Kind((), fault, count=3) for fault in ("reset", "503", "429")},
    "many at random": Kind((), "random", weight=2),
    "503 from then on": Kind((4,), "503", count=_FOR_EVER, is_late=True),
    "no connection from then on": Kind((4,), "refuse", count=_FOR_EVER, is_late=True),
    "credential expired": Kind((4,), "expired", count=_FOR_EVER, is_late=True, weight=2),
    "permission lost": Kind((4,), "denied", count=_FOR_EVER, is_late=True),
    "input changed": Kind((3,), "before", "change_input"),
    "input gone": Kind((3,), "before", "remove_input"),
}


class Happening:
    """A fault of one run. Set `run` and `proxy` before the run sends a request.

    at: number of the request, of those that the kind can strike.
    workers(): processes of an engine that the run does not start.
    another(): runs the same command to its end on another machine.
    change_input(data): rewrites an input, or with None removes it.
    """

    run: Started
    proxy: Proxy

    def __init__(
        self,
        kind: Kind,
        at: int,
        seed: int,
        workers: Callable[[], Iterable[int]],
        another: Callable[[], None],
        change_input: Callable[[bytes | None], None],
    ) -> None:
        self._seed, self._workers, self._another, self._change_input = seed, workers, another, change_input
        self._released = threading.Event()  # for held requests
        self._stopped = threading.Event()  # when the driver is stopped
        self._stops_driver = kind.does == "stop_driver"
        self._stopped_worker = 0
        self.faults = Faults(stall_seconds=8.0)
        if kind.fault == "random":
            self.faults = Faults((*HARMLESS, "lost"), rate=0.15, seed=seed)
        elif kind.does:
            self.faults.strikes = [Strike(kind.of, at, kind.fault, call=getattr(self, kind.does))]
        else:
            self.faults.strikes = [Strike(kind.of, at, kind.fault, kind.count)]

    def wait(self) -> Outcome:
        """Return the outcome of the run."""
        self.take_over()
        return self.run.wait(HANG_SECONDS, settles=False)

    def take_over(self) -> None:
        """If the driver is to be stopped, let another one take over before it continues."""
        if self._stops_driver and self._is_stopped():
            self._another()
            os.kill(self.run.pid, signal.SIGCONT)

    def _is_stopped(self) -> bool:
        """Wait until the driver is stopped. Return False if it ends first."""
        while not self._stopped.wait(0.05):
            if not any(_open_files(self.run.pid)):
                return False
        return True

    def let_go(self) -> None:
        """Release held requests and stopped workers."""
        self._released.set()
        self._continue_worker()
        time.sleep(0.5)  # until their objects are written

    # Methods that run while the proxy holds a request. port: of the client.

    def kill_driver(self, port: int) -> bool:
        os.kill(self.run.pid, signal.SIGKILL)
        return False

    def stop_driver(self, port: int) -> bool:
        os.kill(self.run.pid, signal.SIGSTOP)
        self._stopped.set()
        return True

    def kill_worker(self, port: int) -> bool:
        worker = self._process_at(port)
        if worker == self.run.pid:  # the driver reads inputs, too; wait for a worker
            return True
        os.kill(worker, signal.SIGKILL)
        return False

    def kill_and_hold(self, port: int) -> bool:
        if not self.kill_worker(port):
            self._wait_until_late()
        return True

    def stop_worker(self, port: int) -> bool:
        worker = self._process_at(port)
        if worker == self.run.pid:
            return True
        self._stopped_worker = worker
        os.kill(self._stopped_worker, signal.SIGSTOP)
        threading.Thread(target=self._continue_late, daemon=True).start()
        return True

    def change_input(self, port: int) -> bool:
        self._change_input(b"other text" * (1 + self._seed % 500))
        return True

    def remove_input(self, port: int) -> bool:
        self._change_input(None)
        return True

    def _continue_late(self) -> None:
        self._wait_until_late()
        self._continue_worker()

    def _continue_worker(self) -> None:
        if self._stopped_worker:
            with suppress(ProcessLookupError):
                os.kill(self._stopped_worker, signal.SIGCONT)

    def _wait_until_late(self) -> None:
        """Wait for some requests of other processes, or until `let_go`."""
        count = len(self.proxy.requests) + (_LATE_REQUESTS if self._seed % 2 else _FOR_EVER)
        while len(self.proxy.requests) < count and not self._released.wait(0.05):
            pass

    def _process_at(self, port: int) -> int:
        """Return the process of the run or its engine that owns a local port."""
        lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
        ends = [f"0100007F:{each:04X}" for each in (port, urlsplit(self.proxy.url).port)]
        socket = next((f"socket:[{line[9]}]" for line in lines if line[1:3] == ends), "")
        group = [int(path.name) for path in Path("/proc").glob("[0-9]*") if _group(path) == self.run.pid]
        for pid in (*group, *self._workers()):
            if socket in _open_files(pid):
                return pid
        return self.run.pid  # the request is of another run at the same proxy


def _open_files(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for end in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # just closed
                yield str(end.readlink())


def _group(process: Path) -> int:
    with suppress(OSError):
        return int((process / "stat").read_text(errors="replace").rpartition(")")[2].split()[2])
    return 0
