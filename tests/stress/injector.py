"""File operations below a folder that fail, are cut short, are delayed, or are the last one of a process.

`Injector(build, root).environment(at=7, mode="kill")` returns the variables with which a command in `root` is killed at
its seventh operation there, by shim.c. `.operations` is the number of operations so far.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

SHIM = Path(__file__).with_name("shim.c")


def compiler() -> str | None:
    """Return the path of a C compiler, or None."""
    return shutil.which("cc") or shutil.which("gcc")


def compile_library(source: Path, library: Path) -> Path:
    """Compile a C or C++ file into a library to preload, unless it exists."""
    if not library.exists():
        found = ["c++", "-std=c++20"] if source.suffix == ".cpp" else [compiler() or "cc"]
        options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra"]
        subprocess.run([*found, *options, "-o", library, source, "-ldl"], check=True)
    return library


@dataclass(frozen=True)
class Delays:
    """Random delays of operations.

    rate: delayed operations per million.
    microseconds: typical delay.
    only: "" or the kind of operation to delay (shim.c).
    """

    rate: int = 0
    microseconds: int = 0
    seed: int = 0
    only: str = ""


class Injector:
    """Counts, fails and delays file operations below `root`."""

    def __init__(self, build: Path, root: Path) -> None:
        self._root = root
        self._counter = build / f"counter-{root.parent.name}-{root.name}"
        self._library = compile_library(SHIM, build / "shim.so")

    @property
    def operations(self) -> int:
        """The number of operations since `environment`."""
        return int(struct.unpack_from("q", self._counter.read_bytes())[0])

    def environment(
        self,
        at: int = 0,
        mode: str = "",
        error: int = 0,
        who: str = "all",
        reads: bool = False,
        only: str = "",
        delays: Delays | None = None,
    ) -> dict[str, str | None]:
        """Return the variables of a command, and reset the count.

        at: number of the operation to fail, 0 for none.
        mode, error, only, who: see shim.c.
        reads: whether reads count.
        """
        self._counter.unlink(missing_ok=True)  # processes of an earlier command may still map it
        self._counter.write_bytes(bytes(64))
        delays = delays or Delays()
        return {
            "LD_PRELOAD": str(self._library),
            "FAULT_COUNTER": str(self._counter),
            "FAULT_ROOT": str(self._root),
            "FAULT_AT": str(at),
            "FAULT_MODE": mode,
            "FAULT_ERRNO": str(error),
            "FAULT_WHO": who,
            "FAULT_ONLY": only,
            "FAULT_READS": "1" if reads else None,
            "DELAY_RATE": str(delays.rate),
            "DELAY_MICROSECONDS": str(delays.microseconds),
            "DELAY_SEED": str(delays.seed),
            "DELAY_ONLY": delays.only,
        }
