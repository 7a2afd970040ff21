"""A file system in user space with the differences between NFS and a local disk.

    python tests/stress/network_disk.py BACKING MOUNT '{"repeats": [7], "locks": "local"}'

Each mount is a host with a separate cache of names and attributes; BACKING is the server. An open file that this host
removes or replaces keeps a name `.nfs...` until it is closed. An open file that another host removes or replaces is
stale. `Host` mounts one. Needs Linux, /dev/fuse, libfuse, fusermount and `pip install mfusepy`.
"""

# ruff: noqa: PTH101, PTH102, PTH104, PTH106, PTH108, PTH115, PTH119, PTH211
from __future__ import annotations

import errno
import fcntl
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench import Bench, Fault
from processes import KILLED, Outcome

_HIDDEN, _SILLY = ".fuse_hidden", ".nfs"  # what libfuse calls it, and NFS
_START_SECONDS = 20.0


@dataclass(frozen=True)
class Behaviour:
    """The behaviour of a network disk. Operations and files are numbered from 1; 0 is none.

    repeats: operations on names that lose their answer, so that the repetition fails with ENOENT or EEXIST.
    late: file, of those opened for writing, that loses its bytes after late_at. fsync or close reports late_error.
    stale: operation on an open file that fails with ESTALE.
    cache_seconds: maximum age of cached names, missing names and attributes.
    locks: "shared" by all hosts, "local" to each host, or the error of a lock.
    links: whether hard links are supported.
    folder_sync: whether folders can be synced.
    is_direct: no shared mappings, and nothing is cached.
    clock_seconds: by which the server's clock is ahead.
    whole_seconds: times have no fractions.
    kill: operation on names before which the group of its caller is killed.
    """

    repeats: tuple[int, ...] = ()
    late: int = 0
    late_at: int = 0
    late_error: int = errno.ENOSPC
    stale: int = 0
    cache_seconds: float = 0
    locks: str | int = "shared"
    links: bool = True
    folder_sync: bool = True
    is_direct: bool = False
    clock_seconds: int = 0
    whole_seconds: bool = False
    kill: int = 0


@dataclass
class Counts:
    """Operations of a host.

    names: that change names.
    written: files opened for writing.
    handles: on open files.
    struck: that were disturbed.
    """

    names: int = 0
    written: int = 0
    handles: int = 0
    struck: int = 0


class Host:
    """A mount. counts: known after it is unmounted."""

    def __init__(self, backing: Path, mount: Path, behaviour: Behaviour) -> None:
        self.mount, self.counts = mount, Counts()
        self._counts_file = mount.with_name(f"{mount.name}.counts")
        mount.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, __file__, backing, mount, json.dumps(asdict(behaviour)), self._counts_file],
            start_new_session=True,
        )
        deadline = time.monotonic() + _START_SECONDS
        while not mount.is_mount():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{mount}: cannot be mounted")
            time.sleep(0.01)

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        for way in ["-u"] * 100 + ["-uz"]:  # it learns of closed files a moment later
            if not subprocess.run(["fusermount", way, self.mount], capture_output=True).returncode:
                break
            time.sleep(0.02)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:  # a file is still open
            self._process.kill()
            self._process.wait()
        if self._counts_file.exists():
            self.counts = Counts(**json.loads(self._counts_file.read_text()))
            self._counts_file.unlink()
        self.mount.rmdir()


def _operations(
    base: type, context: Callable[[], tuple[int, int, int]], backing: str, is_as: Behaviour, counts_file: str
) -> Any:
    lock, started = threading.Lock(), time.time_ns()
    counts = Counts()
    late: set[int] = set()  # open files with lost bytes that were not reported
    chosen: set[int] = set()

    def real(path: str) -> str:
        return backing + path.replace(f"/{_HIDDEN}", f"/{_SILLY}")

    def begun() -> None:
        """Called before an operation on names."""
        if is_as.kill and counts.names + 1 == is_as.kill:
            with suppress(ProcessLookupError):
                if caller := context()[2]:  # 0: the kernel itself
                    os.killpg(os.getpgid(caller), signal.SIGKILL)

    def named(answer: int) -> None:
        """Called after an operation on names. Raise OSError if its answer is lost."""
        with lock:
            counts.names += 1
            lost = counts.names in is_as.repeats
            counts.struck += lost
        if lost:
            raise OSError(answer, os.strerror(answer))

    def handle(fh: int) -> None:
        with lock:
            counts.handles += 1
            chance = counts.handles == is_as.stale
            counts.struck += chance
        if chance or os.fstat(fh).st_nlink == 0:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    def opened(fh: int, flags: int) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY:
            with lock:
                counts.written += 1
                if counts.written == is_as.late:
                    chosen.add(fh)
        return fh

    def report(fh: int) -> None:
        with lock:
            is_late = fh in late
            late.discard(fh)
        if is_late:
            raise OSError(is_as.late_error, os.strerror(is_as.late_error))

    class Disk(base):  # type: ignore[misc]
        use_ns = True

        def destroy(self, path: str) -> None:
            Path(counts_file).write_text(json.dumps(asdict(counts)))

        def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
            status = os.lstat(real(path))
            names = (
                "st_mode",
                "st_ino",
                "st_nlink",
                "st_uid",
                "st_gid",
                "st_size",
                "st_blocks",
                "st_blksize",
            )
            found = {name: getattr(status, name) for name in names}
            for name in ("st_atime", "st_mtime", "st_ctime"):
                at = getattr(status, name + "_ns")
                at += is_as.clock_seconds * 10**9 if at > started else 0  # times set by a command stay
                found[name] = at // 10**9 * 10**9 if is_as.whole_seconds else at
            return found

        def readdir(self, path: str, fh: int) -> list[tuple[str, dict[str, int], int]]:
            with os.scandir(real(path)) as found:
                return [(entry.name, {"st_ino": entry.inode(), "st_mode": 0}, 0) for entry in found]

        def statfs(self, path: str) -> dict[str, int]:
            found = os.statvfs(real(path))
            names = (
                "f_bavail",
                "f_bfree",
                "f_blocks",
                "f_bsize",
                "f_favail",
                "f_ffree",
                "f_files",
                "f_frsize",
            )
            return {name: getattr(found, name) for name in (*names, "f_namemax")}

        def readlink(self, path: str) -> str:
            return os.readlink(real(path))

        def symlink(self, target: str, source: str) -> None:
            os.symlink(source, real(target))

        def chmod(self, path: str, mode: int) -> None:
            os.chmod(real(path), mode)

        def chown(self, path: str, uid: int, gid: int) -> None:
            os.chown(real(path), uid, gid)

        def utimens(self, path: str, times: tuple[int, int] | None = None) -> None:
            os.utime(real(path), ns=times)

        def truncate(self, path: str, length: int, fh: int | None = None) -> None:
            os.truncate(real(path), length)

        def mkdir(self, path: str, mode: int) -> None:
            begun()
            os.mkdir(real(path), mode)
            named(errno.EEXIST)

        def rmdir(self, path: str) -> None:
            begun()
            os.rmdir(real(path))
            named(errno.ENOENT)

        def unlink(self, path: str) -> None:
            name = os.path.basename(path)
            if name.startswith(_SILLY) and os.path.lexists(real(path)):
                raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
            begun()
            os.unlink(real(path))
            if not name.startswith(_HIDDEN):
                named(errno.ENOENT)

        def rename(self, old: str, new: str) -> None:
            begun()
            os.rename(real(old), real(new))
            if not os.path.basename(new).startswith(_HIDDEN):
                named(errno.ENOENT)

        def link(self, target: str, source: str) -> None:
            if not is_as.links:
                raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
            os.link(real(source), real(target))
            named(errno.EEXIST)

        def create(self, path: str, mode: int, flags: int) -> int:
            fh = os.open(real(path), flags | os.O_CREAT, mode)
            if flags & os.O_EXCL:
                try:
                    named(errno.EEXIST)
                except OSError:
                    os.close(fh)
                    raise
            return opened(fh, flags)

        def open(self, path: str, flags: int) -> int:
            return opened(os.open(real(path), flags & ~os.O_NOFOLLOW), flags)

        def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
            handle(fh)
            return os.pread(fh, size, offset)

        def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
            handle(fh)
            with lock:
                is_lost = (fh in chosen and offset + len(data) > is_as.late_at) or fh in late
                if is_lost:
                    chosen.discard(fh)
                    late.add(fh)
                    counts.struck += 1
            return len(data) if is_lost else os.pwrite(fh, data, offset)

        def fsync(self, path: str, datasync: int, fh: int) -> None:
            handle(fh)
            report(fh)

        def fsyncdir(self, path: str, datasync: int, fh: int) -> None:
            if not is_as.folder_sync:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

        def flush(self, path: str, fh: int) -> None:
            report(fh)

        def release(self, path: str, fh: int) -> None:
            with lock:
                chosen.discard(fh)
                late.discard(fh)
            os.close(fh)

        if is_as.locks != "local":

            def flock(self, path: str, fh: int, operation: int) -> None:
                if isinstance(is_as.locks, int):
                    raise OSError(is_as.locks, os.strerror(is_as.locks))
                fcntl.flock(fh, operation)

    return Disk()


class NetworkDisk(Fault):
    """The job runs on a network disk. The point only selects the behaviour."""

    KINDS = ("repeats", "late", "stale", "old", "locks", "unsupported", "taken over")

    def __init__(self) -> None:
        super().__init__("network disk", (3, 4, 5, 6, KILLED))
        self._counts: dict[str, Counts] = {}

    def count_points(self, bench: Bench) -> int:
        outcome, counts = self._run(bench, Behaviour())
        assert outcome.code == 0, outcome.output
        self._counts[bench.job.name] = counts
        return counts.names

    def strike(self, bench: Bench, at: int, rng: random.Random) -> Outcome:
        return self._run(bench, self._behaviour(rng, self._counts[bench.job.name]))[0]

    @staticmethod
    def _run(bench: Bench, behaviour: Behaviour) -> tuple[Outcome, Counts]:
        """Run the job on a mount at its folder, so that paths are the same as on a local disk."""
        server = bench.root.with_name("server")
        bench.root.rename(server)
        try:
            with Host(server, bench.root, behaviour) as host:
                outcome = bench.run()
        finally:
            server.rename(bench.root)
        return outcome, host.counts

    def _behaviour(self, rng: random.Random, counts: Counts) -> Behaviour:
        names, written, handles = (max(1, count) for count in (counts.names, counts.written, counts.handles))
        kind = rng.choice(self.KINDS)
        if kind == "repeats":
            repeats = tuple(rng.randint(1, names) for _ in range(rng.choice([1, 1, 1, 3])))
            return Behaviour(repeats=repeats)
        if kind == "late":
            error = rng.choice([errno.ENOSPC, errno.EDQUOT, errno.EIO])
            return Behaviour(late=rng.randint(1, written), late_at=rng.choice([0, 0, 100]), late_error=error)
        if kind == "stale":
            return Behaviour(stale=rng.randint(1, handles))
        if kind == "old":
            return Behaviour(
                cache_seconds=rng.choice([1, 3, 30]),
                clock_seconds=rng.choice([-90, -7, 7, 90]),
                whole_seconds=rng.random() < 0.5,
            )
        if kind == "locks":
            return Behaviour(locks=rng.choice(["local", errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS]))
        if kind == "unsupported":
            return Behaviour(links=False, folder_sync=rng.random() < 0.3, is_direct=rng.random() < 0.5)
        return Behaviour(kill=rng.randint(1, names), cache_seconds=rng.choice([0, 5]))


NETWORK_FAULTS = [NetworkDisk()] if shutil.which("fusermount") and find_spec("mfusepy") else []


def main() -> None:
    mfusepy = importlib.import_module("mfusepy")
    backing, mount, behaviour, counts_file = sys.argv[1:]
    is_as = Behaviour(**json.loads(behaviour))
    seconds = is_as.cache_seconds
    mfusepy.FUSE(
        _operations(
            mfusepy.Operations, mfusepy.fuse_get_context, os.path.realpath(backing), is_as, counts_file
        ),
        mount,
        foreground=True,
        use_ino=True,
        direct_io=is_as.is_direct,
        attr_timeout=seconds,
        entry_timeout=seconds,
        negative_timeout=seconds,
    )


if __name__ == "__main__":
    main()
