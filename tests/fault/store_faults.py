"""What may happen to a conversion from a store to a store, at one of its requests, and what may come of it.

A `Happening` is one of `KINDS` come to a run: faults of the network by a proxy, or something that is done while the
request waits there: processes are killed and stopped, requests held back, inputs written anew.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from faulty_proxy import HARMLESS, Faults, Proxy, Strike

ROOT = Path(__file__).parents[2]
HANG_SECONDS = 120.0
KILLED = -signal.SIGKILL
_FOR_EVER = 1 << 30
_LATE_REQUESTS = 25  # so many others come before what is late
INPUT, SHARD, OUTPUT = r"^GET \S*/in/", r"^PUT \S*/shards/", r"^PUT \S*/(encoded_tokens|seq_starts)/c/"
TASKS = f"{INPUT}|{SHARD}|{OUTPUT}|^GET \\S*/shards/"  # requests of workers
BATCH = r"^PUT \S*/journal/"


@dataclass(frozen=True)
class Kind:
    """What happens, and with which codes beside 0 the run may end. of: the requests that it may happen at.

    fault: of the proxy, for `count` requests; does: a method of Happening, for "before" and "after".
    engine: "inline" is the driver alone. is_late: something may be left where the dataset is finished, or still be
    written when the run after it has ended; one more is to clear that. weight: its share of points.
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


class Started(Protocol):
    """A run with a process of its own."""

    pid: int

    def wait(self) -> Any:
        """What became of it."""
        ...


class Ended(NamedTuple):
    """What became of a run."""

    code: int
    output: str
    hung: bool


class Run:
    """A driver in a process group of its own."""

    def __init__(self, command: Sequence[str | Path], folder: Path, temporary: Path) -> None:
        self._told = tempfile.TemporaryFile()  # noqa: SIM115 - read when it has ended
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._told,
        )
        self.pid = self.process.pid

    def wait(self) -> Ended:
        """Its end, for which it has HANG_SECONDS."""
        hung = False
        try:
            code = self.process.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            hung, code = True, KILLED
            os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()
        with self._told as told:
            told.seek(0)
            return Ended(code, told.read().decode(errors="replace"), hung)


class Happening:
    """What comes to the `run` behind the `proxy`, both of which are set when they are there.

    workers(): processes of an engine that the run does not start. another(): does the same command to its end,
    elsewhere. change_input(data): writes an input anew, or removes it.
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
        self._goes_on = threading.Event()  # what is held
        self._stopped = threading.Event()  # the driver is
        self._stops_driver = kind.does == "stop_driver"
        self._stopped_worker = 0
        self.faults = Faults(stall_seconds=8.0)
        if kind.fault == "random":
            self.faults = Faults((*HARMLESS, "lost"), rate=0.15, seed=seed)
        elif kind.does:
            self.faults.strikes = [Strike(kind.of, at, kind.fault, call=getattr(self, kind.does))]
        else:
            self.faults.strikes = [Strike(kind.of, at, kind.fault, kind.count)]

    def wait(self) -> Any:
        """The end of the run."""
        self.take_over()
        return self.run.wait()

    def take_over(self) -> None:
        """Where the driver is to be stopped: another does its work meanwhile."""
        if self._stops_driver and self._is_stopped():
            self._another()
            os.kill(self.run.pid, signal.SIGCONT)

    def _is_stopped(self) -> bool:
        """Whether the driver comes to stand still, before it ends."""
        while not self._stopped.wait(0.05):
            if not any(_open_files(self.run.pid)):
                return False
        return True

    def let_go(self) -> None:
        """What was held goes on now."""
        self._goes_on.set()
        self._continue_worker()
        time.sleep(0.5)  # until it was written

    # -- what is done while a request waits in the proxy; port: of the client

    def kill_driver(self, port: int) -> bool:
        os.kill(self.run.pid, signal.SIGKILL)
        return False

    def stop_driver(self, port: int) -> bool:
        os.kill(self.run.pid, signal.SIGSTOP)
        self._stopped.set()
        return True

    def kill_worker(self, port: int) -> bool:
        worker = self._process_at(port)
        if worker == self.run.pid:  # the driver looks into inputs, too: this is no request of a worker
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
        """For some requests of others, or until all is over."""
        count = len(self.proxy.requests) + (_LATE_REQUESTS if self._seed % 2 else _FOR_EVER)
        while len(self.proxy.requests) < count and not self._goes_on.wait(0.05):
            pass

    def _process_at(self, port: int) -> int:
        """The process, of the run or its engine, that has this end of a connection on loopback."""
        lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
        ends = [f"0100007F:{each:04X}" for each in (port, urlsplit(self.proxy.url).port)]
        socket = next((f"socket:[{line[9]}]" for line in lines if line[1:3] == ends), "")
        group = [int(path.name) for path in Path("/proc").glob("[0-9]*") if _group(path) == self.run.pid]
        for pid in (*group, *self._workers()):
            if socket in _open_files(pid):
                return pid
        return self.run.pid  # of another run, at the same proxy: none of a worker of this one


def _open_files(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for end in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                yield str(end.readlink())


def _group(process: Path) -> int:
    with suppress(OSError):
        return int((process / "stat").read_text(errors="replace").rpartition(")")[2].split()[2])
    return 0
