"""The lock of a folder in which one run at a time may work.

The system releases it when its holder ends, however that ends. The file names the holder, for people and for file
systems that do not show a lock to other hosts. An orderly release empties the file, so any host may work there next.
After a crash the name stays: the same host takes over, another one cannot know and refuses.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from tokenmill.errors import printable
from tokenmill.stores import system
from tokenmill.stores.names import has_name, remove_empty


class FolderLock:
    """The lock file `path`.

    output: what the folder becomes, for errors.
    refused: the error for a lock that another run has.
    shared: whether others may hold it at the same time, if theirs is shared too; such a lock names no holder.
    """

    def __init__(self, path: Path, output: Path, refused: type[Exception], shared: bool = False) -> None:
        self._path, self._output, self._refused, self._shared = path, output, refused, shared
        self._file: IO[str] | None = None

    @property
    def is_held(self) -> bool:
        """Whether this process has it."""
        return self._file is not None

    def acquire(self) -> None:
        """Lock the folder, which must exist; `refused` if another run has, or may have, the lock."""
        file = self._path.open("a+", encoding="utf-8")
        try:
            system.lock(file.fileno(), shared=self._shared)
            if not has_name(os.fstat(file.fileno()), self._path):
                raise BlockingIOError  # its holder finished just now, and removed the folder
            holder = _holder(file)
            if (
                holder.get("host", system.host_name()) != system.host_name()
                and holder.get("boot") != boot_id()
            ):
                raise self._refused(
                    f"{printable(self._path.parent)}: locked by {_describe(holder)}, which this host cannot check. "
                    f"If that run has ended, delete {printable(self._path)} and run the same command again."
                )
            if not self._shared:
                _write_holder(file)
        except BlockingIOError:
            holder_text = _describe(_holder(file))
            file.close()
            raise self._refused(
                f"{printable(self._output)}: in use by another run ({holder_text}). Wait for it or stop it."
            ) from None
        except BaseException:
            file.close()
            raise
        self._file = file

    def remove_folder(self) -> None:
        """Let go of the lock, which is held, and remove it and its folder, which has nothing else in it."""
        self._path.unlink(missing_ok=True)
        with suppress(OSError):  # while it is locked, or no other run could be kept out of a folder that goes
            self._path.parent.rmdir()
        self.release()
        remove_empty(self._path.parent)  # a network disk kept the lock's name

    def release(self) -> None:
        """Let another run have the lock, on this host or another; does nothing if the lock is not held."""
        if self._file is not None:
            with suppress(OSError):  # a full or lost disk: the next run on this host can still take the lock
                if not self._shared:
                    self._file.truncate(0)
            with suppress(OSError):
                self._file.close()
            self._file = None


def boot_id() -> str | None:
    """What this start of this kernel is called; the same in all its containers, whatever their host names."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _write_holder(lock: IO[str]) -> None:
    """Put into a lock file that this process holds it. A network disk shows other hosts only what was synced."""
    lock.truncate(0)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    json.dump(
        {"host": system.host_name(), "process": os.getpid(), "started": started, "boot": boot_id()}, lock
    )
    lock.flush()
    try:
        os.fsync(lock.fileno())
    except OSError as error:
        error.filename = lock.name
        raise


def _holder(lock: IO[str]) -> dict[str, Any]:
    """What a lock file says of who holds it, or held it when it died; {} if nothing."""
    lock.seek(0)
    try:
        holder = json.loads(lock.read(4096))
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def _describe(holder: dict[str, Any]) -> str:
    if not holder:
        return "unknown"
    return printable(
        f"process {holder.get('process')} on {holder.get('host')}, started {holder.get('started')}"
    )
