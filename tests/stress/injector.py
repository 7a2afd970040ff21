"""Commands that run under shim.c, which counts, fails and delays file operations.

`Injector(build, root).start(command, at=7, mode="kill").wait()` kills the process at its seventh operation below
`root`. `.operations` is the number of operations.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from processes import HANG_SECONDS, Outcome, Started

SHIM = Path(__file__).with_name("shim.c")


def compiler() -> str | None:
    """Return the path of a C compiler, or None."""
    return shutil.which("cc") or shutil.which("gcc")


def compile_library(source: Path, library: Path) -> Path:
    """Compile a C file into a library to preload, unless it exists."""
    if not library.exists():
        found = compiler()
        assert found is not None
        options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra"]
        subprocess.run([found, *options, "-o", library, source, "-ldl"], check=True)
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
    """Runs commands, and counts and fails their file operations below `root`."""

    def __init__(self, build: Path, root: Path) -> None:
        self._root = root
        self._counter = build / f"counter-{root.name}"
        self._library = compile_library(SHIM, build / "shim.so")

    def start(
        self,
        command: Sequence[str | Path],
        at: int = 0,
        mode: str = "",
        error: int = 0,
        who: str = "all",
        reads: bool = False,
        delays: Delays | None = None,
        temporary: Path | None = None,
        only: str = "",
    ) -> Counted:
        """Start a command in `root`.

        at: number of the operation to fail, 0 for none.
        mode, error, only, who: see shim.c.
        reads: whether reads count.
        temporary: folder for temporary files.
        """
        self._counter.unlink(missing_ok=True)  # processes of an earlier command may still map it
        self._counter.write_bytes(bytes(64))
        environment = {
            "LD_PRELOAD": str(self._library),
            "FAULT_COUNTER": str(self._counter),
            "FAULT_ROOT": str(self._root),
            "FAULT_AT": str(at),
            "FAULT_MODE": mode,
            "FAULT_ERRNO": str(error),
            "FAULT_WHO": who,
            "FAULT_ONLY": only,
            "FAULT_READS": "1" if reads else None,
        }
        if delays is not None:
            environment |= {
                "DELAY_RATE": str(delays.rate),
                "DELAY_MICROSECONDS": str(delays.microseconds),
                "DELAY_SEED": str(delays.seed),
                "DELAY_ONLY": delays.only,
            }
        if temporary is not None:
            environment["TMPDIR"] = str(temporary)
        return Counted(command, self._root, environment, self._counter)


class Counted(Started):
    """A running command with counted operations. operations: known after `wait`."""

    operations = 0

    def __init__(
        self,
        command: Sequence[str | Path],
        folder: Path,
        environment: dict[str, str | None],
        counter: Path,
    ) -> None:
        super().__init__(command, folder, environment)
        self._counter = counter

    def wait(self, hang_seconds: float = HANG_SECONDS, settles: bool = True) -> Outcome:
        """See Started."""
        outcome = super().wait(hang_seconds, settles)
        (self.operations,) = struct.unpack_from("q", self._counter.read_bytes())
        return outcome
