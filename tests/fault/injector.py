"""Jobs whose n-th file operation fails, or whose operations are delayed: the shim, compiled once, and what a job under
it leaves.

`Injector(folder).start(command, at=7, mode="kill").wait()` runs the command; `.operations` says how many operations it
had. The command runs in a process group of its own, which must be empty soon after its end.
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SHIM = Path(__file__).with_name("shim.c")
ORPHAN_SECONDS = 10.0  # a worker sees that its parent is gone once its own imports are through
HANG_SECONDS = 60.0


def compiler() -> str | None:
    """A C compiler, None where there is none."""
    return shutil.which("cc") or shutil.which("gcc")


@dataclass(frozen=True)
class Delays:
    """So many of a million operations wait before they begin, most about so long; seed: of the choice; only: "" or the
    kind of operation that does (shim.c)."""

    rate: int = 0
    microseconds: int = 0
    seed: int = 0
    only: str = ""


@dataclass(frozen=True)
class Outcome:
    """code: exit status, negative for a signal; orphans: processes of the job that lived on for ORPHAN_SECONDS. group:
    of its processes."""

    code: int
    output: str
    operations: int
    orphans: tuple[int, ...]
    hung: bool
    group: int


class Injector:
    """Runs jobs whose operations below `root` are counted and may fail."""

    def __init__(self, build_folder: Path, root: Path) -> None:
        self.library = build_folder / "shim.so"
        self.root = root
        self._counter = build_folder / f"counter-{root.name}"
        if not self.library.exists():
            found = compiler()
            assert found is not None
            subprocess.run(
                [found, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-o", self.library, SHIM, "-ldl"],
                check=True,
            )

    def start(
        self,
        command: Sequence[str | Path],
        at: int = 0,
        mode: str = "",
        error: int = 0,
        who: str = "all",
        reads: bool = False,
        log: Path | None = None,
        delays: Delays | None = None,
        temporary: Path | None = None,
        only: str = "",
    ) -> Started:
        """Start the command in `root`, with the operation number `at` made to fail (0: none). temporary: the folder for
        temporary files. only: "names" or "close": these operations alone count (shim.c)."""
        self._counter.unlink(missing_ok=True)  # what lives on of the run before has it mapped
        self._counter.write_bytes(bytes(64))
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),  # the checkout's packages, not installed ones
            "LD_PRELOAD": str(self.library),
            "FAULT_COUNTER": str(self._counter),
            "FAULT_ROOT": str(self.root),
            "FAULT_AT": str(at),
            "FAULT_MODE": mode,
            "FAULT_ERRNO": str(error),
            "FAULT_WHO": who,
            "FAULT_ONLY": only,
        }
        if reads:
            environment["FAULT_READS"] = "1"
        if log is not None:
            environment["FAULT_LOG"] = str(log)
        if delays is not None:
            environment["DELAY_RATE"] = str(delays.rate)
            environment["DELAY_MICROSECONDS"] = str(delays.microseconds)
            environment["DELAY_SEED"] = str(delays.seed)
            environment["DELAY_ONLY"] = delays.only
        if temporary is not None:
            environment["TMPDIR"] = str(temporary)
        return Started(command, self.root, environment, self._counter)


class Started:
    """A job that runs. pid: of its first process, which is the number of its group, too."""

    def __init__(
        self, command: Sequence[str | Path], folder: Path, environment: dict[str, str], counter: Path
    ) -> None:
        self._told = tempfile.TemporaryFile()  # noqa: SIM115 - read when it has ended
        self._counter = counter
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=self._told,
            stderr=self._told,
        )
        self.pid = self._process.pid

    def wait(self, hang_seconds: float = HANG_SECONDS, settles: bool = True) -> Outcome:
        """Its end. settles: what lives on is waited for, then killed; else it is left alone and not looked for."""
        hung = False
        try:
            code = self._process.wait(hang_seconds)
        except subprocess.TimeoutExpired:
            hung, code = True, -signal.SIGKILL
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
        orphans = end_group(self.pid) if settles or hung else ()
        with self._told as told:
            told.seek(0)
            output = told.read().decode(errors="replace")
        (operations,) = struct.unpack_from("q", self._counter.read_bytes())
        return Outcome(code, output, operations, orphans, hung, self.pid)


def end_group(group: int, seconds: float = ORPHAN_SECONDS) -> tuple[int, ...]:
    """The processes of a group that run for so long; they are killed. Returns as soon as there are none."""
    deadline = time.monotonic() + seconds
    while (alive := tuple(_running(group))) and time.monotonic() < deadline:
        time.sleep(0.01)
    for pid in alive:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return alive


def _running(group: int) -> list[int]:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return []
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] not in "ZX":
                found.append(int(folder.name))
    return found
