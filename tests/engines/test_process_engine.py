"""Every executor does the same; the process pool survives what its workers do not."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from convert.errors import BadInput, WorkerLost
from tokenmill.engines.ending import ending
from tokenmill.engines.engine import Engine
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.engines.process_engine import ProcessEngine, may_fork
from tokenmill.engines.tasks import TaskPool
from tokenmill.engines.worker_process import take_step

_context: list[str] = []


def set_context(value: str) -> None:
    _context[:] = [value]


def fail_to_start() -> None:
    raise BadInput("no luck")


def context_and(number: int) -> tuple[str, int]:
    return _context[0], number


def raise_bad_input(name: str) -> None:
    raise BadInput(f"{name}: bad")


def end_with(signal_number: int) -> None:
    os.kill(os.getpid(), signal_number)


def unpicklable() -> object:
    return lambda: None


def big(size: int) -> bytes:
    return bytes(size)


def take(value: bytes) -> int:
    return len(value)


# "fork" is asked for although the test process may have threads: the children only run Python of ours.
KINDS = ["inline", "fork", "spawn"]


@pytest.fixture(params=KINDS)
def executor(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "inline":
        yield started(InlineEngine(), set_context, "ready")
        return
    with started(ProcessEngine(2, request.param), set_context, "ready") as engine:
        yield engine


def started(engine: Engine, prepare: Callable[..., None], *arguments: Any) -> Engine:
    engine.start(sys.maxsize, prepare, *arguments)
    return engine


def tell_and_wait(done_bytes: int, go_on: Path) -> int:
    """Say again and again that so much is done, till the file is there."""
    while not go_on.exists():
        take_step(None, done_bytes)
        time.sleep(0.01)
    return done_bytes


def test_how_far_tasks_are_is_known_while_they_work(tmp_path: Path) -> None:
    with ProcessEngine(2) as executor, TaskPool(executor) as pool:
        for done_bytes in (5, 70_000_000_000):
            pool.submit(done_bytes, str, tell_and_wait, done_bytes, tmp_path / "go on")
        until = time.monotonic() + 60
        while dict(pool.running()) != {5: 5, 70_000_000_000: 70_000_000_000}:
            assert not list(pool.done(0.01))
            assert time.monotonic() < until
        (tmp_path / "go on").touch()
        found = []
        while len(pool):
            found += pool.done()
        assert sorted(found) == [(5, 5), (70_000_000_000, 70_000_000_000)]
        assert not list(pool.running())


def test_results_errors_and_large_payloads(executor: Engine) -> None:
    futures = [executor.submit(context_and, number) for number in range(50)]
    assert [future.result(30) for future in futures] == [("ready", number) for number in range(50)]
    with pytest.raises(BadInput, match=r"en\.txt"):
        executor.submit(raise_bad_input, "en.txt").result(30)
    sizes = [1 << 20, 0, 3 << 20, 17]
    assert [len(f.result(30)) for f in [executor.submit(big, size) for size in sizes]] == sizes
    assert [f.result(30) for f in [executor.submit(take, bytes(size)) for size in sizes]] == sizes


def test_an_answer_that_cannot_be_sent_is_an_error_not_a_hang() -> None:
    with ProcessEngine(1, start_method="fork") as pool:
        with pytest.raises(RuntimeError, match="result of a task"):
            pool.submit(unpicklable).result(10)
        assert pool.submit(take, b"ab").result(10) == 2


def own_id(number: int) -> tuple[int, int]:
    time.sleep(0.005)
    return os.getpid(), number


def test_tasks_with_a_key_are_done_by_one_worker_till_it_is_released_or_dies() -> None:
    with ProcessEngine(3) as executor:
        first, other = (executor.submit(own_id, 0, sticky=key).result(30)[0] for key in "ab")
        assert first != other
        mixed = [executor.submit(own_id, 0, sticky=key) for key in "ab" * 50]
        assert [future.result(30)[0] for future in mixed] == [first, other] * 50
        with pytest.raises(WorkerLost):
            executor.submit(end_with, signal.SIGKILL, sticky="a").result(60)
        fresh = executor.submit(own_id, 0, sticky="a").result(30)[0]
        assert fresh not in (first, other)
        assert executor.submit(own_id, 0, sticky="b").result(30)[0] == other
        for key in "ab":
            executor.release(key)
        assert executor.submit(own_id, 0, sticky="c").result(30)


def test_a_failed_start_fails_every_task() -> None:
    with started(ProcessEngine(2, "fork"), fail_to_start) as pool:
        for future in [pool.submit(take, b"") for _ in range(5)]:
            with pytest.raises(BadInput):
                future.result(10)


def wait_for(path: Path) -> None:
    """Return when there is such a file; a minute is for ever."""
    stop = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < stop
        time.sleep(0.005)


def begin_and_wait(begun: Path, release: Path) -> str:
    begun.touch()
    wait_for(release)
    return "released"


def test_a_killed_worker_is_noticed_while_the_other_works_which_goes_on(tmp_path: Path) -> None:
    begun, release = tmp_path / "begun", tmp_path / "release"
    with ProcessEngine(2, start_method="fork", replace=False) as pool:
        at_work = pool.submit(begin_and_wait, begun, release)
        wait_for(begun)
        lost = pool.submit(end_with, signal.SIGKILL)
        with pytest.raises(WorkerLost):
            lost.result(60)
        assert not at_work.done()  # nobody woke the pool but the dead
        others = [pool.submit(take, bytes(n)) for n in range(20)]
        release.touch()
        assert at_work.result(60) == "released"
        assert [future.result(60) for future in others] == list(range(20))


def test_when_all_workers_are_lost_every_task_fails() -> None:
    with ProcessEngine(2, start_method="fork", replace=False) as pool:
        futures: list[Future[object]] = [pool.submit(end_with, signal.SIGTERM) for _ in range(2)]
        futures += [pool.submit(take, b"") for _ in range(5)]
        wait(futures, 10)
        late = pool.submit(take, b"")
        failed = [future for future in [*futures, late] if isinstance(future.exception(10), WorkerLost)]
        assert set(futures[:2]) <= set(failed)
        assert late in failed
        assert "SIGTERM" in str(late.exception())


def test_shutdown_cancels_what_waits_and_leaves_no_process(tmp_path: Path) -> None:
    pool = ProcessEngine(1, start_method="fork").__enter__()
    pid = pool.submit(os.getpid).result(60)
    first = pool.submit(begin_and_wait, tmp_path / "begun", tmp_path / "never")
    rest = [pool.submit(take, b"") for _ in range(5)]
    wait_for(tmp_path / "begun")
    pool.shutdown(wait=False, cancel_futures=True)
    pool.kill()
    for future in rest[1:]:  # the first of them may have been sent ahead
        with pytest.raises(CancelledError):
            future.result(60)
    assert isinstance(first.exception(60), WorkerLost)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(take, b"")


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    read, write = os.pipe()
    parent = os.fork()
    if parent == 0:
        pool = ProcessEngine(2, start_method="fork").__enter__()
        pids = {pool.submit(os.getpid).result(10) for _ in range(20)}
        os.write(write, " ".join(map(str, pids)).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(write)
    pids = [int(pid) for pid in os.read(read, 1000).split()]
    os.close(read)
    os.waitpid(parent, 0)
    deadline = time.monotonic() + 60
    alive = set(pids)
    while alive and time.monotonic() < deadline:
        alive = {pid for pid in alive if _is_running(pid)}
        time.sleep(0.01)
    assert pids
    assert not alive


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_workers_ignore_ctrl_c() -> None:
    with ProcessEngine(1, start_method="fork") as pool:
        pid = pool.submit(os.getpid).result(10)
        os.kill(pid, signal.SIGINT)
        assert pool.submit(os.getpid).result(10) == pid


@pytest.mark.parametrize("at", ["next", "answered"])
def test_without_memory_the_engines_thread_left_its_tasks_waiting(
    at: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Who waited for a result waited for ever, and Python told of the thread by a traceback."""

    def without_memory(*_: object) -> None:
        raise MemoryError

    with ProcessEngine(2) as engine:
        monkeypatch.setattr(engine._dispatch, at, without_memory)
        future = engine.submit(int, 1)
        with pytest.raises(MemoryError):
            future.result(30)
        with pytest.raises(MemoryError):
            engine.submit(int, 1)
        with pytest.raises(MemoryError):
            engine.check()
    for worker in engine._workers:
        worker.process.join(30)
        assert not worker.process.is_alive()
    assert capfd.readouterr().err == ""


def test_fork_is_not_safe_beside_a_thread() -> None:
    with ProcessEngine(1, start_method="fork"):
        assert not may_fork()


def die_once(marker: str) -> int:
    path = Path(marker)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def test_a_fresh_worker_takes_the_place_and_the_task_of_a_dead_one(tmp_path: Path) -> None:
    notices: list[str] = []
    with ProcessEngine(2, start_method="fork", notice=notices.append) as pool:
        first = {pool.submit(os.getpid).result(10) for _ in range(20)}
        again = pool.submit(die_once, str(tmp_path / "marker"))
        others = [pool.submit(take, bytes(n)) for n in range(20)]
        assert again.result(30) not in first or len(first) == 2
        assert [future.result(10) for future in others] == list(range(20))
    assert len(notices) == 1
    assert re.search(r"^warning: worker \d .*SIGKILL", notices[0])


def test_a_task_that_kills_twice_is_given_up_and_the_rest_goes_on() -> None:
    notices: list[str] = []
    with ProcessEngine(1, start_method="fork", notice=notices.append) as pool:
        deadly = pool.submit(end_with, signal.SIGSEGV)
        others = [pool.submit(take, bytes(n)) for n in range(3)]
        with pytest.raises(WorkerLost):
            deadly.result(30)
        assert [future.result(30) for future in others] == [0, 1, 2]
    assert ["retried" in notice for notice in notices] == [True, False]


def test_workers_that_cannot_live_are_not_replaced_for_ever() -> None:
    with (
        started(ProcessEngine(1, "fork"), end_with, signal.SIGKILL) as pool,
        pytest.raises(WorkerLost, match="SIGKILL"),
    ):
        pool.submit(take, b"").result(60)


def test_a_hung_worker_is_ended_and_says_where_it_was(tmp_path: Path) -> None:
    stacks = tmp_path / "stacks"
    with ProcessEngine(1, start_method="fork", stall_seconds=1.5, stacks=stacks) as pool:
        hung = pool.submit(time.sleep, 1000)
        with pytest.raises(WorkerLost, match=r"1\.5"):
            hung.result(60)
        assert pool.submit(take, b"x").result(60) == 1
    assert "worker_process.py" in stacks.read_text()


def work_without_end() -> None:
    while True:
        pass


def work_in_steps(seconds: float) -> str:
    stop = time.process_time() + seconds
    while time.process_time() < stop:
        take_step()
    return "done"


def test_an_endless_loop_is_ended_and_says_where_it_was(tmp_path: Path) -> None:
    stacks = tmp_path / "stacks"
    with ProcessEngine(1, start_method="fork", stall_seconds=1, stacks=stacks) as pool:
        assert pool.submit(work_in_steps, 2.5).result(60) == "done"  # long, but it gets on
        with pytest.raises(WorkerLost):
            pool.submit(work_without_end).result(60)
        assert pool.submit(take, b"x").result(60) == 1
    assert "work_without_end" in stacks.read_text()


def test_stopping_gives_tasks_in_work_their_time(tmp_path: Path) -> None:
    pool = ProcessEngine(1, start_method="fork").__enter__()
    future = pool.submit(begin_and_wait, tmp_path / "begun", tmp_path / "release")
    wait_for(tmp_path / "begun")

    def release_when_it_stops() -> None:
        with suppress(RuntimeError):  # after shutdown
            while True:
                pool.submit(take, b"").cancel()
        (tmp_path / "release").touch()

    helper = threading.Thread(target=release_when_it_stops)
    helper.start()
    pool.stop(60)
    helper.join()
    assert future.result(60) == "released"


def test_stopping_gives_tasks_in_work_no_more_than_their_time(tmp_path: Path) -> None:
    pool = ProcessEngine(1, start_method="fork").__enter__()
    future = pool.submit(begin_and_wait, tmp_path / "begun", tmp_path / "never")
    wait_for(tmp_path / "begun")
    pool.stop(0.05)
    assert isinstance(future.exception(60), WorkerLost)


SCRIPT_WITHOUT_MAIN_GUARD = """
import sys
from pathlib import Path
from tokenmill.engines.process_engine import ProcessEngine
from test_process_engine import context_and, die_once, set_context

with Path(sys.argv[2]).open("a") as file:
    file.write(f"ran as {__name__}\\n")
engine = ProcessEngine(2, sys.argv[3])
engine.start(2, set_context, sys.argv[1] * 200_000)
with engine as pool:
    assert pool.submit(die_once, sys.argv[2] + ".died").result() > 0
    assert [pool.submit(context_and, n).result()[1] for n in range(4)] == [0, 1, 2, 3]
"""


@pytest.mark.parametrize("start_method", ["fork", "spawn", "forkserver"])
def test_a_script_without_a_main_guard_runs_once_whatever_starts_or_replaces_workers(
    tmp_path: Path, start_method: str
) -> None:
    """Also with more to send at the start than a pipe holds, which once made a dead worker a hang."""
    script, runs = tmp_path / "script.py", tmp_path / "runs"
    script.write_text(SCRIPT_WITHOUT_MAIN_GUARD)
    command = [sys.executable, str(script), "context", str(runs), start_method]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert runs.read_text() == "ran as __main__\n"


def test_a_second_ctrl_c_at_the_notice_of_the_first_left_the_workers() -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    executor = started(ProcessEngine(2), set_context, "ready")
    processes = [worker.process for worker in executor._workers]
    with pytest.raises(KeyboardInterrupt, match="first"), ending(executor, interrupted):
        raise KeyboardInterrupt("first")
    for process in processes:
        process.join(5)
        assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("at", ["_start_new_thread", "pipe"])
def test_ctrl_c_while_the_engine_starts(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it came as the thread was started, the engine could not be shut down: a RuntimeError in place of the end."""
    module = threading if at == "_start_new_thread" else os
    real = getattr(module, at)

    def interrupted(*arguments: Any) -> Any:
        if threading.current_thread() is threading.main_thread():  # others are of tests before
            monkeypatch.setattr(module, at, real)
            # Sent to the process, another thread might take it, and the main one be told late.
            signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    engine = ProcessEngine(1)
    monkeypatch.setattr(module, at, interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.start(1)
    engine.shutdown()
    for worker in engine._workers:
        worker.process.join(10)
        assert worker.process.exitcode is not None
