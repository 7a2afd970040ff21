"""The stress driver: a job is disturbed at some point, run again, and compared with an undisturbed run.

`Bench(job, folder).problem([(fault, at)], rng)` returns the first problem, or None. It requires:

1. the disturbed command ends with 0 or an exit code that the fault allows, without a hang, a traceback or processes
   that it leaves; other codes than 0 have a line of error;
2. the output is the former one or the new one, and the new one if the exit code is 0. After a power failure it may also
   be damaged, if readers refuse it;
3. the same command, undisturbed and with another number of workers, completes the output with the same bytes as an
   undisturbed run, and leaves no other files.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from jobs import Job, make_inputs
from processes import Outcome, start

import flat_tokens
from flat_tokens.errors import FlatTokensError
from tokenmill.errors import TokenmillError

COMMAND = Path(__file__).with_name("small_shards.py")
# Killed commands leave these. Their names are random, so that no later command can remove them.
LEFT_BY_KILLED = re.compile(r"(.*/)?\.[^/]*\.partial|tmp[^/]*")
Files = dict[str, bytes | None]  # by path below a folder; None is a folder


class Fault(ABC):
    """A way to disturb a job.

    codes: exit codes of a disturbed command, in addition to 0.
    tears: whether files may lose data that was written without a sync.
    """

    tears = False

    def __init__(self, name: str, codes: tuple[int, ...] = ()) -> None:
        self.name, self.codes = name, codes

    @abstractmethod
    def count_points(self, bench: Bench) -> int:
        """Run the job undisturbed and return the number of points at which this fault can strike it."""

    @abstractmethod
    def strike(self, bench: Bench, at: int, rng: random.Random) -> Outcome:
        """Run the job and disturb it at a point, counted from 1. rng: for further choices."""


class Bench:
    """A job in a separate folder.

    build: folder for libraries and temporary files, shared by all benches.
    root: the working folder of the job.
    codes: how often disturbed commands ended with each exit code.
    """

    def __init__(self, job: Job, build: Path) -> None:
        self.job, self.build = job, build
        self.root = build / job.name.replace(" ", "-") / "job"
        self.root.mkdir(parents=True)
        self.codes: Counter[int] = Counter()
        self._points: dict[str, int] = {}
        make_inputs(self.root)
        for words in job.before:
            self._must_succeed(self.run(words))
        self._before = self.root.with_name("before")
        shutil.copytree(self.root, self._before, symlinks=True)
        for path in self._before.rglob("*"):
            if path.is_file():
                os.utime(path, (1e9, 1e9))
        self.former = part_of(tree(self._before), job.output)
        self.reset()
        self._must_succeed(self.run())
        self.expected = tree(self.root)
        self.finished = part_of(self.expected, job.output)

    def command(self, words: str = "", workers: int = 2) -> list[str | Path]:
        """Return a command line: of the job, or of other words."""
        line = (words or self.job.command).replace("--workers 2", f"--workers {workers}")
        return [sys.executable, COMMAND, *line.split()]

    def run(
        self, words: str = "", workers: int = 2, environment: Mapping[str, str | None] | None = None
    ) -> Outcome:
        """Run the job, or another command, undisturbed."""
        return start(self.command(words, workers), self.root, environment).wait()

    def reset(self) -> None:
        """Restore the state before the job."""
        self.restore(self._before)

    def restore(self, source: Path) -> None:
        """Replace all files by the files of another folder."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(source, self.root, symlinks=True, copy_function=shutil.copy2)

    def points(self, fault: Fault) -> int:
        """Return the number of points at which a fault can strike."""
        if fault.name not in self._points:
            self.reset()
            self._points[fault.name] = fault.count_points(self)
        return self._points[fault.name]

    def problem(self, strikes: Sequence[tuple[Fault, int]], rng: random.Random) -> str | None:
        """Run the job once per strike, disturbed by a fault at a point, then complete it. Return the first problem."""
        for fault, _ in strikes:
            self.points(fault)
        self.reset()
        for fault, at in strikes:
            if self._state() == "finished":
                break
            if problem := self._struck(fault, at, rng):
                return f"{fault.name} at {at}: {problem}"
        return self._completed(strikes[0][1])

    def _struck(self, fault: Fault, at: int, rng: random.Random) -> str | None:
        """Run the job disturbed and return the problem."""
        outcome = fault.strike(self, at, rng)
        self.codes[outcome.code] += 1
        if problem := problem_of(outcome, fault.codes):
            return problem
        state = self._state()
        if outcome.code == 0 and state != "finished":
            return f"exit code 0, but the output is {state}: {outcome.output[-500:]}"
        if state.startswith("damaged") and not (fault.tears and state.startswith("damaged, refused")):
            return f"exit code {outcome.code}, and the output is {state}"
        return None

    def _completed(self, at: int) -> str | None:
        """Run the job again, undisturbed, and return the problem of the result."""
        output = ""
        if self._others():
            ended = self.run(workers=1 + at % 3)
            output = ended.output[-500:]
            if problem := problem_of(ended, (6,)):
                return f"the next run: {problem}"
            if ended.code and "already exists" not in output and "not listed" not in output:
                return f"the next run ends with {ended.code}: {output}"
        if others := self._others():
            return f"other files than after an undisturbed run: {others[:4]}; {output}"
        return None

    def _others(self) -> list[str]:
        """Return the paths that differ from an undisturbed run."""
        found = tree(self.root)
        names = {
            path for path in {*found, *self.expected} if found.get(path, 0) != self.expected.get(path, 0)
        }
        return sorted(names - {self.job.kept} - {*filter(LEFT_BY_KILLED.fullmatch, names)})

    def _state(self) -> str:
        """Return "former", "finished" or "damaged, ...", and "absent" while an output is replaced."""
        found = part_of(tree(self.root), self.job.output)
        if found == self.finished:
            return "finished"
        if found == self.former:
            return "former"
        if not found and (self.root / f"{self.job.output}.partial" / "replaced").exists():
            return "absent"
        path = self.root / self.job.output
        if not path.is_dir():
            return "damaged"
        try:
            flat_tokens.open(path).train.rows(range(1), 4)
            problems = flat_tokens.verify_dataset(path).problems
        except (FlatTokensError, TokenmillError) as error:
            return f"damaged, refused: {error}"
        return f"damaged, not refused: {(problems or ['other bytes'])[0]}"

    @staticmethod
    def _must_succeed(outcome: Outcome) -> None:
        if outcome.code:
            raise AssertionError(f"an undisturbed command fails: {outcome.output[-2000:]}")


def problem_of(outcome: Outcome, codes: tuple[int, ...]) -> str | None:
    """Return the problem of a command that may end with 0 or one of these codes."""
    if outcome.hung:
        return f"hangs: {outcome.output[-500:]}"
    if outcome.orphans:
        return f"{len(outcome.orphans)} processes are left"
    if "Traceback" in outcome.output:
        return f"traceback: {outcome.output[-2000:]}"
    if outcome.code not in (0, *codes):
        return f"exit code {outcome.code}: {outcome.output[-500:]}"
    if outcome.code in range(1, 128) and "tokenmill: error: " not in outcome.output:
        return f"exit code {outcome.code} without an error: {outcome.output[-500:]}"
    return None


def tree(root: Path) -> Files:
    """Return all files and folders below a folder."""
    return {
        path.relative_to(root).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in root.rglob("*")
    }


def part_of(files: Files, name: str) -> Files:
    """Return the file or folder with this name."""
    return {path: data for path, data in files.items() if path == name or path.startswith(f"{name}/")}
