"""Races: readers with delayed system calls that share objects, processes and a cache.

`ReadingRaces(folder, seed).run(3)` compares each batch with the one of a single undisturbed thread. The seed and the
number determine a run, except for the order of events.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from injector import Delays, Injector
from processes import ROOT
from reading_driver import Reading
from small_datasets import write_dataset
from web_server import WebServer

from flat_tokens.storage.layout import ArrayLayout

DRIVER = Path(__file__).with_name("reading_driver.py")
HANG_SECONDS = 120.0


@dataclass(frozen=True)
class Run:
    """The result of one run. problem: "" if there is none."""

    text: str
    batches: int
    problem: str


class ReadingRaces:
    """Runs in folders below `folder`.

    server: for the runs that read from a store. None: no run does.
    is_careless: see Reading.
    """

    def __init__(
        self, folder: Path, seed: str, server: WebServer | None = None, is_careless: bool = False
    ) -> None:
        self._folder, self._seed, self._server, self._is_careless = folder, seed, server, is_careless
        (folder / "build").mkdir()

    def run(self, number: int) -> Run:
        """Write datasets, read them undisturbed, and let many readers read them."""
        rng = random.Random(f"{self._seed} {number}")
        root = self._folder / f"run-{number}"
        root.mkdir()
        try:
            reading = self._settings(rng, root)
            wanted = self._undisturbed(root, reading)
            if reading.cache is None:
                return self._disturbed(root, reading, wanted, rng)
            return self._with_cache(root, reading, wanted, rng)
        finally:
            shutil.rmtree(root)

    def _settings(self, rng: random.Random, root: Path) -> Reading:
        kind = rng.choice(["loader", "loader", "mixture", "packs"])
        is_remote = self._server is not None and rng.random() < 0.3
        paths = [str(_make(rng, root / f"{at}.zarr")) for at in range(rng.choice([1, 2, 3]))]
        paths = paths[: len(paths) if kind == "mixture" else 1]
        if is_remote:
            paths = [self._serve(Path(path)) for path in paths]
        batch_size = rng.choice([2, 4, 8])
        options: dict[str, Any] = {"seq_len": rng.choice([3, 16, 50]), "batch_size": batch_size}
        options |= {"seed": rng.randrange(100), "shuffle_blocks": rng.choice([1, 4, 16])}
        options["streams"] = rng.choice([1, 2, batch_size])
        if kind != "packs":
            options["block_tokens"] = rng.choice([16, 100, 1000])
        if kind == "loader" and rng.random() < 0.3:
            options |= {"packed": False, "drop_last": True}
        return Reading(
            paths,
            str(root / "cache") if is_remote else None,
            kind,
            rng.choice(["greedy", "best-fit"]),
            options,
            rng.choice([10, 60]),
            rng.randrange(1 << 30),
            rng.randint(1, 4),
            0 if is_remote else rng.randint(0, 3),  # stores cannot be read in a fork
            self._is_careless,
        )

    def _serve(self, path: Path) -> str:
        assert self._server is not None
        folder = f"/{path.parent.name}-{self._seed}/{path.name}"
        for file in path.rglob("*"):
            if file.is_file():
                self._server.files[f"{folder}/{file.relative_to(path).as_posix()}"] = file.read_bytes()
        return self._server.url + folder

    def _undisturbed(self, root: Path, reading: Reading) -> dict[int, str]:
        settings = reading._replace(threads=0, forks=0, cache=None, is_careless=False)
        ended = self._start(root, settings, "undisturbed").wait(HANG_SECONDS)
        if ended:
            raise AssertionError(f"{reading}: the reader alone ends with {ended}")
        (found,) = json.loads((root / "undisturbed.result").read_text())
        return dict(found)

    def _start(self, root: Path, reading: Reading, name: str) -> subprocess.Popen[bytes]:
        (root / f"{name}.json").write_text(json.dumps(reading._asdict()))
        command = [sys.executable, DRIVER, root / f"{name}.json", root / f"{name}.result"]
        return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})

    def _disturbed(self, root: Path, reading: Reading, wanted: dict[int, str], rng: random.Random) -> Run:
        delays = Delays(rng.choice([0, 100_000, 500_000]), rng.choice([20, 200]), rng.randrange(1 << 30))
        text = f"{_shown(reading)}; {delays.rate / 10_000:.0f} % of calls delayed"
        (root / "many.json").write_text(json.dumps(reading._asdict()))
        injector = Injector(self._folder / "build", root)
        command = [sys.executable, DRIVER, root / "many.json", root / "many.result"]
        ended = injector.start(command, reads=True, delays=delays).wait(HANG_SECONDS)
        if ended.hung or ended.code or ended.orphans:
            what = "it hangs" if ended.hung else f"it ends with {ended.code}, {len(ended.orphans)} left"
            return Run(text, 0, f"{what}: {ended.output[-2000:]}")
        return _compared(text, root / "many.result", wanted)

    def _with_cache(self, root: Path, reading: Reading, wanted: dict[int, str], rng: random.Random) -> Run:
        """Read in processes that share a cache. One is killed, and another one starts late."""
        processes = [self._start(root, reading._replace(seed=reading.seed + at), f"p{at}") for at in range(3)]
        text = f"{_shown(reading)}; three processes share a cache, one is killed"
        time.sleep(rng.random())
        processes[0].kill()
        processes.append(self._start(root, reading._replace(seed=reading.seed + 3), "p3"))
        until = time.monotonic() + HANG_SECONDS
        for at, process in enumerate(processes):
            try:
                code = process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                for other in processes:
                    other.kill()
                return Run(text, 0, "it hangs")
            if code and at:
                return Run(text, 0, f"process {at} ends with {code}")
        runs = [_compared(text, root / f"p{at}.result", wanted) for at in (1, 2, 3)]
        wrong = next((run for run in runs if run.problem), runs[0])
        return Run(text, sum(run.batches for run in runs), wrong.problem)


def _make(rng: random.Random, path: Path) -> Path:
    count, longest = rng.choice([(30, 400), (300, 40), (2000, 9)])
    train = [[rng.randrange(28) for _ in range(rng.randint(1, longest))] for _ in range(count)]
    while sum(map(len, train)) < 2000:  # enough for some batches of each kind
        train.append([rng.randrange(28) for _ in range(longest)])
    zarr_format, chunk = rng.choice([2, 3]), rng.choice([16, 64, 512])
    compression = rng.choice(["none", "zstd", "lz4"])
    layout = ArrayLayout.create(
        zarr_format, chunk, chunk * 4 if zarr_format == 3 else None, compression=compression
    )
    trained = None
    if rng.random() < 0.3:
        trained = {"train": [rng.random() < 0.7 for _ in range(sum(map(len, train)))], "validation": []}
    write_dataset(path, train, [], layout, trained)
    return path


def _compared(text: str, path: Path, wanted: dict[int, str]) -> Run:
    batches = 0
    for reader in json.loads(path.read_text()):
        if isinstance(reader, str):
            return Run(text, batches, reader)
        for step, digest in reader:
            batches += 1
            if wanted[step] != digest:
                return Run(text, batches, f"another batch at step {step}")
    return Run(text, batches, "")


def _shown(reading: Reading) -> str:
    place = "store" if reading.cache else "disk"
    options = ", ".join(f"{name} {value}" for name, value in reading.options.items())
    readers = f"{reading.threads} threads, {reading.forks} forks"
    return f"{reading.kind} of {len(reading.paths)} on {place} ({options}), {reading.stop} steps: {readers}"
