"""What is the same for every task of a job, and how a task finds it.

A task carries a `JobKey` alone. A process that was prepared (`add_job`, by fork or by what it does first) has the job
in memory. Any other, such as a thread pool's or a cluster's, reads it once from the file that the key names, whose
digest is part of the key: nothing else is ever unpickled. Settings of stores, which may be secrets, are in the key and
not in the file: it may lie in a store where others read.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from tokenmill.engines.engine import Engine
from tokenmill.engines.errors import EngineFailure
from tokenmill.stores import StorageOptions, StoreError, is_url, open_store, split_key

_MOST_JOBS: Final = 4  # at a time in one process; others are read again


class Job(Protocol):
    """What tasks share; it is pickled for workers that do not inherit it."""

    def prepare(self) -> None:
        """What a process does before its first task."""
        ...

    def check_sight(self) -> None:
        """EngineFailure if this process does not see the folders that tasks use; only where the job was read."""
        ...


# Puts bytes where all workers see them: their path or URL.
Put = Callable[[bytes], str]


class JobKey(NamedTuple):
    """digest: SHA-256 of the pickled job in the file `path`, which may be a URL; where there is no file, a name for the
    job. version: of the program that wrote it. options: of the stores that the job uses."""

    digest: str
    path: str = ""
    version: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"JobKey({self.digest!r}, {self.path!r})"  # a cluster shows it to others


_jobs: dict[JobKey, Any] = {}  # the last used last
_lock = threading.Lock()


def hand_out(engine: Engine, most_tasks: int, job: Job, put: Put, options: StorageOptions) -> JobKey:
    """Start the engine for up to `most_tasks` tasks of a job at a time; return the key by which they find it.

    put, options (of the stores that the job uses): for workers that do not inherit the job.
    """
    if engine.inherits:
        key = JobKey(os.urandom(16).hex())
        engine.start(most_tasks, add_job, key, job)
    else:
        key = write_job(job, put, options)
        engine.start(most_tasks, check_worker, key)
    return key


def add_job(key: JobKey, job: Job) -> None:
    """Make the job known to this process."""
    job.prepare()
    _jobs[key] = job
    while len(_jobs) > _MOST_JOBS:
        del _jobs[next(iter(_jobs))]


def find_job(key: JobKey) -> Any:
    """The job of a task, from memory or from its file, which is read once a process."""
    with _lock:
        if key in _jobs:
            job = _jobs[key] = _jobs.pop(key)
        else:
            job = _read_job(key)
            add_job(key, job)
    return job


def write_job(job: Job, put: Put, options: StorageOptions) -> JobKey:
    """Put the job where all workers see it, for processes that do not inherit it."""
    settings = tuple(sorted(options.items()))
    file = io.BytesIO()
    _Writer(file, [value for _, value in settings]).dump(job)
    data = file.getvalue()
    return JobKey(hashlib.sha256(data).hexdigest(), put(data), program_version(), settings)


class _Writer(pickle.Pickler):
    """Writes each of some texts as its place among them."""

    def __init__(self, file: io.BytesIO, texts: Sequence[str]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._places = {text: place for place, text in enumerate(texts)}

    def persistent_id(self, obj: Any) -> int | None:
        return self._places.get(obj) if type(obj) is str else None


class _Reader(pickle.Unpickler):
    """Reads what a `_Writer` of these texts wrote."""

    def __init__(self, file: io.BytesIO, texts: Sequence[str]) -> None:
        super().__init__(file)
        self._texts = texts

    def persistent_load(self, pid: Any) -> str:
        text: str = self._texts[pid]
        return text


def program_version() -> str:
    """Of the package and of Python, whose tables of characters are part of what a pattern means."""
    try:
        own = version("tokenmill")
    except PackageNotFoundError:
        own = "from a checkout"
    return f"tokenmill {own} with Python {sys.version_info.major}.{sys.version_info.minor}"


def check_worker(key: JobKey) -> None:
    """EngineFailure if this process can't do tasks of the job: another version, or a folder that it does not see."""
    if key.version != program_version():
        raise EngineFailure(
            f"worker on {socket.gethostname()}: runs {program_version()}, but the command runs {key.version}. Install "
            f"the same version on all workers."
        )
    if not is_url(key.path):
        require_open(Path(key.path).parent)


def require_open(folder: Path) -> None:
    """EngineFailure if this process can't read and write in a folder."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise EngineFailure(
            f"worker on {socket.gethostname()}: cannot use {folder}. Make the folders of --output and --scratch "
            f"available to all workers under the same path."
        )


def require_same_folder(folder: Path | None) -> None:
    """EngineFailure if inputs are named from a folder, and this process does not run in it."""
    if folder is not None and not (folder.exists() and folder.samefile(".")):
        raise EngineFailure(
            f"worker on {socket.gethostname()}: runs in {Path.cwd()}, but inputs are relative to {folder}. Pass "
            f"absolute paths, or start the workers there."
        )


def _read_job(key: JobKey) -> Job:
    if not key.path:
        raise EngineFailure("worker process: received a task of an unknown job")
    check_worker(key)
    folder, name = split_key(key.path) if is_url(key.path) else os.path.split(key.path)
    data = bytes(open_store(folder, dict(key.options)).read(name))
    if hashlib.sha256(data).hexdigest() != key.digest:
        raise StoreError(
            f"{key.path}: changed after the command wrote it. Give every worker access to the --output folder."
        )
    try:
        job: Job = _Reader(io.BytesIO(data), [value for _, value in key.options]).load()
    except (
        AttributeError,
        ImportError,
        TypeError,
    ) as error:  # of a checkout that changed since the worker began
        raise EngineFailure(
            f"worker on {socket.gethostname()}: its modules differ from the command's ({error}), though both are "
            f"{key.version}. Install the same version on all workers and restart them."
        ) from None
    job.check_sight()
    return job
