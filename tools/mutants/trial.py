"""Run tests in a copy of the tree with one change. The checkout itself is never modified.

A process forks a child for each change. The child has imported the libraries but none of the packages.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from mutants.change import Change
from mutants.switched_core import SwitchedCore, build, configure, copy_sources, cores_of

LEFT_OUT = (
    ".git",
    ".venv",
    ".bench-venv",
    "build",
    "dist",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
    "*.zarr",
)
LIBRARIES = (
    "numpy", "zarr", "numcodecs", "regex", "tqdm", "hypothesis", "hypothesis.stateful", "hypothesis.extra.numpy",
    "tokenizers", "tiktoken", "sentencepiece", "xxhash", "pyarrow", "pyarrow.parquet", "obstore", "obstore.store",
    "torch", "jax", "grain",
)  # fmt: skip
MEASURE_SECONDS = 120.0  # wall time of a test file
SLOW_SECONDS = 3.0  # processor time; slower tests on unchanged code are excluded
NO_ANSWER = -999  # below the negated signal numbers
SLOW_BY_CLOCK = 12.0  # wall time after which a test is stopped


@dataclass(frozen=True)
class Outcome:
    """Result of the tests: killed, survived, unreached (core only: no test executed it), untested (no test ran) or
    invalid (does not compile)."""

    result: str
    test: str  # the first failure
    tests: list[str]  # files that ran, in order
    seconds: float


@dataclass(frozen=True)
class Measured:
    """A quick test that passes on the unchanged tree: its processor time, which hardly depends on other load, its wall
    time, and the functions that it calls in its process, as file:scope."""

    name: str
    seconds: float
    by_clock: float
    calls: frozenset[str]


class Tree:
    """A copy of the tree, for one process. times: folder with the times and calls of tests."""

    def __init__(self, root: Path, folder: Path, times: Path, core: SwitchedCore | None) -> None:
        self.folder = folder / f"tree-{os.getpid()}"
        self._root, self._times, self._core = root, times, core
        self._alone = folder / f"alone-{os.getpid()}"
        self._times.mkdir(parents=True, exist_ok=True)
        shutil.copytree(root, self.folder, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        for name in LIBRARIES:
            with contextlib.suppress(ImportError):
                __import__(name)
        if core:
            self._place(core.cores)

    # -- changes

    def try_change(self, change: Change, tests: list[str], test_seconds: float) -> Outcome:
        """Make the change, run tests of these files, and revert it."""
        started = time.monotonic()
        chosen = self._choose(change, tests, test_seconds)
        if not chosen:
            return Outcome("untested", "", [], time.monotonic() - started)
        trial = self._try_python if not self._core else self._try_core
        result, failed = trial(change, chosen)
        files = list(dict.fromkeys(test.name.partition("::")[0] for test in chosen))
        return Outcome(result, failed, files, time.monotonic() - started)

    def _try_python(self, change: Change, tests: list[Measured]) -> tuple[str, str]:
        path = self.folder / change.path
        text, stat = path.read_text(), path.stat()
        try:
            path.write_text(change.applied(text))
            return self._run(tests)
        finally:
            path.write_text(text)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # compiled files stay valid

    def _try_core(self, change: Change, tests: list[Measured]) -> tuple[str, str]:
        """Try a change of the core with its switch, or in a separate build if it has none."""
        assert self._core
        if change.key in self._core.numbers:
            reached = self.folder / "reached"
            reached.unlink(missing_ok=True)
            switch = {"TOKENMILL_MUTANT": self._core.numbers[change.key], "TOKENMILL_MUTANT_REACHED": reached}
            found = self._run(tests, {name: str(value) for name, value in switch.items()})
            told = reached.read_text() if reached.exists() else ""
            if told == "invalid":
                return "invalid", ""
            if found[0] == "killed" or told:
                return found
            if "constexpr" not in (self._root / change.path).read_text().splitlines()[change.line - 1]:
                return "unreached", ""
        if not self._alone.exists():
            copy_sources(self._root, self._alone)
            configure(self._alone)
            build(self._alone)
        path = self._alone / change.path
        text = path.read_text()
        try:
            path.write_text(change.applied(text))
            if build(self._alone) is not None:
                return "invalid", ""
            self._place(cores_of(self._alone))
            return self._run(tests)
        finally:
            path.write_text(text)
            self._place(self._core.cores)

    def _place(self, cores: dict[str, Path]) -> None:
        """Copy the cores into the packages of this tree, which take precedence over the installed ones."""
        for package, core in cores.items():
            new = self.folder / package / (core.name + ".new")
            shutil.copyfile(core, new)
            new.rename(self.folder / package / core.name)

    def _choose(self, change: Change, tests: list[str], seconds: float) -> list[Measured]:
        """Return the fastest tests of these files that call the changed function, up to a total time.

        Many small tests detect more than a few long ones. If no test calls the function in its own process (it runs in
        workers, in a command, on import, or in the core), choose from all tests of the files.
        """
        found = [one for test in tests for one in self._measured(test)]
        called = [one for one in found if f"{change.path}:{change.scope}" in one.calls]
        chosen = list[Measured]()
        for one in sorted(called or found, key=lambda one: one.seconds):
            seconds -= one.seconds
            if chosen and seconds < 0:
                break
            chosen.append(one)
        return chosen

    def _measured(self, test: str) -> list[Measured]:
        """Return the quick tests of a file. They are measured once and cached for all processes and runs."""
        kept = self._times / f"{test.replace('/', '-')}.json"
        if not kept.exists():

            def measure() -> int:
                return _pytest(self.folder, [test], _Times(self.folder, kept, not self._core), stop=False)

            self._in_child(measure, MEASURE_SECONDS)
            if not kept.exists():
                kept.write_text("{}")
        found = json.loads(kept.read_text())
        return [
            Measured(name, seconds, by_clock, frozenset(calls))
            for name, (seconds, by_clock, calls) in found.items()
        ]

    def _run(self, tests: list[Measured], environment: dict[str, str] | None = None) -> tuple[str, str]:
        """Run the tests in this order. Return "survived" or "killed", and the first failure."""
        told = self.folder / "failed"
        told.write_text("(no answer in time)")
        names = [test.name for test in tests]

        def run() -> int:
            os.environ.update(environment or {})
            chooser = _Chooser(names)
            files = list(dict.fromkeys(name.partition("::")[0] for name in names))
            status = _pytest(self.folder, files, chooser, stop=True)
            told.write_text(chooser.failed or f"(exit status {status})")
            return status

        status = self._in_child(run, 4 * sum(test.by_clock for test in tests) + 20)
        if status < 0 and status != NO_ANSWER:
            told.write_text(f"(signal {-status})")
        return ("killed" if status else "survived"), told.read_text()

    def _in_child(self, work: Callable[[], int], limit: float) -> int:
        """Return the result of work() in a fork, or NO_ANSWER after the limit. All its child processes are killed."""
        child = os.fork()
        if child == 0:
            status = 99
            try:
                os.setsid()
                os.chdir(self.folder)
                output = os.open(self.folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(output, 1)
                os.dup2(output, 2)
                status = work()
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        deadline, ended, status = time.monotonic() + limit, 0, 0
        while not ended and time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            time.sleep(0 if ended else 0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if not ended:
            os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) if ended else NO_ANSWER


def _pytest(folder: Path, tests: list[str], plugin: object, stop: bool) -> int:
    from hypothesis import settings

    settings.register_profile("mutants", deadline=None, derandomize=True, database=None)
    settings.load_profile("mutants")
    os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path.insert(0, str(folder))
    temporary = folder.parent / f"tmp-{os.getpid()}"
    temporary.mkdir()
    sys.dont_write_bytecode = stop  # unchanged files are compiled once
    try:
        arguments = [
            "-q",
            "-W",
            "ignore:Module already imported",
            "-p",
            "no:cacheprovider",
            f"--basetemp={temporary}/base",
            *(["-x"] if stop else []),
        ]
        return int(pytest.main([*arguments, *tests], plugins=[plugin]))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _processor_seconds() -> float:
    """Return the processor time of this process and of its finished children."""
    return sum(os.times()[:4])


class _Slow(BaseException):
    pass


class _Times:
    """Measures tests, records their calls (for changes of Python), and stops slow ones."""

    def __init__(self, folder: Path, kept: Path, with_calls: bool) -> None:
        self._folder, self._kept, self._with_calls = f"{folder}/", kept, with_calls
        self._passed = dict[str, tuple[float, float, list[str]]]()
        self._called, self._seconds = set[CodeType](), 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Any:
        def note(frame: FrameType, event: str, what: object) -> None:
            self._called.add(frame.f_code)

        self._called = set()
        if self._with_calls:
            threading.setprofile(note)
            sys.setprofile(note)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        def too_slow(number: int, frame: FrameType | None) -> None:
            raise _Slow

        signal.signal(signal.SIGALRM, too_slow)
        signal.setitimer(signal.ITIMER_REAL, SLOW_BY_CLOCK)
        begun = _processor_seconds()
        try:
            return (yield)
        except _Slow:
            pytest.fail("slow")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._seconds = _processor_seconds() - begun

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed and self._seconds <= SLOW_SECONDS:
            self._passed[report.nodeid] = self._seconds, report.duration, sorted(self._calls())
            made = self._kept.with_suffix(
                f".{os.getpid()}"
            )  # write now, so that a file that times out counts in part
            made.write_text(json.dumps(self._passed))
            made.rename(self._kept)

    def _calls(self) -> set[str]:
        """Return file:scope of the called functions of the tree, and of their enclosing functions."""
        found = set()
        for code in self._called.copy():  # copied, since calls are recorded during the report
            path = code.co_filename.removeprefix(self._folder)
            if path != code.co_filename and not path.startswith("tests/"):
                names = [name for name in code.co_qualname.split(".") if not name.startswith("<")]
                found |= {f"{path}:{'.'.join(names[:count])}" for count in range(1, len(names) + 1)}
        return found


class _Chooser:
    """Runs only these tests, in this order, and records the first failure."""

    def __init__(self, tests: list[str]) -> None:
        self._places, self.failed = {name: place for place, name in enumerate(tests)}, ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._places]
        items[:] = sorted(chosen, key=lambda item: self._places[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid
