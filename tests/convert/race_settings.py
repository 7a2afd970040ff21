"""How the runs of a race go about it: what one of a corpus is, as a function of the seed and its number."""

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
    """What the shim does at an operation; codes: with which the run may end then, beside 0. signal: of the process."""

    name: str
    mode: str
    who: str
    codes: tuple[int, ...]


# A pool of others ends with its first lost worker (5), ours starts a fresh one.
FAULTS = [
    Fault("worker killed", "kill", "worker", (5,)),
    Fault("parent killed", "kill", "main", (-signal.SIGKILL,)),
    Fault("parent killed while a worker works", "killmain", "worker", (-signal.SIGKILL,)),
    Fault("all killed", "killgroup", "all", (-signal.SIGKILL,)),
    Fault("interrupted", "interruptmain", "all", (130,)),
]

REQUEST = "request"
# At the n-th of some requests, see Happening. Where a driver is stopped it looks next whether it still is the one: no
# store makes that look and what follows it one.
REQUEST_KINDS = {
    **{name: KINDS[name] for name in KINDS if name.startswith(("driver killed", "worker killed"))},
    "driver stopped, another takes over": Kind((6,), "after", "stop_driver", f"{BATCH}|{SHARD}|{OUTPUT}"),
    "driver stopped, another begins": Kind((6,), "after", "stop_driver", f"{BATCH}|{SHARD}|{OUTPUT}"),
}
TWO_AT_ONCE = "two at once"


@dataclass(frozen=True)
class OnStore:
    """Of runs whose output is on a store. scratch: where shards lie, "": beside the output, "folder" or "store";
    network: what happens to requests."""

    scratch: str
    network: Faults

    @property
    def text(self) -> str:
        """In some words."""
        net = (
            f"{', '.join(self.network.kinds)} at {self.network.rate:g}" if self.network.rate else "no faults"
        )
        return f", to a store{f', shards in another {self.scratch}' if self.scratch else ''}, network: {net}"


@dataclass(frozen=True)
class Settings:
    """How one run does it; executor: see race_driver.py. waits: before it goes on, until the killed run's processes are
    gone. store: None where the output is a folder."""

    number: int
    executor: str
    workers: int
    start_method: str
    chunk_bytes: int
    flush_bytes: int
    shard_bytes: int
    run_tokens: int
    delays: Delays
    faults: tuple[tuple[Fault, int], ...]
    waits: bool
    store: OnStore | None = None

    @property
    def text(self) -> str:
        """In one line."""
        faults = "".join(f", {fault.name} at {at}" for fault, at in self.faults)
        delays = f"{self.delays.rate / 1e6:g} x {self.delays.microseconds} us {self.delays.only}".rstrip()
        small = f"{self.flush_bytes}/{self.shard_bytes}/{self.run_tokens}"
        return (
            f"{self.executor}, {self.workers} workers ({self.start_method}), text chunks of {self.chunk_bytes}, "
            f"parts/shards/runs of {small}, delays {delays}{faults}{self.store.text if self.store else ''}"
        )


def default_executors() -> list[str]:
    """Those that are tried, ours most often."""
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
    """A run of up to some hundred tasks. Delays of one kind of operation alone keep open the time between two others,
    where those of all kinds only make all slow."""
    low, high = workers
    count = rng.choice([rng.randint(low, high), rng.randint(low, min(high, low + 4))])
    executor = rng.choice(executors)
    if executor != "own":
        count = min(count, 8)
    if corpus.is_overtaken and rng.random() < 0.7:
        # Each small file is a text chunk, and its shards are merged while the large one is still read.
        chunks, shards, runs, flush_bytes = rng.choice([150, 400]), rng.choice([400, 800]), 300, 0
        count = min(count, rng.choice([4, 5, 8]))
        rate, microseconds = rng.choice([(0, 0), (100_000, 300), (500_000, 60), (500_000, 150)])
        only = rng.choice(["write", "write", "open"])
    else:
        chunks, shards = rng.choice([1, 4, 30, 100, 200]), rng.choice([4, 50, 200, 500])
        runs, flush_bytes = rng.choice([1, 30, 300]), rng.choice([0, 60, 1000, 10_000])
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
    if executor.startswith("dask"):  # which tells of an interrupt by tracebacks of its own
        faults = [(fault, at) for fault, at in faults if fault.name != "interrupted"]
    settings = Settings(
        number,
        executor,
        count,
        rng.choice([*["auto"] * 7, "spawn"]) if executor == "own" else "auto",
        max(100, corpus.file_bytes // chunks + 1),
        flush_bytes,
        corpus.text_bytes // shards + 1,
        corpus.text_bytes // 3 // runs + 1,
        Delays(rate, microseconds if only else microseconds // 4, rng.randrange(1 << 32), only),
        tuple(faults),
        rng.random() < 0.5,
    )
    return _on_store(rng, settings, corpus) if corpus.for_store else settings


def _on_store(rng: random.Random, settings: Settings, corpus: Corpus) -> Settings:
    """The run with its output on a store, of fewer tasks; faults happen at requests, too, and to two runs at once."""
    if settings.executor == "fork-pool":  # a child of a fork can't use a store, and says so
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
