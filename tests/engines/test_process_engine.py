"""Worker processes: how they die, hang, report and end, and the signals that end a run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sample_tasks import (
    alone,
    begin_and_wait,
    end_with,
    loop_forever,
    process_id,
    refuse,
    report_and_wait,
    square,
    wait_for,
    work_in_steps,
)

from tokenmill.engines import process_engine
from tokenmill.engines.errors import WorkerLost
from tokenmill.engines.process_engine import ProcessEngine
from tokenmill.engines.stop_signals import ENDING_SIGNALS, Stopped, stop_signals
from tokenmill.engines.tasks import TaskPool
from tokenmill.errors import BadArgument

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


# "fork" is used although the test process has threads: its children only run Python of ours.
def started(
    prepare: Callable[..., Any] = bool, *arguments: Any, workers: int = 2, **more: Any
) -> ProcessEngine:
    engine = ProcessEngine(workers, **{"start_method": "fork", **more})
    engine.start(100, prepare, *arguments)
    return engine


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_failed_start_fails_every_task() -> None:
    with started(refuse, "job") as engine:
        for future in [engine.submit(square, 1) for _ in range(5)]:
            with pytest.raises(BadArgument, match="job"):
                future.result(10)
    with started(end_with, signal.SIGKILL, workers=1) as engine, pytest.raises(WorkerLost, match="SIGKILL"):
        engine.submit(square, 1).result(60)


def test_a_lost_worker_is_named_and_replaced_while_the_others_work(tmp_path: Path) -> None:
    notices: list[str] = []
    with started(notice=notices.append) as engine:
        working = engine.submit(begin_and_wait, tmp_path / "begun", tmp_path / "release")
        wait_for(tmp_path / "begun")
        lost = engine.submit(end_with, signal.SIGSEGV)
        while not notices:
            time.sleep(0.01)
        assert not working.done()
        assert re.search(r"^warning: worker \d .*SIGSEGV.*report it", notices[0])
        (tmp_path / "release").touch()
        assert working.result(60) == "released"
        with pytest.raises(WorkerLost, match="SIGSEGV"):
            lost.result(60)
        assert [engine.submit(square, number).result(60) for number in range(5)] == [0, 1, 4, 9, 16]
    assert len(notices) == 1


def test_a_task_runs_alone_after_its_worker_died(tmp_path: Path) -> None:
    with started(workers=3) as engine:
        futures = [engine.submit(alone, tmp_path, number) for number in (*range(1, 5), *range(60))]
        assert all(future.result(60) for future in futures)


def test_progress_is_known_while_tasks_run(tmp_path: Path) -> None:
    sizes = {5: 5, 70_000_000_000: 70_000_000_000}
    with started() as engine, TaskPool(engine) as pool:
        for size in sizes:
            pool.submit(size, str, report_and_wait, size, tmp_path / "release")
        until = time.monotonic() + 60
        while dict(pool.running()) != sizes:
            assert not list(pool.done(0.01))
            assert time.monotonic() < until
        (tmp_path / "release").touch()
        found: dict[int, int] = {}
        while len(pool):
            found.update(pool.done())
        assert found == sizes


@pytest.mark.slow
def test_a_worker_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_engine, "_TICK_SECONDS", 0.2)
    with started(stall_seconds=3) as engine:
        assert engine.submit(work_in_steps, 5.0).result(60) == "done"  # long, but with steps
        for hung in [engine.submit(time.sleep, 1000), engine.submit(loop_forever)]:
            with pytest.raises(WorkerLost, match="no progress in 3 s"):
                hung.result(60)
        assert engine.submit(square, 2).result(60) == 4


def test_workers_end_when_their_parent_is_killed() -> None:
    read, write = os.pipe()
    parent = os.fork()
    if parent == 0:
        engine = started(workers=3)
        ids = {engine.submit(process_id).result(10) for _ in range(20)}
        os.write(write, " ".join(map(str, ids)).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(write)
    ids = {int(number) for number in os.read(read, 1000).split()}
    os.close(read)
    os.waitpid(parent, 0)
    assert ids
    deadline = time.monotonic() + 60
    while any(is_running(number) for number in ids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_second_ctrl_c_during_the_notice_of_the_first_left_the_workers() -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    engine = started()
    ids = {engine.submit(process_id).result(10) for _ in range(20)}
    with pytest.raises(KeyboardInterrupt, match="first"), TaskPool(engine, notice=interrupted):
        raise KeyboardInterrupt("first")
    assert not any(is_running(number) for number in ids)


@pytest.mark.parametrize("at", ["_start_new_thread", "getpid"])
def test_ctrl_c_while_the_engine_starts(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it came as a thread was started, the engine could not be shut down."""
    module = threading if at == "_start_new_thread" else os
    real = getattr(module, at)

    def interrupted(*arguments: Any) -> Any:
        if threading.current_thread() is threading.main_thread():  # others are of tests before
            monkeypatch.setattr(module, at, real)
            signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    engine = ProcessEngine(1, "fork")
    monkeypatch.setattr(module, at, interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.start(1, bool)
    engine.shutdown()
    assert not any(thread.name == "worker" for thread in threading.enumerate())


SCRIPT_WITHOUT_MAIN_GUARD = """
import sys
from pathlib import Path
from sample_tasks import context_and, die_often, set_context
from tokenmill.engines.process_engine import ProcessEngine

with Path(sys.argv[2]).open("a") as file:
    file.write(f"ran as {__name__}\\n")
engine, context = ProcessEngine(2, sys.argv[3]), sys.argv[1] * 200_000
engine.start(2, set_context, context)
with engine:
    assert engine.submit(die_often, Path(sys.argv[2]).parent, 1, 3).result() == 9
    assert [engine.submit(context_and, n).result() for n in range(4)] == [(context, n) for n in range(4)]
"""


@pytest.mark.parametrize("start_method", ["fork", "spawn", "forkserver"])
def test_every_worker_is_prepared_by_a_script_without_a_main_guard(tmp_path: Path, start_method: str) -> None:
    """Also with more to send at the start than a pipe holds: once, a dead worker was a hang then."""
    script, runs = tmp_path / "script.py", tmp_path / "runs"
    script.write_text(SCRIPT_WITHOUT_MAIN_GUARD)
    command = [sys.executable, str(script), "context", str(runs), start_method]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert runs.read_text() == "ran as __main__\n"


@pytest.mark.parametrize("number", ENDING_SIGNALS)
def test_a_signal_is_an_exception_in_the_process_that_asked_for_it_only(number: int) -> None:
    with pytest.raises(Stopped) as caught, stop_signals():
        signal.raise_signal(number)
    assert caught.value.exit_code == 128 + number
    with stop_signals():
        child = os.fork()
        if not child:
            with suppress(BaseException):
                os.kill(os.getpid(), number)
                time.sleep(5)
            os._exit(7)
        _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == number
