"""Functions that the tests of engines run in workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tokenmill.engines.worker_process import take_step
from tokenmill.errors import BadArgument
from tokenmill.stores import StoreUnavailable

_context: list[str] = []


def set_context(value: str) -> None:
    _context[:] = [value]


def context_and(number: int) -> tuple[str, int]:
    return _context[0], number


def square(number: int) -> int:
    return number * number


def nap(number: int) -> int:
    time.sleep(number % 7 / 1000)
    return square(number)


def reverse(data: bytes) -> bytes:
    return data[::-1]


def refuse(name: str) -> None:
    raise BadArgument(f"{name}: bad")


def break_off(name: str) -> None:
    raise ZeroDivisionError(name)


def unpicklable() -> Callable[[], None]:
    return lambda: None


def process_id(_: int = 0) -> int:
    return os.getpid()


def end_with(number: int) -> None:
    os.kill(os.getpid(), number)


def times_called(folder: Path, name: object) -> int:
    """Return how often this was called with these arguments, in any process."""
    calls = 0
    while True:
        try:
            (folder / f"{name}-{calls}").touch(exist_ok=False)
            return calls + 1
        except FileExistsError:
            calls += 1


def fail_often(folder: Path, failures: int, number: int) -> int:
    """Fail so many times as a busy store does."""
    if times_called(folder, number) <= failures:
        raise StoreUnavailable("s3://b/k: 503 Slow Down")
    return square(number)


def die_often(folder: Path, deaths: int, number: int) -> int:
    if times_called(folder, number) <= deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return square(number)


def wait_for(path: Path) -> None:
    """Return when there is such a file."""
    stop = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < stop
        time.sleep(0.005)


def begin_and_wait(begun: Path, release: Path) -> str:
    begun.touch()
    wait_for(release)
    return "released"


def report_and_wait(done_bytes: int, release: Path) -> int:
    """Report so many bytes again and again, until there is such a file."""
    while not release.exists():
        take_step(done_bytes)
        time.sleep(0.01)
    return done_bytes


def loop_forever() -> None:
    while True:
        pass


def work_in_steps(seconds: float) -> str:
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        take_step()
    return "done"


def alone(folder: Path, number: int) -> bool:
    """Kill the first worker that runs task 0; in the second one, return whether no other task runs."""
    if number:
        mark = folder / f"running-{number}"
        mark.touch()
        time.sleep(0.02)
        mark.unlink()
        return True
    if times_called(folder, "alone") == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    seen = []
    for _ in range(20):
        seen += folder.glob("running-*")
        time.sleep(0.01)
    return not seen
