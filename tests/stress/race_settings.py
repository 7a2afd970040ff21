"""The settings of the runs of a race, as a function of the seed and the number of the run."""

from __future__ import annotations

import importlib.util
import random
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from faulty_proxy import HARMLESS, ORDERS, Faults
from injector import Delays
from race_corpora import Corpus
from store_faults import BATCH, KINDS, OUTPUT, SHARD, Kind

ATTEMPTS = 4
LEASE_SECONDS = 1.5


class Fault(NamedTuple):
    """A fault of the shim at a file operation. codes: exit codes that the run may have, besides 0."""

    name: str
    mode: str
    who: str
    codes: tuple[int, ...]


# A standard pool ends with its first lost worker (5). Our engine starts a new worker.
FAULTS = [
    Fault("worker killed", "kill", "worker", (5,)),
    Fault("parent killed", "kill", "main", (-signal.SIGKILL,)),
    Fault("parent killed while a worker works", "killmain", "worker", (-signal.SIGKILL,)),
    Fault("all killed", "killgroup", "all", (-signal.SIGKILL,)),
    Fault("interrupted", "interruptmain", "all", (130,)),
]

REQUEST = "request"
# At the n-th of some requests, see Happening. A stopped driver checks its claim next, because no store can make that
# check and the request that follows atomic.
REQUEST_KINDS = {
    **{name: KINDS[name] for name in KINDS if name.startswith(("driver killed", "worker killed"))},
    "driver stopped, another takes over": Kind((6,), "after", "stop_driver", f"{BATCH}|{SHARD}|{OUTPUT}"),
    "driver stopped, another begins": Kind((6,), "after", "stop_driver", f"{BATCH}|{SHARD}|{OUTPUT}"),
}
TWO_AT_ONCE = "two at once"


@dataclass(frozen=True)
class OnStore:
    """An output on a store. scratch: the place of the shards: "" (next to the output), "folder" or "store"."""

    scratch: str
    network: Faults

    @property
    def text(self) -> str:
        """Describe it."""
        net = (
            f"{', '.join(self.network.kinds)} at {self.network.rate:g}" if self.network.rate else "no faults"
        )
        return f", to a store{f', shards in another {self.scratch}' if self.scratch else ''}, network: {net}"


@dataclass(frozen=True)
class Settings:
    """The settings of one run. executor: see race_driver.py. waits: resume only when the processes of the killed run
    have ended. store: None if the output is a folder."""

    number: int
    executor: str
    workers: int
    start_method: str
    chunk_bytes: int
    shard_bytes: int
    run_tokens: int
    delays: Delays
    faults: tuple[tuple[Fault, int], ...]
    waits: bool
    store: OnStore | None = None

    @property
    def text(self) -> str:
        """Describe it in one line."""
        faults = "".join(f", {fault.name} at {at}" for fault, at in self.faults)
        delays = f"{self.delays.rate / 1e6:g} x {self.delays.microseconds} us {self.delays.only}".rstrip()
        small = f"{self.shard_bytes}/{self.run_tokens}"
        return (
            f"{self.executor}, {self.workers} workers ({self.start_method}), text chunks of {self.chunk_bytes}, "
            f"shards/runs of {small}, delays {delays}{faults}{self.store.text if self.store else ''}"
        )


def default_executors() -> list[str]:
    """Return the executors to choose from, ours most often."""
    dask = ["dask-threads", "dask-processes"] if importlib.util.find_spec("distributed") else []
    return [
        *["own"] * 16,
        *["threads"] * 6,
        *["twice"] * 2,
        *["fork-pool"] * 2,
        "spawn-pool",
        *dask,
    ]


def choose_settings(
    rng: random.Random, number: int, corpus: Corpus, workers: tuple[int, int], executors: Sequence[str]
) -> Settings:
    """Return a run of up to a few hundred tasks. Delays of one kind of operation widen the time between two others."""
    low, high = workers
    count = rng.choice([rng.randint(low, high), rng.randint(low, min(high, low + 4))])
    executor = rng.choice(executors)
    if executor != "own":
        count = min(count, 8)
    if corpus.is_overtaken and rng.random() < 0.7:
        # Each small file is a text chunk. Its shards are merged while the large file is still read.
        chunks, shards, runs = rng.choice([150, 400]), rng.choice([400, 800]), 300
        count = min(count, rng.choice([4, 5, 8]))
        rate, microseconds = rng.choice([(0, 0), (100_000, 300), (500_000, 60), (500_000, 150)])
        only = rng.choice(["write", "write", "open"])
    else:
        chunks, shards = rng.choice([1, 4, 30, 100, 200]), rng.choice([4, 50, 200, 500])
        runs = rng.choice([1, 30, 300])
        rate, microseconds = rng.choice(
            [(0, 0), (10_000, 500), (100_000, 500), (500_000, 50), (500_000, 100)]
        )
        only = rng.choice(
            ["open", "read", "stat", "write", "write", "rename", "unlink", "fsync", "truncate", ""]
        )
    faults: list[tuple[Fault, int]] = []
    while rng.random() < 0.4 and len(faults) < ATTEMPTS - 1:
        faults.append((rng.choice(FAULTS), int(10 ** rng.uniform(0.5, 3))))
    if executor in ("threads", "twice"):  # all is one process
        faults = [(fault, at) for fault, at in faults if fault.who != "worker"]
    if executor.startswith("dask"):  # prints a traceback when it is interrupted
        faults = [(fault, at) for fault, at in faults if fault.name != "interrupted"]
    settings = Settings(
        number,
        executor,
        count,
        rng.choice([*["auto"] * 7, "spawn"]) if executor == "own" else "auto",
        max(100, corpus.file_bytes // chunks + 1),
        corpus.text_bytes // shards + 1,
        corpus.text_bytes // 3 // runs + 1,
        Delays(rate, microseconds if only else microseconds // 4, rng.randrange(1 << 32), only),
        tuple(faults),
        rng.random() < 0.5,
    )
    return _on_store(rng, settings, corpus) if corpus.for_store else settings


def _on_store(rng: random.Random, settings: Settings, corpus: Corpus) -> Settings:
    """Return the run with its output on a store, with fewer tasks, faults at requests, and two runs at a time."""
    if settings.executor == "fork-pool":  # a forked process cannot use a store
        settings = replace(settings, executor="spawn-pool")
    faults = [found for found in settings.faults if rng.random() < 0.5]
    while rng.random() < 0.6 and len(faults) < ATTEMPTS - 1:
        name = rng.choice([*REQUEST_KINDS, TWO_AT_ONCE, TWO_AT_ONCE])
        codes = REQUEST_KINDS[name].codes if name in REQUEST_KINDS else (6,)
        if name.startswith("worker killed") and settings.executor != "own":
            codes = (5,)
        faults.insert(
            rng.randint(0, len(faults)), (Fault(name, REQUEST, "all", codes), int(10 ** rng.uniform(0, 2.2)))
        )
    rate, kinds = rng.choice(
        [(0.0, ORDERS), (0.3, ("wait",)), (0.05, ORDERS), (0.2, ORDERS), (0.03, (*ORDERS, *HARMLESS, "lost"))]
    )
    network = Faults(kinds, rate, rng.randrange(1 << 32), late_seconds=rng.choice([0.02, 0.2, 0.6]))
    return replace(
        settings,
        workers=min(settings.workers, 6),
        chunk_bytes=max(100, corpus.file_bytes // rng.choice([1, 4, 12, 30]) + 1),
        shard_bytes=corpus.text_bytes // rng.choice([2, 8, 30]) + 1,
        run_tokens=corpus.text_bytes // 3 // rng.choice([1, 4, 12]) + 1,
        faults=tuple(faults),
        store=OnStore(rng.choice(["", "", "folder", "store"]), network),
    )
