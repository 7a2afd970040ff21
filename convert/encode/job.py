"""What is the same for every task of a conversion, and how a task finds it.

A task carries a `JobKey` alone. A process that was prepared (`add_job`, by fork or by what it does first) has the job
in memory. Any other, such as a thread pool's or a cluster's, reads it once from the file that the key names, whose
digest is part of the key: nothing else is ever unpickled.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import socket
import sys
import threading
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bpe.end_tokens import EndTokens
from bpe.tokenizer import Tokenizer
from convert.errors import BrokenInvariant, EngineFailure, StorageError, naming
from convert.planning.plan import Plan
from convert.shards.shard_store import FolderShards, ShardStore
from corpus.kinds import FORMATS
from corpus.rules import IntakeRules
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.writer import Destination
from stores import is_url, open_store, split_key

if TYPE_CHECKING:
    from engines.engine import Engine

_MOST_JOBS = 4  # conversions at a time in one process; others are read again


class Job(NamedTuple):
    """threshold: a document whose hash is below it is validation, 0 to 2^64. shards: a folder; temporary: one on
    the file system of the dataset. decompress_ahead: by a thread beside, since there are workers enough that have
    nothing to do. folder: that inputs are named from, None if by whole paths or to all workers alike."""

    tokenizer: Tokenizer
    max_token_id: int
    ends: EndTokens
    plan: Plan
    separator: bytes
    seed: int
    threshold: int
    rules: IntakeRules
    shards: ShardStore
    temporary: Path
    dataset: Destination
    layout: ArrayLayout
    decompress_ahead: bool = False
    folder: Path | None = None


class JobPlace(Protocol):
    """Where a job is put for workers that do not inherit it: a workspace."""

    def put_job(self, data: bytes) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Put it there; its path or URL, and the options of its store."""
        ...


class JobKey(NamedTuple):
    """digest: SHA-256 of the pickled job in the file `path`, which may be a URL, of a store with these options; where
    there is no file, a name for the job. version: of the program that wrote it."""

    digest: str
    path: str = ""
    version: str = ""
    options: tuple[tuple[str, str], ...] = ()


_jobs: dict[JobKey, Job] = {}  # the last used last
_lock = threading.Lock()


def hand_out(job: Job, workspace: JobPlace, engine: Engine, most_tasks: int) -> JobKey:
    """Start the engine for the tasks of a job, of which there are `most_tasks` at once; the key they find it by.

    workspace: where it is put for workers that do not inherit it.
    """
    if engine.inherits:
        _import_for_workers(job.plan)
        key = JobKey(os.urandom(16).hex())
        engine.start(most_tasks, add_job, key, job)
    else:
        key = write_job(job, workspace)
        engine.start(most_tasks, check_worker, key)
    return key


def _import_for_workers(plan: Plan) -> None:
    """The modules that each worker's first tasks need beside those here: what is forked has them already."""
    for kind in plan.sources.kinds:
        import_module(FORMATS[kind.format].reader)
    import_module("flat_tokens.storage.elements")  # of the tasks that verify


def add_job(key: JobKey, job: Job) -> None:
    """Make the job known to this process."""
    job.tokenizer.encode_documents(b"")  # builds the encoder where it was not inherited
    _jobs[key] = job
    while len(_jobs) > _MOST_JOBS:
        del _jobs[next(iter(_jobs))]


def find_job(key: JobKey) -> Job:
    """The job of a task, from memory or from its file, which is read once a process."""
    with _lock:
        if key in _jobs:
            job = _jobs[key] = _jobs.pop(key)
        else:
            job = _read_job(key)
            add_job(key, job)
    return job


def write_job(job: Job, workspace: JobPlace) -> JobKey:
    """Put the job where all workers see it, for processes that do not inherit it."""
    here = Path.cwd()
    is_relative = not all(
        Path(folder).is_absolute() or is_url(folder) for folder in job.plan.sources.folders()
    )
    job = job._replace(
        shards=FolderShards(here / job.shards.folder) if isinstance(job.shards, FolderShards) else job.shards,
        temporary=here / job.temporary,
        dataset=here / job.dataset if isinstance(job.dataset, Path) else job.dataset,
        folder=here if is_relative else None,
    )
    data = pickle.dumps(job, protocol=pickle.HIGHEST_PROTOCOL)
    path, options = workspace.put_job(data)
    return JobKey(hashlib.sha256(data).hexdigest(), path, program_version(), options)


def program_version() -> str:
    """Of the package and of Python, whose tables of characters are part of what a pattern means."""
    try:
        own = version("tokenmill")
    except PackageNotFoundError:
        own = "of a checkout"
    return f"tokenmill {own} with Python {sys.version_info.major}.{sys.version_info.minor}"


def check_worker(key: JobKey) -> None:
    """EngineFailure if this process can't do tasks of the job: another version, or a folder that it does not see."""
    if key.version != program_version():
        raise EngineFailure(
            f"a worker on {socket.gethostname()} has {program_version()}, but the command is {key.version}; install "
            f"the same on all workers"
        )
    if not is_url(key.path):
        _require_open(Path(key.path).parent)


def _require_open(folder: Path) -> None:
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise EngineFailure(
            f"a worker on {socket.gethostname()} can't use {folder}; the folders of --output and --scratch must be "
            f"there for all workers under the same path, and open to them"
        )


def _read_job(key: JobKey) -> Job:
    if not key.path:
        raise BrokenInvariant("a task came to a process that was not prepared for it")
    check_worker(key)
    if is_url(key.path):
        folder, name = split_key(key.path)
        data = bytes(open_store(folder, dict(key.options)).read(name))
    else:
        with naming(key.path):
            data = Path(key.path).read_bytes()
    if hashlib.sha256(data).hexdigest() != key.digest:
        raise StorageError(
            f"{key.path} is not what the conversion wrote there; every worker must see its --output folder"
        )
    job: Job = pickle.loads(data)
    if isinstance(job.shards, FolderShards):
        _require_open(job.shards.folder)
    if isinstance(job.dataset, Path):
        _require_open(job.dataset)
        _require_open(job.temporary)
    if job.folder is not None and not (job.folder.exists() and job.folder.samefile(".")):
        raise EngineFailure(
            f"a worker on {socket.gethostname()} runs in {Path.cwd()}, and inputs are named from {job.folder}; give "
            f"absolute paths, or start the workers there"
        )
    return job
