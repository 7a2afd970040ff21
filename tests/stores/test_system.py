"""What systems do differently is in stores/system.py alone, and everything runs where Linux's own calls are missing."""

from __future__ import annotations

import ast
import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from tokenmill.stores import system

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
# What Windows lacks, of modules that it has.
MISSING = {
    "os": (
        "fork forkpty register_at_fork pread preadv readv pwrite pwritev writev sysconf uname getuid geteuid getgid "
        "statvfs fstatvfs sched_getaffinity posix_fadvise posix_fallocate fdatasync sync fchmod fchown chown mkfifo "
        "killpg setsid getpgid nice O_CLOEXEC O_NOFOLLOW O_NONBLOCK O_DIRECTORY O_SYNC WNOHANG wait wait3 wait4 "
        "WIFEXITED WIFSIGNALED WTERMSIG WEXITSTATUS sendfile openpty"
    ).split(),
    "signal": (
        "SIGHUP SIGPIPE SIGKILL SIGUSR1 SIGUSR2 SIGCHLD SIGALRM SIGBUS SIGCONT SIGSTOP SIGQUIT pthread_sigmask "
        "sigwait sigpending pause alarm setitimer SIG_BLOCK SIG_UNBLOCK SIG_SETMASK"
    ).split(),
    "select": ["poll", "epoll", "kqueue"],
    "faulthandler": ["register", "unregister"],
    "mmap": "MAP_SHARED MAP_PRIVATE MAP_ANONYMOUS PROT_READ PROT_WRITE MADV_WILLNEED".split(),
    "socket": ["AF_UNIX"],
}
ABSENT = ("fcntl", "resource", "pwd", "grp", "termios", "syslog", "tty", "pty")
# Modules that are not imported where the calls are missing (tokenmill/engines/choose.py), or ask before they call.
KNOWN = {"tokenmill/stores/system.py", "tokenmill/engines/worker_process.py", "tokenmill/engines/watchdog.py"}


def called(path: Path) -> list[str]:
    """What the module takes of another system's, as "os.fork"."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in MISSING.get(node.value.id, ()):
                found.append(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.Import):
            found += [f"import {each.name}" for each in node.names if each.name in ABSENT]
        elif isinstance(node, ast.ImportFrom):
            names = [each.name for each in node.names]
            found += [f"from {node.module}"] if node.module in ABSENT else []
            found += [f"{node.module}.{name}" for name in names if name in MISSING.get(str(node.module), ())]
    return found


def test_one_module_knows_the_systems() -> None:
    calls = {
        path.relative_to(ROOT).as_posix(): called(path)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    assert {path for path, found in calls.items() if found} == KNOWN
    assert len(calls["tokenmill/stores/system.py"]) > 10  # the search finds what there is


# A Python whose system has what Windows has; what the standard library itself calls on this one stays in its modules.
ELSEWHERE = """
import builtins, errno, fcntl, importlib.abc, os, select, signal, socket, sys, faulthandler, mmap
import concurrent.futures.process, multiprocessing.popen_spawn_posix, multiprocessing.resource_tracker
import multiprocessing.spawn, selectors, shutil, subprocess, tempfile, asyncio, random, uuid, getpass, platform


class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


class Elsewhere:
    '''A module as our packages see it.'''

    def __init__(self, module, missing):
        self.__dict__.update({{name: value for name, value in vars(module).items() if name not in missing}})


sys.meta_path.insert(0, Absent())
for name in {absent!r}:
    sys.modules.pop(name, None)
MISSING = {missing!r}
SEEN = {{name: Elsewhere(sys.modules[name], missing) for name, missing in MISSING.items()}}
real_import = builtins.__import__


class Msvcrt:
    LK_LOCK, LK_NBLCK = 1, 2
    flock, exclusively, at_once = fcntl.flock, fcntl.LOCK_EX, fcntl.LOCK_NB

    @classmethod
    def locking(cls, descriptor, mode, count):
        try:
            cls.flock(descriptor, cls.exclusively if mode == cls.LK_LOCK else cls.exclusively | cls.at_once)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None


SEEN["msvcrt"] = Msvcrt


def import_for(name, globals=None, locals=None, fromlist=(), level=0):
    ours = globals is not None and str(globals.get("__name__")).partition(".")[0] in {packages!r}
    if ours and level == 0 and name in SEEN:
        return SEEN[name]
    return real_import(name, globals, locals, fromlist, level)


builtins.__import__ = import_for
"""


def run_elsewhere(folder: Path, code: str) -> str:
    """What it prints there; processes that it spawns are there, too."""
    begin = ELSEWHERE.format(absent=set(ABSENT), missing=MISSING, packages=set(PACKAGES))
    (folder / "sitecustomize.py").write_text(begin)
    (folder / "job.py").write_text(textwrap.dedent(code))
    path = os.pathsep.join([str(folder), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "job.py"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_from_text_to_batches_elsewhere(tmp_path: Path) -> None:
    text = "".join(
        f"{number} thin words of the mill, number {number * 7}.<|endoftext|>" for number in range(400)
    )
    (tmp_path / "text.txt").write_text(text)
    told = run_elsewhere(
        tmp_path,
        """
        from tokenmill.__main__ import main
        import flat_tokens, tokenmill.stores.system

        if __name__ == "__main__":
            assert not tokenmill.stores.system.HAS_PIPES_TO_WAIT_FOR
            assert tokenmill.stores.system.signals("SIGKILL") == ()
            train = ["train", "text.txt", "--vocab-size", "400", "--special-token", "<|endoftext|>", "-o", "t.json"]
            assert main([*train, "--quiet"]) == 0
            convert = ["convert", "text.txt", "--tokenizer", "t.json", "--workers", "2", "--quiet"]
            for number in "23":
                output = f"{number}.zarr"
                chunks = ["--zarr-format", number, "--text-chunk-bytes", "4000"]
                assert main([*convert, *chunks, "--output", output]) == 0
                assert main(["verify", output, "--workers", "1"]) == 0
            assert main(["export", "3.zarr", "--to", "npy", "--output", "npy"]) == 0
            for number in "23":
                dataset = flat_tokens.open(f"{number}.zarr")
                print(sum(int(batch.inputs.sum()) for batch in flat_tokens.Loader(dataset.train, 32, 4, seed=1)))
        """,
    )
    first, second = told.split()[-2:]
    assert first == second
    assert int(first) > 0


def test_reads_and_writes_without_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Threads that read one file at other places do not disturb each other where a file has one place alone."""
    for name in ("pread", "preadv", "pwrite"):
        monkeypatch.delattr(os, name)
    path = tmp_path / "file"
    data = bytes(range(256)) * 64
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | system.BINARY, 0o666)
    wrong: list[int] = []

    def read(start: int) -> None:
        for place in range(start, len(data) - 100, 371):
            view = memoryview(bytearray(100))
            if system.read_into(descriptor, view, place) != 100 or bytes(view) != data[place : place + 100]:
                wrong.append(place)
            if system.read_at(descriptor, 50, place) != data[place : place + 50]:
                wrong.append(place)

    try:
        assert sum(
            system.write_at(descriptor, memoryview(data)[at : at + 99], at) for at in range(0, len(data), 99)
        )
        assert path.read_bytes() == data
        threads = [threading.Thread(target=read, args=(start,)) for start in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert system.read_into(descriptor, memoryview(bytearray(10)), len(data) - 4) == 4
    finally:
        os.close(descriptor)


def test_a_lock_is_held_until_the_file_is_closed(tmp_path: Path) -> None:
    first = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    second = os.open(tmp_path / "lock", os.O_RDWR)
    try:
        system.lock(first)
        with pytest.raises(BlockingIOError):
            system.lock(second)
        with pytest.raises(BlockingIOError):
            system.lock(second, shared=True)
    finally:
        os.close(first)
    system.lock(second, shared=True, wait=True)
    os.close(second)


def test_a_folder_and_a_file_are_synced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    synced: list[bool] = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: synced.append(Path(f"/proc/self/fd/{descriptor}").is_dir())
    )
    system.sync(tmp_path)
    system.sync(tmp_path / "file")
    assert synced == [True, False]
    monkeypatch.delattr(os, "O_DIRECTORY")
    system.sync(tmp_path)  # Windows opens none
    system.sync(tmp_path / "file")
    assert synced == [True, False, False]


class Slow:
    """Its property is worked out while `begun` is set, until `goes_on` is."""

    begun, goes_on = threading.Event(), threading.Event()

    def __init__(self, waits: bool) -> None:
        self.waits = waits

    @system.cached_property
    def value(self) -> int:
        if self.waits:
            self.begun.set()
            self.goes_on.wait()
        return 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_a_property_is_worked_out() -> None:
    """Python 3.11 has one lock for all objects of a class, which the child would wait for."""
    thread = threading.Thread(target=lambda: Slow(True).value)
    thread.start()
    Slow.begun.wait()
    child = os.fork()
    if not child:
        os._exit(Slow(False).value)
    try:
        until = time.monotonic() + 20
        ended, status = 0, 0
        while not ended and time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            time.sleep(0.01)
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert ended
        assert os.waitstatus_to_exitcode(status) == 1
    finally:
        Slow.goes_on.set()
        thread.join()


def test_a_thread_that_found_no_memory_as_it_began_was_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_memory(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    thread = threading.Thread(target=time.sleep, args=(0,))
    with monkeypatch.context() as patch:
        patch.setattr(system.mmap, "mmap", without_memory)
        with pytest.raises(MemoryError):
            system.start_thread(thread)
    assert thread.ident is None
    system.start_thread(thread)
    thread.join(30)
    assert not thread.is_alive()
