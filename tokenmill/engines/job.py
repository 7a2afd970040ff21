"""The data that all tasks of a job share, and how workers get it.

A task carries only a `JobKey`. Workers that inherit the job, such as forked processes, have it in memory. All others
read it once per process from the file that the key names. The key holds the SHA-256 digest of the file, which is
compared before anything is unpickled. Store options may be secrets, so they are in the key and never in the file:
other users may be able to read the place where it is saved.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from tokenmill.engines.engine import Engine
from tokenmill.engines.errors import EngineFailure
from tokenmill.stores import StorageOptions, StoreError, is_url, open_store, split_key

_MAX_JOBS: Final = 4  # in the memory of a process; older ones are read again
# Saves bytes where all workers can read them, and returns their path or URL.
Put = Callable[[bytes], str]


class Job(Protocol):
    """The shared data of tasks. It is pickled for workers that do not inherit it."""

    def prepare(self) -> None:
        """Run before the first task of each process. Raise EngineFailure if the process cannot access its folders."""


class JobKey(NamedTuple):
    """How a task finds its job.

    digest: SHA-256 of the pickled job; a random name if the job is in memory only.
    path: path or URL of the file.
    version: version of the program that wrote it.
    options: options of the stores that the job uses.
    """

    digest: str
    path: str = ""
    version: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"JobKey({self.digest!r}, {self.path!r})"  # a cluster shows it to other users


_jobs: dict[JobKey, Any] = {}  # oldest first
_lock = threading.Lock()


def hand_out(engine: Engine, max_tasks: int, job: Job, put: Put, options: StorageOptions) -> JobKey:
    """Start the engine for at most `max_tasks` tasks at a time, and return the key for the tasks of the job.

    put, options (of the stores that the job uses): for workers that do not inherit the job.
    """
    if engine.inherits:
        key = JobKey(os.urandom(16).hex())
        engine.start(max_tasks, add_job, key, job)
    else:
        key = write_job(job, put, options)
        engine.start(max_tasks, check_worker, key)
    return key


def add_job(key: JobKey, job: Job) -> None:
    """Make the job known to this process."""
    job.prepare()
    _jobs[key] = job
    if len(_jobs) > _MAX_JOBS:
        del _jobs[next(iter(_jobs))]


def find_job(key: JobKey) -> Any:
    """Return the job of a task, from memory or from its file, which each process reads once."""
    with _lock:
        if key not in _jobs:
            add_job(key, _read_job(key))
        return _jobs[key]


def write_job(job: Job, put: Put, options: StorageOptions) -> JobKey:
    """Save the job for processes that do not inherit it."""
    settings = tuple(sorted(options.items()))
    index_of = {value: index for index, (_, value) in enumerate(settings)}
    file = io.BytesIO()
    pickler: Any = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.persistent_id = lambda value: index_of.get(value) if type(value) is str else None
    pickler.dump(job)
    data = file.getvalue()
    return JobKey(hashlib.sha256(data).hexdigest(), put(data), program_version(), settings)


def _read_job(key: JobKey) -> Job:
    check_worker(key)
    folder, name = split_key(key.path) if is_url(key.path) else os.path.split(key.path)
    data = bytes(open_store(folder, dict(key.options)).read(name))
    if hashlib.sha256(data).hexdigest() != key.digest:
        raise StoreError(
            f"{key.path}: changed after the command wrote it. Give every worker access to the --output folder."
        )
    unpickler: Any = pickle.Unpickler(io.BytesIO(data))
    unpickler.persistent_load = lambda index: key.options[index][1]
    try:
        return unpickler.load()  # type: ignore[no-any-return]
    except (AttributeError, ImportError, TypeError) as error:  # a checkout changed after the worker started
        raise _failure(
            f"its modules differ from the command's ({error}). Install the same version and restart the workers."
        ) from None


def program_version() -> str:
    """Return the versions of the package and of Python: its Unicode tables decide the meaning of patterns."""
    own = "from a checkout"
    with suppress(PackageNotFoundError):
        own = version("tokenmill")
    return f"tokenmill {own} with Python {sys.version_info.major}.{sys.version_info.minor}"


def check_worker(key: JobKey) -> None:
    """Raise EngineFailure if this process has another version or does not see the folder of the job."""
    if key.version != (own := program_version()):
        raise _failure(
            f"runs {own}, but the command runs {key.version}. Install the same version on all workers."
        )
    if not is_url(key.path):
        require_open(Path(key.path).parent)


def require_open(folder: Path) -> None:
    """Raise EngineFailure if this process cannot read and write in a folder."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise _failure(
            f"cannot use {folder}. Put --output and --scratch where all workers see the same path."
        )


def require_same_folder(folder: Path | None) -> None:
    """Raise EngineFailure if input paths are relative to a folder, and this process runs in another one."""
    if folder is not None and not (folder.exists() and folder.samefile(".")):
        raise _failure(f"runs in {Path.cwd()}, but inputs are relative to {folder}. Pass absolute paths.")


def _failure(text: str) -> EngineFailure:
    return EngineFailure(f"worker on {socket.gethostname()}: {text}")
