"""Conversions of one corpus whose system calls are delayed, that are killed and go on, on any executor, each compared
byte for byte with that of one undisturbed worker.

`Races(folder, seed).group(3)` yields the outcomes of the runs over corpus number 3. A run is a function of the seed and
its number alone, but for the order of events, which is the machine's.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from injector import ORPHAN_SECONDS, Delays, Injector, Outcome, end_group
from naive_conversion import train_tokenizer, tree
from race_corpora import Corpus, Stranger, make_corpus
from race_settings import Fault, Settings, choose_settings, default_executors

from bpe.tokenizer import Tokenizer

ROOT = Path(__file__).parents[2]
DRIVER = Path(__file__).with_name("race_driver.py")
RUNS_OF_A_CORPUS = 8
_REFUSED = 6
# Their workers outlive a killed parent, which is Python's way, and those that were forked hold its lock.
_OUTLIVING = ("fork-pool", "spawn-pool")
_LOCKED_SECONDS = 30.0


class Result(NamedTuple):
    """Of one run; problem: "" if there is none; kind: a word or two for it."""

    settings: Settings
    seconds: float
    kind: str
    problem: str
    corpus: str
    stopped: int


class Races:
    """Runs in folders of their own below `folder`.

    seed, workers: lowest and highest number of workers, executors: of race_driver.py, decide the runs.
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
        workers: tuple[int, int] = (2, 16),
        executors: Sequence[str] = (),
        keep: bool = False,
        hang_seconds: float = 120,
    ) -> None:
        self._folder, self._seed, self._workers, self._keep = folder, seed, workers, keep
        self._hang_seconds = hang_seconds
        self._executors = list(executors) or default_executors()
        self._tokenizer_path = folder / "tok.json"
        train_tokenizer(self._tokenizer_path)
        self._stranger = Stranger(Tokenizer.load(self._tokenizer_path))
        (folder / "build").mkdir()
        Injector(folder / "build", folder)  # compiled before others need it at once

    def group(self, group: int, numbers: Sequence[int] = ()) -> Iterator[Result]:
        """The runs over corpus number `group`, or those of them, as often as they are named."""
        root = self._folder / f"corpus-{group}"
        corpus = make_corpus(random.Random(f"{self._seed} corpus {group}"), root, self._tokenizer_path)
        job = _Job(corpus, Injector(self._folder / "build", root), self._hang_seconds)
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
            kind, problem = job.run(settings)
            yield Result(settings, time.monotonic() - started, kind, problem, corpus.what, job.stopped)


class _Job:
    """Conversions of one corpus. stopped: how often the last run was ended by a fault."""

    def __init__(self, corpus: Corpus, injector: Injector, hang_seconds: float) -> None:
        self.corpus, self.stopped = corpus, 0
        self._injector, self._hang_seconds = injector, hang_seconds
        self._out = corpus.root / "out"
        self._expected: dict[str, bytes] = {}

    def undisturbed(self, settings: Settings, stranger: Stranger) -> str:
        """Convert with one worker and nothing in its way; what is wrong with that, "" if nothing."""
        command = [sys.executable, "-m", "convert", *self.corpus.command, "--output", "out", "--workers", "1"]
        ended = self._injector.run(command, hang_seconds=self._hang_seconds)
        if ended.code or ended.hung or ended.orphans:
            return f"it ends with {ended.code}: {ended.output[-1000:]}"
        if told := stranger.difference(self.corpus, self._out):
            return f"not what the documents are: {told}"
        if verified := self._verified():
            return f"flat_tokens verify: {verified}"
        self._expected = tree(self._out)
        return ""

    def run(self, settings: Settings) -> tuple[str, str]:
        """What is wrong with a run, as a kind and in words; both "" if nothing."""
        for name in ("out", "out.partial"):
            shutil.rmtree(self.corpus.root / name, ignore_errors=True)
        self.stopped = 0
        groups: list[int] = []
        try:
            found = self._attempts(settings, groups)
        finally:
            left = [pid for group in groups for pid in end_group(group, 10)]
        if not found[0] and left:
            return "processes left", f"{len(left)} processes are left"
        return found

    def _attempts(self, settings: Settings, groups: list[int]) -> tuple[str, str]:
        locked_until = 0.0
        faults = list(settings.faults)
        while True:
            fault, at = faults[0] if faults else (None, 0)
            ended = self._attempt(settings, fault, at)
            groups.append(ended.group)
            if ended.hung:
                return "hang", f"no end after {self._hang_seconds:g} s: {ended.output[-2000:]}"
            if "Traceback" in ended.output:
                return "traceback", _end_of_traceback(ended.output)
            if ended.code == _REFUSED and "another run" in ended.output:
                # The killed run's workers end with their tasks, and have the folder till then.
                locked_until = locked_until or time.monotonic() + _LOCKED_SECONDS
                if time.monotonic() > locked_until:
                    return "locked", ended.output
                time.sleep(0.1)
                continue
            locked_until = 0.0
            if ended.code == 0:
                if self._out.with_name("out.partial").exists():
                    return "remains", "out.partial is left of a finished run"
                return self._compared()
            if fault is None or ended.code not in fault.codes:
                return f"exit code {ended.code}", ended.output[-2000:]
            if settings.waits or settings.executor in _OUTLIVING:
                end_group(ended.group, 0 if settings.executor in _OUTLIVING else ORPHAN_SECONDS)
            self.stopped += 1
            if self._out.exists():  # it was killed while it cleaned up, as the next run with this output does
                return self._compared()
            faults.pop(0)
            # Whoever goes on may have another number of workers.
            settings = replace(settings, workers=1 + settings.workers * 7 % 5)

    def _attempt(self, settings: Settings, fault: Fault | None, at: int) -> Outcome:
        told = {
            "executor": settings.executor,
            "flush_bytes": settings.flush_bytes,
            "shard_bytes": settings.shard_bytes,
            "run_tokens": settings.run_tokens,
        }
        command = [sys.executable, DRIVER, json.dumps(told), *self.corpus.command, "--output", "out"]
        command += ["--workers", str(settings.workers), "--start-method", settings.start_method]
        command += ["--text-chunk-bytes", str(settings.chunk_bytes)]
        return self._injector.run(
            command,
            at,
            fault.mode if fault else "",
            who=fault.who if fault else "all",
            reads=True,
            delays=settings.delays,
            hang_seconds=self._hang_seconds,
            settles=False,
        )

    def _compared(self) -> tuple[str, str]:
        found, expected = tree(self._out), self._expected
        if found != expected:
            other = [name for name in sorted({*found, *expected}) if found.get(name) != expected.get(name)]
            return "other bytes", (
                f"exit code 0, but {len(other)} of {len(expected)} files have other bytes: {' '.join(other[:5])}; "
                f"flat_tokens verify: {self._verified() or 'nothing wrong'}"
            )
        return "", ""

    def _verified(self) -> str:
        ended = subprocess.run(
            [sys.executable, "-m", "flat_tokens", "verify", self._out],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=self._hang_seconds,
        )
        return "" if ended.returncode == 0 else (ended.stdout + ended.stderr).strip()


def _end_of_traceback(output: str) -> str:
    """The last place in it and the error."""
    lines = output[output.rindex("Traceback") :].splitlines()
    end = next((place for place, line in enumerate(lines[1:], 1) if not line.startswith(" ")), len(lines) - 1)
    return "\n".join(lines[max(1, end - 4) : end + 1])
