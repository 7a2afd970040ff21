"""Requests in threads: each ends whatever started it, and the end of the process waits for them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from tokenmill.stores import requests, system


def wait_until(is_done: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not is_done():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_the_end_of_a_process_waits_for_running_requests() -> None:
    program = (
        "import time\nfrom tokenmill.stores import requests\n"
        "requests.start(lambda: (time.sleep(0.3), print('done', flush=True)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "done\n"


def test_requests_start_others_and_few_threads_are_kept() -> None:
    """Many requests run at once. Each starts others and waits for them. Some fail."""

    def request(depth: int) -> int:
        inner = [requests.start(lambda: request(depth - 1)) for _ in range(3 * depth)]
        return 1 + sum(future.result() for future in inner)

    before = threading.active_count()
    for _ in range(4):
        futures = [requests.start(lambda number=number: request(2) // number) for number in range(20)]  # type: ignore[misc]
        with pytest.raises(ZeroDivisionError):
            futures[0].result(60)
        assert [future.result(60) for future in futures[1:]] == [25 // number for number in range(1, 20)]
    wait_until(lambda: threading.active_count() <= before + 72)


def test_remote_libraries_are_imported_late() -> None:
    program = (
        "import sys; from tokenmill import stores; stores.open_store('.'); "
        "assert not {'obstore', 'huggingface_hub', 'concurrent.futures'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_thread_without_memory_for_its_stack_blocked_its_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_memory(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(system.mmap, "mmap", without_memory)
    with pytest.raises(MemoryError):
        system.start_thread(threading.Thread())


class Slow:
    """Computing its property sets `begun` and waits for `release`."""

    begun, release = threading.Event(), threading.Event()

    def __init__(self, waits: bool) -> None:
        self.waits = waits

    @system.cached_property
    def value(self) -> int:
        if self.waits:
            self.begun.set()
            self.release.wait()
        return 1


def test_a_fork_while_another_thread_computes_a_property_was_a_deadlock() -> None:
    """Python 3.11 has one lock for all objects of a class, for which the child would wait."""
    thread = threading.Thread(target=lambda: Slow(True).value)
    thread.start()
    Slow.begun.wait()
    child = os.fork()
    if not child:
        os._exit(Slow(False).value)
    ended: list[tuple[int, int]] = []
    try:
        wait_until(lambda: ended.append(os.waitpid(child, os.WNOHANG)) or ended[-1][0] == child)
        assert os.waitstatus_to_exitcode(ended[-1][1]) == 1
    finally:
        Slow.release.set()
        thread.join()
