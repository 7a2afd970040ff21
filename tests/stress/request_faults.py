"""Faults of a job on a store, at one of its requests.

The proxy in front of the server injects network faults. While it holds a request, a fault can also kill or stop
processes and change inputs.

Not tried, because no store makes two requests atomic: a driver that pauses between the check of its lease and the
request that follows.
"""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from bench import Bench, Fault
from faulty_proxy import HARMLESS, Faults, Strike
from processes import KILLED, Outcome, Started

_FOR_EVER = 1 << 30
_LATE_REQUESTS = 25  # other requests before a late one
INPUT, SHARD, OUTPUT = r"^GET \S*/in/", r"^PUT \S*/shards/", r"^PUT \S*/(encoded_tokens|seq_starts)/c/"
TASKS = f"{INPUT}|{SHARD}|{OUTPUT}|^GET \\S*/shards/"  # requests of workers
BATCH = r"^PUT \S*/journal/"


class RequestFault(Fault):
    """A fault at one request.

    fault: of the proxy, for `count` requests; "random" for many requests at random.
    does: method to call, for the faults "before" and "after".
    of: pattern of the requests that it can strike.
    executor: of the job; "inline" is the driver alone.
    is_late: see Fault. Objects may be left next to a finished dataset, or written after the next run.
    weight: share of the points.
    """

    def __init__(
        self,
        name: str,
        codes: tuple[int, ...],
        fault: str,
        does: str = "",
        of: str = "",
        count: int = 1,
        executor: str = "inline",
        is_late: bool = False,
        weight: int = 1,
    ) -> None:
        super().__init__(name, codes)
        self.is_late, self.weight = is_late, weight
        self._fault, self._does, self._of, self._count, self._executor = fault, does, of, count, executor
        self._places = dict[str, list[int]]()
        self._released, self._stopped = threading.Event(), threading.Event()  # held requests; the driver
        self._released.set()
        self._run: Started
        self._bench: Bench
        self._seed = 0

    def count_points(self, bench: Bench) -> int:
        first = len(bench.proxy.requests)
        bench.run()
        own = [line for line in bench.proxy.requests[first:] if re.search(self._of, line)]
        places = range(len(own))
        if self.name.startswith("input"):  # those that were not listed yet would be others from the beginning
            places = range(
                next(at for at, line in enumerate(own) if "prefix=" in line and "in%2F" in line) + 1, len(own)
            )
        self._places[bench.name] = [
            at
            for at in places
            if self._does != "stop_driver"
            or not re.search(r"\?delete|plan\.json", "".join(own[at + 1 : at + 2]))
        ]
        return len(self._places[bench.name])

    def strike(self, bench: Bench, at: int, rng: random.Random) -> Outcome:
        """at: a point if points were counted, otherwise the number of the request, from 1."""
        self._bench, self._seed = bench, rng.randrange(1 << 16)
        self._released, self._stopped = threading.Event(), threading.Event()
        network, settings = bench.proxy.faults, bench.settings
        place = self._places[bench.name][at - 1] if bench.name in self._places else at - 1
        call = getattr(self, self._does) if self._does else lambda port: True
        strike = Strike(self._of, place, self._fault, self._count, call)
        faults = replace(network, strikes=[strike], stall_seconds=8.0)
        if self._fault == "random":
            faults = Faults((*HARMLESS, "lost"), rate=0.15, seed=self._seed)
        bench.proxy.faults = faults
        if settings.get("executor") in (None, "own", "inline"):
            bench.settings = settings | {"executor": self._executor}
        self._run = bench.start()
        bench.settings = settings
        if self._does == "stop_driver" and self._is_stopped():
            bench.end_rival(bench.rival())
            os.kill(self._run.pid, signal.SIGCONT)
        outcome = bench.wait(self._run)
        bench.proxy.faults = network
        return outcome

    def let_go(self) -> None:
        if not self._released.is_set():
            self._released.set()
            time.sleep(0.5)  # until their objects are written

    def _is_stopped(self) -> bool:
        """Wait until the driver is stopped. Return False if it ends first."""
        while not self._stopped.wait(0.05):
            if not any(_open_files(self._run.pid)):
                return False
        return True

    # Methods that run while the proxy holds a request. port: of the client. False: the request is lost.

    def kill_driver(self, port: int) -> bool:
        os.kill(self._run.pid, signal.SIGKILL)
        return False

    def stop_driver(self, port: int) -> bool:
        os.kill(self._run.pid, signal.SIGSTOP)
        self._stopped.set()
        return True

    def kill_worker(self, port: int) -> bool:
        worker = self._process_at(port)
        if worker == self._run.pid:  # the driver reads inputs, too; wait for a worker
            return True
        os.kill(worker, signal.SIGKILL)
        return False

    def kill_and_hold(self, port: int) -> bool:
        if not self.kill_worker(port):
            self._wait_until_late()
        return True

    def change_input(self, port: int) -> bool:
        self._bench.put_inputs({"in/en.txt": b"other text" * (1 + self._seed % 500)})
        return True

    def remove_input(self, port: int) -> bool:
        self._bench.put_inputs({"in/en.txt": None})
        return True

    def _wait_until_late(self) -> None:
        """Wait for some requests of other processes, or until `let_go`."""
        requests = self._bench.proxy.requests
        count = len(requests) + (_LATE_REQUESTS if self._seed % 2 else _FOR_EVER)
        while len(requests) < count and not self._released.wait(0.05):
            pass

    def _process_at(self, port: int) -> int:
        """Return the process of the run that owns a local port."""
        lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
        ends = [f"0100007F:{each:04X}" for each in (port, urlsplit(self._bench.proxy.url).port)]
        socket = next((f"socket:[{line[9]}]" for line in lines if line[1:3] == ends), "")
        group = [int(path.name) for path in Path("/proc").glob("[0-9]*") if _group(path) == self._run.pid]
        return next((pid for pid in group if socket in _open_files(pid)), self._run.pid)


def _open_files(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for end in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # just closed
                yield str(end.readlink())


def _group(process: Path) -> int:
    with suppress(OSError):
        return int((process / "stat").read_text(errors="replace").rpartition(")")[2].split()[2])
    return 0


_STOPPED = "driver stopped, another takes over"
REQUEST_KILLS = [
    RequestFault("driver killed before a journal batch", (KILLED,), "before", "kill_driver", BATCH, weight=3),
    RequestFault("driver killed after a journal batch", (KILLED,), "after", "kill_driver", BATCH, weight=3),
    RequestFault("driver killed before a request", (KILLED,), "before", "kill_driver", weight=3),
    RequestFault("driver killed after a request", (KILLED,), "after", "kill_driver", weight=3),
    RequestFault(
        "driver killed while workers work",
        (KILLED,),
        "before",
        "kill_driver",
        TASKS,
        executor="own",
        is_late=True,
    ),
    RequestFault("worker killed before its request", (), "before", "kill_worker", TASKS, executor="own"),
    RequestFault("worker killed after its request", (), "after", "kill_worker", TASKS, executor="own"),
    RequestFault(
        "worker killed, its put comes late",
        (),
        "before",
        "kill_and_hold",
        f"{SHARD}|{OUTPUT}",
        executor="own",
        is_late=True,
        weight=2,
    ),
    RequestFault(_STOPPED, (6,), "after", "stop_driver", f"{BATCH}|{SHARD}|{OUTPUT}", is_late=True, weight=2),
]
REQUEST_FAULTS = [
    *REQUEST_KILLS,
    RequestFault(f"{_STOPPED}, at any request", (6,), "after", "stop_driver", weight=3),
    *(RequestFault(f"{fault}, once", (), fault) for fault in (*HARMLESS, "lost", "stall")),
    RequestFault("lost put", (), "lost", of="^PUT"),
    RequestFault("torn put", (), "torn", of="^PUT"),
    *(RequestFault(f"{fault}, three in a row", (), fault, count=3) for fault in ("reset", "503", "429")),
    RequestFault("many at random", (), "random", weight=2),
    RequestFault("503 from then on", (4,), "503", count=_FOR_EVER, is_late=True),
    RequestFault("no connection from then on", (4,), "refuse", count=_FOR_EVER, is_late=True),
    RequestFault("credential expired", (4,), "expired", count=_FOR_EVER, is_late=True, weight=2),
    RequestFault("permission lost", (4,), "denied", count=_FOR_EVER, is_late=True),
    RequestFault("input changed", (3,), "before", "change_input"),
    RequestFault("input gone", (3,), "before", "remove_input"),
]
