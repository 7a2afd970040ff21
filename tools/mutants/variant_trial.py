"""Try changes of a SIMD variant with tools/check_variants, in a copy of the core's sources. The tests do not run the
variant if the processor lacks its instructions.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from mutants.change import Change
from mutants.trial import Outcome

VARIANTS = {"arm64": "neon", "avx512": "avx512"}  # option of check_variants -> suffix of file names
SOURCES = ("native", "bpe/native", "tools/native")
CHECK = "tools/check_variants"
ENDLESS_SECONDS = 300.0
ROUNDS = "2"
NOT_COMPILED = 123  # exit status of xargs


def check_unchanged(root: Path, kind: str) -> None:
    """Build the initial state of the copies. Exit if a tool is missing, or if the check fails without a change."""
    code, told = _check(root, kind, {})
    if code:
        sys.exit(f"error: {CHECK} --{kind} fails on unchanged sources: {told.strip()}")


class VariantTree:
    """A copy of the sources and their build, for one process."""

    def __init__(self, root: Path, folder: Path, kind: str) -> None:
        self._folder, self._kind = folder / f"variant-{os.getpid()}", kind
        built = f"build/check_variants/{kind}"
        for name in (*SOURCES, built):
            shutil.copytree(root / name, self._folder / name)
        shutil.copy2(root / CHECK, self._folder / CHECK)
        self._environment = {"TABLES": str(self._folder / built / "tables.txt")}

    def try_change(self, change: Change, tests: list[str], test_seconds: float) -> Outcome:
        """Make the change, check all variants, and revert it."""
        started = time.monotonic()
        path = self._folder / change.path
        text = path.read_text()
        try:
            path.write_text(change.applied(text))
            code, told = _check(self._folder, self._kind, self._environment)
        finally:
            path.write_text(text)
        result = {0: "survived", NOT_COMPILED: "invalid"}.get(code, "killed")
        last = told.strip().rpartition("\n")[2] if result == "killed" else ""
        return Outcome(result, last, [CHECK], time.monotonic() - started)


def _check(folder: Path, kind: str, environment: dict[str, str]) -> tuple[int, str]:
    process = subprocess.Popen(
        [CHECK, f"--{kind}", ROUNDS],
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        told = process.communicate(timeout=ENDLESS_SECONDS)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        told = process.communicate()[0] + "endless"
    return process.returncode, told
