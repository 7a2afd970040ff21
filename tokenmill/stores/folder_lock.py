"""The lock of a folder in which one run works at a time.

The system releases the lock when its holder ends in any way. The lock file also names the holder, for messages and for
network disks on which other hosts do not see the lock. An orderly release empties the file, so that any host may
continue. After a crash the name stays: the same host takes over, and other hosts refuse, as they cannot check.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import socket
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from tokenmill.errors import naming, printable
from tokenmill.stores.names import has_name, remove_empty


class FolderLock:
    """The lock file `path`.

    output: the result of the work in the folder, for messages.
    refused: the class of the error if another run has the lock.
    """

    def __init__(self, path: Path, output: Path, refused: type[Exception]) -> None:
        self._path, self._output, self._refused = path, output, refused
        self._file: io.FileIO | None = None

    @property
    def is_held(self) -> bool:
        """Whether this process has the lock."""
        return self._file is not None

    def acquire(self) -> None:
        """Lock the folder, which must exist. Raise `refused` if another run has, or may have, the lock."""
        file = self._path.open("ab+", buffering=0)
        try:
            self._lock(file, fcntl.LOCK_EX)
            self._file = file
            _write_holder(file)
        except BaseException:
            self.release()
            file.close()
            raise

    def check_free(self) -> None:
        """Raise `refused` if another run has, or may have, the lock."""
        with suppress(FileNotFoundError), self._path.open("rb", buffering=0) as file:
            self._lock(file, fcntl.LOCK_SH)

    def confirm(self) -> None:
        """Do nothing: no other run can take a lock over. See Lease.confirm."""

    def _lock(self, file: io.FileIO, kind: int) -> None:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            is_in_use = not has_name(os.fstat(file.fileno()), self._path)  # just finished and removed
        except BlockingIOError:
            is_in_use = True
        holder = _holder(file)
        if is_in_use:
            raise self._refused(
                f"{printable(self._output)}: in use by another run ({_describe(holder)}). Wait for it or stop it."
            )
        if holder.get("host", host_name()) != host_name() and holder.get("boot") != boot_id():
            raise self._refused(
                f"{printable(self._path.parent)}: locked by {_describe(holder)}, which this host cannot check. "
                f"If that run has ended, delete {printable(self._path)} and run the same command again."
            )

    def remove_folder(self) -> None:
        """Remove the lock file and its otherwise empty folder, then release the lock."""
        self._path.unlink(missing_ok=True)
        with suppress(OSError):  # while it is locked, so that no other run can start in it
            self._path.parent.rmdir()
        self.release()
        remove_empty(self._path.parent)  # a network disk kept a name of the open lock file

    def release(self) -> None:
        """Let another run have the lock, on any host. Does nothing if the lock is not held."""
        if self._file is not None:
            with suppress(OSError):  # a full or lost disk; the same host can still acquire the lock
                self._file.truncate(0)
            with suppress(OSError):
                self._file.close()
            self._file = None


def host_name() -> str:
    """Return the name of this machine."""
    return socket.gethostname()


@cache
def boot_id() -> str | None:
    """Return the ID of the kernel's start, which containers share whatever their host names are."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _write_holder(lock: io.FileIO) -> None:
    """Name this process in the lock file, and sync it so that other hosts see it on a network disk."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    holder = {"host": host_name(), "process": os.getpid(), "started": started, "boot": boot_id()}
    with naming(lock.name):
        lock.truncate(0)
        lock.write(json.dumps(holder).encode())
        os.fsync(lock.fileno())


def _holder(lock: io.FileIO) -> dict[str, Any]:
    """Return the holder that a lock file names, or {}."""
    try:
        holder = json.loads(os.pread(lock.fileno(), 4096, 0))
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def _describe(holder: dict[str, Any]) -> str:
    if not holder:
        return "unknown"
    return printable(
        f"process {holder.get('process')} on {holder.get('host')}, started {holder.get('started')}"
    )
