"""Commands in separate process groups, with a time limit.

`start(command, folder).wait()` returns the exit code, standard error, and the processes that outlive the command.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
KILLED = -signal.SIGKILL
HANG_SECONDS = 60.0
ORPHAN_SECONDS = 10.0  # a worker notices the end of its parent only after its imports


@dataclass(frozen=True)
class Outcome:
    """The end of a command.

    code: exit status, negative for a signal.
    output: standard error.
    hung: whether the time limit ended it.
    orphans: its processes that were still running after ORPHAN_SECONDS.
    group: the ID of its process group.
    """

    code: int
    output: str
    hung: bool = False
    orphans: tuple[int, ...] = ()
    group: int = 0


class Started:
    """A running command. pid: of its first process, which is also the ID of its process group."""

    def __init__(
        self, command: Sequence[str | Path], folder: Path, environment: Mapping[str, str | None]
    ) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - read at the end
        variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={name: value for name, value in variables.items() if value is not None},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._output,
        )
        self.pid = self.process.pid

    def wait(self, hang_seconds: float = HANG_SECONDS, settles: bool = True) -> Outcome:
        """Return the outcome.

        settles: wait for processes of the group that outlive the command, and kill them after ORPHAN_SECONDS.
        """
        hung = False
        try:
            code = self.process.wait(hang_seconds)
        except subprocess.TimeoutExpired:
            hung, code = True, KILLED
            os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()
        orphans = end_group(self.pid) if settles or hung else ()
        with self._output as output:
            output.seek(0)
            return Outcome(code, output.read().decode(errors="replace"), hung, orphans, self.pid)


def start(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str | None] | None = None
) -> Started:
    """Start a command in a folder. environment: variables to change, or with None to remove."""
    return Started(command, folder, environment or {})


def end_group(group: int, seconds: float = ORPHAN_SECONDS) -> tuple[int, ...]:
    """Wait until a process group is empty. Kill and return the processes that run longer than `seconds`."""
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
