"""Conversions of one corpus whose system calls are delayed, that are killed and go on, on any executor, each compared
byte for byte with that of one undisturbed worker.

`Races(folder, seed).group(3)` yields the outcomes of the runs over corpus number 3. A run is a function of the seed and
its number alone, but for the order of events, which is the machine's.
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
from naive_conversion import train_tokenizer
from race_attempts import Attempts, Problem
from race_corpora import Corpus, Stranger, make_corpus
from race_places import NAME, FolderPlace, Place, StorePlace
from race_settings import Settings, choose_settings, default_executors
from servers import BUCKET, s3_options

from bpe.tokenizer import Tokenizer
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
    """Of one run; problem: "" if there is none; kind: a word or two for it."""

    settings: Shown
    seconds: float
    kind: str
    problem: str
    corpus: str
    stopped: int


class Races:
    """Runs in folders of their own below `folder`.

    seed, workers: lowest and highest number of workers, executors: of race_driver.py, decide the runs. endpoint: of a
    server, where a share of the corpora has the outputs of its runs; else all are folders. planted: a fault on purpose,
    of race_driver.py.
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
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
        self._tokenizer_path = folder / "tok.json"
        train_tokenizer(self._tokenizer_path)
        self._stranger = Stranger(Tokenizer.load(self._tokenizer_path))
        (folder / "build").mkdir()
        Injector(folder / "build", folder)  # compiled before others need it at once

    def group(self, group: int, numbers: Sequence[int] = ()) -> Iterator[Result]:
        """The runs over corpus number `group`, or those of them, as often as they are named."""
        root = self._folder / f"corpus-{group}"
        place = random.Random(f"{self._seed} place {group}")
        endpoint = self._endpoint if self._endpoint and place.random() < self._share else ""
        rng = random.Random(f"{self._seed} corpus {group}")
        corpus = make_corpus(rng, root, self._tokenizer_path, for_store=bool(endpoint))
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
        problem = job.undisturbed(plain, self._stranger)
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
    """On the server, from where all runs read them."""
    store = open_store(f"s3://{BUCKET}/{corpus.root.name}", s3_options(endpoint))
    for path in corpus.root.glob("*/*"):
        store.put(path.relative_to(corpus.root).as_posix(), path.read_bytes())
    corpus.url = f"{store.url}/"


class _Job:
    """Conversions of one corpus. stopped: how often the last run was ended by a fault. endpoint: of the server where
    the outputs are, "" if they are folders."""

    def __init__(
        self, corpus: Corpus, injector: Injector, hang_seconds: float, endpoint: str, planted: str
    ) -> None:
        self.corpus, self.stopped, self._planted = corpus, 0, planted
        self._injector, self._hang_seconds, self._endpoint = injector, hang_seconds, endpoint
        self._folder = FolderPlace(corpus.root)
        self._expected: dict[str, str] = {}

    def undisturbed(self, settings: Settings, stranger: Stranger) -> str:
        """Convert with one worker and nothing in its way; what is wrong with that, "" if nothing."""
        command = [sys.executable, "-m", "convert", *self.corpus.command, "--output", NAME, "--workers", "1"]
        if self._endpoint:
            command += [
                f"--storage-option={name}={value}" for name, value in s3_options(self._endpoint).items()
            ]
        ended = self._injector.start(command).wait(self._hang_seconds)
        if ended.code or ended.hung or ended.orphans:
            return f"it ends with {ended.code}: {ended.output[-1000:]}"
        if told := stranger.difference(self.corpus, self.corpus.root / NAME):
            return f"not what the documents are: {told}"
        if problems := self._folder.problems():
            return f"flat_tokens verify: {problems[0]}"
        self._expected = self._folder.found()
        return ""

    def run(self, settings: Settings) -> Problem | None:
        """What is wrong with a run."""
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
