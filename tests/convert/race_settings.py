"""How the runs of a race go about it: what one of a corpus is, as a function of the seed and its number."""

from __future__ import annotations

import importlib.util
import random
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from injector import Delays
from race_corpora import Corpus

ATTEMPTS = 4


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


@dataclass(frozen=True)
class Settings:
    """How one run does it; executor: see race_driver.py. waits: before it goes on, until the killed run's processes are
    gone."""

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

    @property
    def text(self) -> str:
        """In one line."""
        faults = "".join(f", {fault.name} at {at}" for fault, at in self.faults)
        delays = f"{self.delays.rate / 1e6:g} x {self.delays.microseconds} us {self.delays.only}".rstrip()
        small = f"{self.flush_bytes}/{self.shard_bytes}/{self.run_tokens}"
        return (
            f"{self.executor}, {self.workers} workers ({self.start_method}), text chunks of {self.chunk_bytes}, "
            f"parts/shards/runs of {small}, delays {delays}{faults}"
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
    return Settings(
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
