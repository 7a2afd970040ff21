"""Races: conversions with delayed system calls, killed and resumed, on any executor. Each result is compared byte for
byte with the result of one undisturbed worker.

`Races(folder, seed).group(3)` yields the results of the runs over corpus number 3. The seed and the number determine a
run, except for the order of events.
"""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Protocol

from faulty_proxy import faulty_proxy
from injector import Delays, Injector
from race_attempts import Attempts, Problem
from race_corpora import Corpus, make_corpus
from race_places import NAME, FolderPlace, Place, StorePlace
from race_settings import Settings, choose_settings, default_executors
from servers import BUCKET, s3_options

from tokenmill.stores import open_store

RUNS_OF_A_CORPUS = 8


class Shown(Protocol):
    """The part of a run's settings that is printed."""

    @property
    def number(self) -> int: ...
    @property
    def executor(self) -> str: ...
    @property
    def text(self) -> str: ...


class Result(NamedTuple):
    """The result of one run. problem, kind: "" if there is none."""

    settings: Shown
    seconds: float
    kind: str
    problem: str
    corpus: str
    stopped: int


class Races:
    """Runs in separate folders below `folder`.

    workers: the lowest and the highest number of workers.
    executors, planted: see race_driver.py.
    endpoint: a server with the outputs of a share of the corpora; "": all outputs are folders.
    """

    def __init__(
        self,
        folder: Path,
        seed: str,
        workers: tuple[int, int] = (2, 16),
        executors: Sequence[str] = (),
        endpoint: str = "",
        share: float = 0.5,
        keep: bool = False,
        hang_seconds: float = 120,
        planted: str = "",
    ) -> None:
        self._folder, self._seed, self._workers, self._keep = folder, seed, workers, keep
        self._hang_seconds, self._endpoint, self._share = hang_seconds, endpoint, share
        self._planted = planted
        self._executors = list(executors) or default_executors()
        (folder / "build").mkdir()
        Injector(folder / "build", folder)  # compiled before others need it at once

    def group(self, group: int, numbers: Sequence[int] = ()) -> Iterator[Result]:
        """Yield the results of the runs over corpus number `group`, or of the given numbers only."""
        root = self._folder / f"corpus-{group}"
        place = random.Random(f"{self._seed} place {group}")
        endpoint = self._endpoint if self._endpoint and place.random() < self._share else ""
        rng = random.Random(f"{self._seed} corpus {group}")
        corpus = make_corpus(rng, root, for_store=bool(endpoint))
        if endpoint and place.random() < 0.5:
            _put_inputs(corpus, endpoint)
        job = _Job(
            corpus, Injector(self._folder / "build", root), self._hang_seconds, endpoint, self._planted
        )
        failed = False
        first = group * RUNS_OF_A_CORPUS
        for result in self._results(job, numbers or range(first, first + RUNS_OF_A_CORPUS)):
            yield result
            if result.problem:
                failed = True
                if self._keep:
                    break
        if not (failed and self._keep):
            shutil.rmtree(root)

    def _results(self, job: _Job, numbers: Sequence[int]) -> Iterator[Result]:
        corpus = job.corpus
        plain = Settings(numbers[0], "own", 1, "auto", 0, 0, 0, 0, Delays(), (), True)
        started = time.monotonic()
        problem = job.undisturbed()
        if problem:
            yield Result(plain, time.monotonic() - started, "one worker", problem, corpus.what, 0)
            return
        for number in numbers:
            rng = random.Random(f"{self._seed} run {number}")
            settings = choose_settings(rng, number, corpus, self._workers, self._executors)
            started = time.monotonic()
            kind, problem = job.run(settings) or ("", "")
            yield Result(settings, time.monotonic() - started, kind, problem, corpus.what, job.stopped)


def _put_inputs(corpus: Corpus, endpoint: str) -> None:
    """Copy the inputs to the server, from where all runs read them."""
    store = open_store(f"s3://{BUCKET}/{corpus.root.name}", s3_options(endpoint))
    for path in corpus.root.glob("*/*"):
        store.put(path.relative_to(corpus.root).as_posix(), path.read_bytes())
    corpus.url = f"{store.url}/"


class _Job:
    """Conversions of one corpus. stopped: attempts of the last run that a fault ended."""

    def __init__(
        self, corpus: Corpus, injector: Injector, hang_seconds: float, endpoint: str, planted: str
    ) -> None:
        self.corpus, self.stopped, self._planted = corpus, 0, planted
        self._injector, self._hang_seconds, self._endpoint = injector, hang_seconds, endpoint
        self._folder = FolderPlace(corpus.root)
        self._expected: dict[str, str] = {}

    def undisturbed(self) -> str:
        """Convert with one worker and without faults. Return the problem, "" if there is none."""
        command = [sys.executable, "-m", "convert", *self.corpus.command, "--output", NAME, "--workers", "1"]
        if self._endpoint:
            command += [
                f"--storage-option={name}={value}" for name, value in s3_options(self._endpoint).items()
            ]
        ended = self._injector.start(command).wait(self._hang_seconds)
        if ended.code or ended.hung or ended.orphans:
            return f"it ends with {ended.code}: {ended.output[-1000:]}"
        if difference := self.corpus.difference(self.corpus.root / NAME):
            return f"not the naive conversion: {difference}"
        if problems := self._folder.problems():
            return f"flat_tokens verify: {problems[0]}"
        self._expected = self._folder.found()
        return ""

    def run(self, settings: Settings) -> Problem | None:
        """Return the problem of a run."""
        with ExitStack() as stack:
            place: Place = self._folder
            if self._endpoint:
                proxy = stack.enter_context(faulty_proxy(self._endpoint))
                place = StorePlace(self._endpoint, self.corpus.root.name, self.corpus.root, proxy)
            place.clear()
            attempts = Attempts(
                self.corpus,
                self._injector,
                place,
                settings,
                self._expected,
                self._hang_seconds,
                self._planted,
            )
            problem = attempts.run()
            self.stopped = attempts.stopped
            if problem is None and self._endpoint:
                place.clear()
            return problem
