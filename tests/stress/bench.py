"""The stress driver: a job is disturbed at some point, run again, and compared with an undisturbed run.

`Bench(job, folder).problem([(fault, at)], rng)` returns the first problem, or None. It requires:

1. the disturbed command ends with 0 or an exit code that the fault allows, without a hang, a traceback or processes
   that it leaves; other codes than 0 have a line of error. Of several commands at one output, one at most ends with 0;
2. the output is the former one or the new one, and the new one if an exit code is 0. After a power failure it may also
   be damaged, if readers refuse it;
3. the same command, undisturbed and with another number of workers, completes the output with the same bytes as an
   undisturbed run, and leaves no other files or objects.

Files are those below the folder of the job, and the objects below its prefix in a bucket, with names like "s3:out".
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from faulty_proxy import Faults, faulty_proxy
from injector import Delays, Injector
from jobs import Job
from processes import KILLED, ORPHAN_SECONDS, Outcome, Started, end_group, start
from servers import BUCKET, client_of_another_make, s3_options

import flat_tokens
from flat_tokens.errors import FlatTokensError
from tokenmill.errors import TokenmillError

DRIVER = Path(__file__).with_name("driver.py")
# Killed commands leave these. Their names are random, so that no later command can remove them.
LEFT_BY_KILLED = re.compile(r"(.*/)?\.[^/]*\.partial|tmp[^/]*")
LEFT_BY_OTHERS = re.compile(
    "dask-scratch-space|[a-z0-9_]{8}"
)  # dask, and Python's test for a writable folder
LOCKED_SECONDS = (
    30.0  # workers of a killed run keep its folder until their tasks end; on a store its lease remains
)
Files = dict[str, bytes | None]  # by path below a folder; None is a folder


class Fault(ABC):
    """A way to disturb a job.

    codes: exit codes of a disturbed command, in addition to 0.
    tears: whether files may lose data that was written without a sync.
    is_late: whether something may be written after the next run, so that only one more run removes it.
    """

    tears = is_late = False

    def __init__(self, name: str, codes: tuple[int, ...] = ()) -> None:
        self.name, self.codes = name, codes

    @abstractmethod
    def count_points(self, bench: Bench) -> int:
        """Run the job undisturbed and return the number of points at which this fault can strike it."""

    @abstractmethod
    def strike(self, bench: Bench, at: int, rng: random.Random) -> Outcome:
        """Run the job and disturb it at a point, counted from 1. rng: for further choices."""

    def let_go(self) -> None:  # noqa: B027 - most faults hold nothing
        """Release processes and requests that the fault still holds."""


class Bench:
    """A job in a separate folder, and with an endpoint in a separate part of a bucket.

    build: folder for libraries and temporary files, shared by all benches.
    endpoint: an S3 server, which the job reaches through `proxy`.
    root: the working folder of the job.
    options: further options of the job.
    delays: of the file operations of all commands.
    settled: whether a command starts only when the processes of a killed one have ended.
    rivals: outcomes of other commands at the same output during the last attempt.
    codes: how often disturbed commands ended with each exit code.
    """

    def __init__(self, job: Job, build: Path, endpoint: str = "") -> None:
        self.job, self.build, self.settings = job, build, dict(job.settings)
        self.name = re.sub(r"\W+", "-", job.name)
        self.root = build / self.name / "job"
        self.root.mkdir(parents=True)
        self.temporary = self.root.with_name("temporary")
        self.options, self.delays = "", Delays()
        self.settled, self.rivals, self.codes = True, list[Outcome](), Counter[int]()
        self._points, self._groups = dict[str, int](), list[int]()
        self._stack = ExitStack()
        if endpoint:
            self.s3 = client_of_another_make(endpoint)
            self.proxy = self._stack.enter_context(faulty_proxy(endpoint))
        self.endpoint, self.output = endpoint, ("s3:" if endpoint else "") + job.output
        job.make_inputs(self.root)
        self.temporary.mkdir()
        self._objects_before: dict[str, bytes | None] = dict(job.objects)
        self.put_inputs()
        for words in job.before:
            self._must_succeed(self.run(words))
        self._objects_before = {
            name.removeprefix("s3:"): data for name, data in self.files().items() if name.startswith("s3:")
        }
        self._before = self.root.with_name("before")
        shutil.copytree(self.root, self._before, symlinks=True)
        for path in self._before.rglob("*"):
            if path.is_file():
                os.utime(path, (1e9, 1e9))
        self.former = part_of(self.files(), self.output)
        self.reset()
        self._must_succeed(self.run(workers=1))
        self.expected = self.files()
        self.finished = part_of(self.expected, self.output)

    def close(self) -> None:
        """Stop the proxy and remove the objects."""
        if self.endpoint:
            self._delete_objects()
        self._stack.close()

    def command(self, words: str = "", workers: int = 2) -> list[str | Path]:
        """Return a command line: of the job, or of other words."""
        line = (
            (words or f"{self.job.command} {self.options}")
            .replace("--workers 2", f"--workers {workers}")
            .split()
        )
        if self.endpoint:
            line = [word.replace("{store}", f"s3://{BUCKET}/{self.name}") for word in line]
            options = s3_options(self.proxy.url) | {"max_retries": "6", "read_timeout": "20s"}
            line += [f"--storage-option={name}={value}" for name, value in options.items()]
        return [sys.executable, DRIVER, json.dumps({**self.settings, "workers": workers}), *line]

    def start(
        self,
        words: str = "",
        workers: int = 2,
        environment: Mapping[str, str | None] | None = None,
        temporary: Path | None = None,
    ) -> Started:
        """Start the job, or another command. environment: variables, of the fault."""
        variables: dict[str, Any] = {"TMPDIR": str(temporary or self.temporary)}
        if self.delays.rate:
            variables |= Injector(self.build, self.root).environment(reads=True, delays=self.delays)
        started = start(self.command(words, workers), self.root, variables | dict(environment or {}))
        self._groups.append(started.pid)
        return started

    def wait(self, started: Started) -> Outcome:
        """Return the outcome of a command. Workers of standard pools outlive a killed parent, and are killed."""
        if "pool" in self.settings.get("executor", ""):
            outcome = started.wait(settles=False)
            end_group(started.pid, 0)
            return outcome
        return started.wait(settles=self.settled)

    def run(
        self, words: str = "", workers: int = 2, environment: Mapping[str, str | None] | None = None
    ) -> Outcome:
        """Run the job, or another command."""
        return self.wait(self.start(words, workers, environment))

    def rival(self) -> Started:
        """Start the job once more, as another machine does. Wait with `end_rival`."""
        elsewhere = self.temporary.with_name(f"temporary-{len(self._groups)}")
        elsewhere.mkdir(exist_ok=True)
        return self.start(temporary=elsewhere)

    def end_rival(self, started: Started) -> None:
        """Wait for the end of a rival."""
        self.rivals.append(started.wait(settles=False))

    def reset(self) -> None:
        """Restore the state before the job."""
        self.restore(self._before)
        if self.endpoint:
            self._delete_objects()
            self.put_inputs(self._objects_before)

    def put_inputs(self, objects: Mapping[str, bytes | None] | None = None) -> None:
        """Store the inputs again, or others. None as the data of an object removes it."""
        for name, data in (objects or self.job.objects).items() if self.endpoint else ():
            key = {"Bucket": BUCKET, "Key": f"{self.name}/{name}"}
            self.s3.delete_object(**key) if data is None else self.s3.put_object(**key, Body=data)

    def _delete_objects(self) -> None:
        for name in self._objects():
            self.s3.delete_object(Bucket=BUCKET, Key=f"{self.name}/{name}")

    def _objects(self) -> list[str]:
        prefix = f"{self.name}/"
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"].removeprefix(prefix) for page in pages for entry in page.get("Contents", ())]

    def files(self) -> Files:
        """Return all files and objects."""
        found = tree(self.root)
        for name in self._objects() if self.endpoint else ():
            found[f"s3:{name}"] = self.s3.get_object(Bucket=BUCKET, Key=f"{self.name}/{name}")["Body"].read()
        return found

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
        self.reset()
        self._groups.clear()
        faults, workers = [fault for fault, _ in strikes], 1 + sum(at for _, at in strikes) % 3
        late = bool(self.endpoint and self.proxy.faults.rate) or any(fault.is_late for fault in faults)
        try:
            for fault, at in strikes:
                if self._state() == "finished":
                    break
                if problem := self._struck(fault, at, rng):
                    return f"{fault.name} at {at}: {problem}"
            problem = self._completed(workers, is_last=not late)
        finally:
            for fault in faults:
                fault.let_go()
            left = [pid for group in self._groups for pid in end_group(group, ORPHAN_SECONDS)]
        if late and not problem:
            self.proxy.faults = Faults()
            problem = self._completed(workers)
        return problem or (f"{len(left)} processes are left" if left else None)

    def _struck(self, fault: Fault, at: int, rng: random.Random) -> str | None:
        """Run the job disturbed and return the problem."""
        self.rivals.clear()
        shutil.rmtree(self.temporary)
        self.temporary.mkdir()
        outcome = fault.strike(self, at, rng)
        self.codes[outcome.code] += 1
        left = [path.name for path in self.temporary.iterdir() if not LEFT_BY_OTHERS.fullmatch(path.name)]
        if left and self.endpoint and outcome.code != KILLED:
            return f"exit code {outcome.code}, and temporary files are left: {left}"
        for rival in self.rivals:
            if problem := problem_of(rival, (6,)):
                return f"the other run: {problem}"
        # A standard pool ends with its first lost worker. Our engine starts a new worker.
        codes = (
            fault.codes if self.settings.get("executor", "own") in ("own", "inline") else (*fault.codes, 5)
        )
        if problem := problem_of(outcome, codes):
            return problem
        ends = [outcome.code, *(rival.code for rival in self.rivals)]
        if ends.count(0) > 1:
            return "two runs to one output end with 0"
        state = self._state()
        if 0 in ends and state != "finished":
            return f"exit code 0, but the output is {state}: {outcome.output[-500:]}"
        if state.startswith("damaged") and not (fault.tears and state.startswith("damaged, refused")):
            return f"exit code {outcome.code}, and the output is {state}"
        return None

    def _completed(self, workers: int, is_last: bool = True) -> str | None:
        """Run the job again, undisturbed, and return the problem of the result."""
        output, until = "", time.monotonic() + LOCKED_SECONDS
        self.put_inputs()
        if self._others():
            while True:
                ended = self.run(workers=workers)
                output = ended.output[-500:]
                if ended.code != 6 or "another run" not in output or time.monotonic() > until:
                    break
                time.sleep(0.1)
            if problem := problem_of(ended, (6,)):
                return f"the next run: {problem}"
            if ended.code and "already exists" not in output and "not listed" not in output:
                return f"the next run ends with {ended.code}: {output}"
        if is_last and (others := self._others()):
            return f"other files than after an undisturbed run: {others[:4]}; {output}"
        return None

    def _others(self) -> list[str]:
        """Return the paths that differ from an undisturbed run."""
        found = self.files()
        names = {
            path for path in {*found, *self.expected} if found.get(path, 0) != self.expected.get(path, 0)
        }
        return sorted(names - {self.job.kept} - {*filter(LEFT_BY_KILLED.fullmatch, names)})

    def _state(self) -> str:
        """Return "former", "finished" or "damaged, ...", and "absent" while an output is replaced."""
        found = part_of(self.files(), self.output)
        if found == self.finished:
            return "finished"
        if found == self.former:
            return "former"
        if self.endpoint:
            return "damaged" if f"{self.output}/manifest.json" in found else "absent"
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
    errors = [line for line in outcome.output.splitlines() if line.startswith("tokenmill: error: ")]
    if len(errors) != (outcome.code > 0):
        return f"exit code {outcome.code} with {len(errors)} errors: {outcome.output[-500:]}"
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
