"""A folder shown as a network disk shows it: what NFS and its like do otherwise than a local disk, in user space.

    python tests/fault/network_disk.py BACKING MOUNT '{"repeats": [7], "locks": "local"}'

Each mount is a host, with a memory of its own of names and attributes; BACKING is the server. Needs Linux, /dev/fuse,
fusermount and `pip install mfusepy`. An open file whose name is removed or taken by this host keeps a name `.nfs...`
until it is closed, and one whose name another host took is stale, whatever is asked for. `Host` mounts one.
"""

# ruff: noqa: PTH101, PTH102, PTH104, PTH106, PTH108, PTH115, PTH119, PTH211
from __future__ import annotations

import errno
import fcntl
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_HIDDEN, _SILLY = ".fuse_hidden", ".nfs"  # what libfuse calls it, and NFS
_START_SECONDS = 20.0


@dataclass(frozen=True)
class Behaviour:
    """repeats: the numbers, from 1, of the operations on names that are done, whose answer is lost, and whose repeat
    says ENOENT or EEXIST. late: of the files opened for writing, the one whose bytes from late_at on are lost, which
    fsync or close tells with late_error. stale: the operation on an open file that says ESTALE. cache_seconds: how old
    names, absences and attributes may be. locks: shared by all hosts | local to each | the error that refuses them.
    links, folder_sync: whether there are hard links, and a folder can be synced. is_direct: no mapping is shared,
    nothing cached. clock_seconds: the server's clock ahead of the host's; whole_seconds: its times have no fractions.
    kill: the operation on names before which its caller, with all of its group, is killed.
    deaf: nothing of a lost write is told, which no disk may do."""

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
    deaf: bool = False


@dataclass
class Counts:
    """names: operations that change names. written: files opened for writing. handles: operations on open files."""

    names: int = 0
    written: int = 0
    handles: int = 0
    struck: int = 0


class Host:
    """A mount. counts: known once it is unmounted."""

    def __init__(self, backing: Path, mount: Path, behaviour: Behaviour) -> None:
        self.mount, self.counts = mount, Counts()
        self._told = mount.with_name(f"{mount.name}.counts")
        mount.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, __file__, backing, mount, json.dumps(asdict(behaviour)), self._told],
            start_new_session=True,
        )
        deadline = time.monotonic() + _START_SECONDS
        while not mount.is_mount():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{mount} can't be mounted")
            time.sleep(0.01)

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        for way in ["-u"] * 100 + ["-uz"]:  # what was closed just now is told to it a moment later
            if not subprocess.run(["fusermount", way, self.mount], capture_output=True).returncode:
                break
            time.sleep(0.02)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:  # somebody has a file open still
            self._process.kill()
            self._process.wait()
        if self._told.exists():
            self.counts = Counts(**json.loads(self._told.read_text()))
            self._told.unlink()
        self.mount.rmdir()


def _operations(
    base: type, context: Callable[[], tuple[int, int, int]], backing: str, is_as: Behaviour, told: str
) -> Any:
    lock, started = threading.Lock(), time.time_ns()
    counts = Counts()
    late: set[int] = set()  # open files with bytes that were lost and not told
    chosen: set[int] = set()

    def real(path: str) -> str:
        return backing + path.replace(f"/{_HIDDEN}", f"/{_SILLY}")

    def begun() -> None:
        """One operation on names is about to be done."""
        if is_as.kill and counts.names + 1 == is_as.kill:
            with suppress(ProcessLookupError):
                if caller := context()[2]:  # 0: the kernel itself
                    os.killpg(os.getpgid(caller), signal.SIGKILL)

    def named(answer: int) -> None:
        """One operation on names has been done; OSError if its answer is lost."""
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

    def tell(fh: int) -> None:
        with lock:
            is_late = fh in late and not is_as.deaf
            late.discard(fh)
        if is_late:
            raise OSError(is_as.late_error, os.strerror(is_as.late_error))

    class Disk(base):  # type: ignore[misc]
        use_ns = True

        def destroy(self, path: str) -> None:
            Path(told).write_text(json.dumps(asdict(counts)))

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
                at += is_as.clock_seconds * 10**9 if at > started else 0  # times that were set stay
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
            tell(fh)

        def fsyncdir(self, path: str, datasync: int, fh: int) -> None:
            if not is_as.folder_sync:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

        def flush(self, path: str, fh: int) -> None:
            tell(fh)

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


def main() -> None:
    mfusepy = importlib.import_module("mfusepy")
    backing, mount, behaviour, told = sys.argv[1:]
    is_as = Behaviour(**json.loads(behaviour))
    seconds = is_as.cache_seconds
    mfusepy.FUSE(
        _operations(mfusepy.Operations, mfusepy.fuse_get_context, os.path.realpath(backing), is_as, told),
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
