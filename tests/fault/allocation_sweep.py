"""A small conversion of which each allocation of the core fails, resumed, and compared with one left alone.

`tests/fault/sweep.py` says what must be; exit code 5 here, or 0 where the memory was a luxury. A few allocations are
nanobind's own, when a module makes its functions, and end the process: `aborted` counts those.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from allocations import Counter, environment
from injector import HANG_SECONDS, Outcome
from sweep import Fault, Sweep

NO_MEMORY = Fault("no memory, once", "1", (0, 5, -signal.SIGABRT))
NO_MEMORY_LEFT = Fault("no memory from then on", str(1 << 40), (0, 5, -signal.SIGABRT))


class AllocationSweep(Sweep):
    """The job of `Sweep`, whose operations are the allocations of the core in all its processes."""

    def __init__(self, folder: Path, documents: int = 12) -> None:
        super().__init__(folder, documents)
        self._environment = environment(folder)
        self._counter = Counter(self._environment["ALLOCATIONS_COUNTER"])
        self.aborted = 0
        # Before the core's first call nanobind makes its types, and ends the process if it cannot.
        subprocess.run(
            [sys.executable, "-c", "import bpe._core, tokenmill.inputs._core, convert._core"],
            env=self._environment,
            check=True,
        )
        first = self._counter.count + 1
        self.clear()
        assert self.run(NO_MEMORY).code == 0
        self.places = range(first, self._counter.count + 1)

    def run(self, fault: Fault | None = None, at: int = 0, workers: int | None = None) -> Outcome:
        """One run of the job, of which allocation number `at` fails (0: none)."""
        if fault is None:
            return super().run(None, at, workers)
        self._counter.arm(at, int(fault.mode))
        command = self._command(workers or self.workers)
        try:
            done = subprocess.run(
                command,
                cwd=self.root,
                env=self._environment,
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(-1, "", 0, (), hung=True, group=0)
        output = done.stdout + done.stderr
        if done.returncode == 5 and "tokenmill: error: out of memory" not in output:
            output = f"Traceback? {output}"
        self.aborted += done.returncode == -signal.SIGABRT
        return Outcome(done.returncode, output, self._counter.count, (), hung=False, group=0)
