"""Allocations of the native cores that fail (allocations.cpp)."""

from __future__ import annotations

import mmap
import os
import random
import signal
import struct
import subprocess
import sys
from pathlib import Path

from bench import Bench, Fault
from processes import ROOT, Outcome

SOURCE = Path(__file__).with_name("allocations.cpp")
ALWAYS = 1 << 40
# nanobind makes its types before the first call, and ends the process if it cannot.
IMPORTS = "import bpe._core, tokenmill.inputs._core, convert._core, flat_tokens._core"


class Counter:
    """The mapped file that counts allocations and selects those that fail."""

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:  # noqa: PTH123
            self._map = mmap.mmap(file.fileno(), 32)

    def arm(self, at: int, count: int = 1) -> None:
        """Reset the count. Allocations [at, at + count), counted from 1, will fail."""
        self._map[:] = struct.pack("=4q", 0, at, count, 0)

    @property
    def count(self) -> int:
        """The number of allocations since `arm`."""
        return int(struct.unpack_from("=q", self._map, 0)[0])


def environment(build: Path) -> dict[str, str | None]:
    """Return the variables of a process under the library, which is compiled if needed."""
    library, counter = build / "allocations.so", build / "allocations"
    if not library.exists():
        command = ["c++", "-shared", "-fPIC", "-O1", "-std=c++20", "-o", str(library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True)
    if not counter.exists():
        counter.write_bytes(bytes(32))
    return {
        "LD_PRELOAD": str(library),
        "ALLOCATIONS_COUNTER": str(counter),
        "ALLOCATIONS_OF": "bpe/_core.",
        "ALLOCATIONS_OF_TOO": "inputs/_core.",
    }


class AllocationFault(Fault):
    """`count` allocations of the cores fail in a row. A few are nanobind's own and abort the process."""

    def __init__(self, name: str, count: int) -> None:
        super().__init__(name, (5, -signal.SIGABRT))
        self._count, self._first = count, 0

    def count_points(self, bench: Bench) -> int:
        variables = environment(bench.build)
        counter = Counter(str(variables["ALLOCATIONS_COUNTER"]))
        if not self._first:
            counter.arm(0)
            subprocess.run(
                [sys.executable, "-c", IMPORTS],
                env={**os.environ, "PYTHONPATH": str(ROOT), **{n: v for n, v in variables.items() if v}},
                check=True,
            )
            self._first = counter.count
        counter.arm(0)
        bench.run(environment=variables)
        return max(0, counter.count - self._first)

    def strike(self, bench: Bench, at: int, rng: random.Random) -> Outcome:
        variables = environment(bench.build)
        Counter(str(variables["ALLOCATIONS_COUNTER"])).arm(self._first + at, self._count)
        return bench.run(environment=variables)


ALLOCATION_FAULTS = [AllocationFault("no memory, once", 1), AllocationFault("no memory from then on", ALWAYS)]
