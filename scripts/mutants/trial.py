"""Runs tests over a copy of the tree in which one change was made; the checkout itself is never touched.

A process forks a child for each change, which has the libraries imported already but none of the packages.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from mutants.change import Change

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
)  # fmt: skip
MEASURE_SECONDS = 30.0  # of a test file
SLOW_SECONDS = 3.0  # a test that takes longer on unchanged code has no part in this


@dataclass(frozen=True)
class Outcome:
    """What the tests said: killed, survived, untested (no test ran) or invalid (does not compile)."""

    result: str
    test: str  # that failed first
    tests: list[str]  # files that ran
    seconds: float


class Tree:
    """A copy of the tree, for one process."""

    def __init__(self, root: Path, folder: Path, with_core: bool) -> None:
        self.folder = folder / f"tree-{os.getpid()}"
        self._times = folder / "times"
        self._times.mkdir(exist_ok=True)
        shutil.copytree(root, self.folder, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        for name in LIBRARIES:
            with contextlib.suppress(ImportError):
                __import__(name)
        if with_core:
            self._configure(root)

    # -- the core

    def _configure(self, root: Path) -> None:
        """A build of its own, beside the copy; the cores lie in the copy's packages, before the installed ones."""
        nanobind = subprocess.check_output(
            [sys.executable, "-m", "nanobind", "--cmake_dir"], text=True
        ).strip()
        command = [
            "cmake",
            "-S",
            ".",
            "-B",
            "build",
            "-G",
            "Ninja",
            "-DCMAKE_BUILD_TYPE=Release",
            f"-Dnanobind_DIR={nanobind}",
        ]
        version = "-DSKBUILD_PROJECT_VERSION=0.1.0"
        subprocess.run(
            [*command, version, f"-DPython_EXECUTABLE={sys.executable}"],
            cwd=self.folder,
            check=True,
            capture_output=True,
        )
        if not self._build():
            raise RuntimeError("the unchanged core does not build")

    def _build(self) -> bool:
        made = subprocess.run(["ninja", "-C", "build", "-j1"], cwd=self.folder, capture_output=True)
        if made.returncode:
            return False
        for core in (self.folder / "build").rglob("_core.*.so"):
            package = core.parent.name if core.parent.name != "build" else "bpe"
            shutil.copyfile(core, self.folder / package / (core.name + ".new"))
            (self.folder / package / (core.name + ".new")).rename(self.folder / package / core.name)
        return True

    # -- changes

    def try_change(self, change: Change, tests: list[str], test_seconds: float) -> Outcome:
        """Make the change, run the tests, take it back."""
        started = time.monotonic()
        chosen, budget = [], 0.0
        for test in tests:
            times = self._times_of(test)
            if not times:
                continue
            needed = sum(times.values()) + 0.3
            if budget + needed <= test_seconds:
                chosen.append(test)
                budget += needed
        if not chosen:
            return Outcome("untested", "", [], time.monotonic() - started)
        allowed = {name for test in chosen for name in self._times_of(test)}
        path = self.folder / change.path
        text, stat = path.read_text(), path.stat()
        try:
            path.write_text(change.applied(text))
            if not change.path.endswith(".py") and not self._build():
                return Outcome("invalid", "", [], time.monotonic() - started)
            status, failed = self._run(chosen, allowed, 3 * budget + 20)
        finally:
            path.write_text(text)
            if change.path.endswith(".py"):
                os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # compiled files stay valid
        result = "survived" if status == 0 else "killed"
        return Outcome(result, failed, chosen, time.monotonic() - started)

    def _times_of(self, test: str) -> dict[str, float]:
        """Seconds of each quick test that passes on the unchanged tree; measured once, kept for all processes."""
        kept = self._times / f"{test.replace('/', '-')}.json"
        if not kept.exists():

            def measure() -> int:
                return _pytest(self.folder, [test], _Times(kept), stop=False)

            self._in_child(measure, MEASURE_SECONDS)
            if not kept.exists():
                kept.write_text("{}")
        found: dict[str, float] = json.loads(kept.read_text())
        return found

    def _run(self, tests: list[str], allowed: set[str], limit: float) -> tuple[int, str]:
        """The exit status of the tests and the first that failed."""
        told = self.folder / "failed"
        told.write_text("(no answer in time)")

        def run() -> int:
            chooser = _Chooser(allowed)
            status = _pytest(self.folder, tests, chooser, stop=True)
            told.write_text(chooser.failed or f"(exit status {status})")
            return status

        return self._in_child(run, limit), told.read_text()

    def _in_child(self, work: Callable[[], int], limit: float) -> int:
        """What work() gives in a fork, -1 where it takes too long; all that it started is killed."""
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
        return os.waitstatus_to_exitcode(status) if ended else -1


def _pytest(folder: Path, tests: list[str], plugin: object, stop: bool) -> int:
    from hypothesis import settings

    settings.register_profile("mutants", deadline=None, derandomize=True, database=None)
    settings.load_profile("mutants")
    os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path.insert(0, str(folder))
    temporary = folder.parent / f"tmp-{os.getpid()}"
    temporary.mkdir()
    sys.dont_write_bytecode = stop  # what is not changed is compiled once
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


class _Slow(BaseException):
    pass


class _Times:
    """Measures tests, and breaks off slow ones."""

    def __init__(self, kept: Path) -> None:
        self._kept, self._passed = kept, dict[str, float]()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        def too_slow(number: int, frame: FrameType | None) -> None:
            raise _Slow

        signal.signal(signal.SIGALRM, too_slow)
        signal.setitimer(signal.ITIMER_REAL, SLOW_SECONDS)
        try:
            return (yield)
        except _Slow:
            pytest.fail("slow")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._passed[report.nodeid] = report.duration
            made = self._kept.with_suffix(
                f".{os.getpid()}"
            )  # at once: a file that takes too long counts in part
            made.write_text(json.dumps(self._passed))
            made.rename(self._kept)


class _Chooser:
    """Runs the quick tests alone, and notes the first failure."""

    def __init__(self, allowed: set[str]) -> None:
        self._allowed, self.failed = allowed, ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._allowed]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid
