"""What is the same for every task of a conversion, and how a task finds it.

A task carries a `JobKey` alone. A process that was prepared (`add_job`, by fork or by an initializer) has the job in
memory. Any other, such as a thread pool's or a cluster's, reads it once from the file that the key names, whose digest
is part of the key: nothing else is ever unpickled.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
from pathlib import Path
from typing import NamedTuple

from bpe.end_tokens import EndTokens
from bpe.tokenizer import Tokenizer
from convert.errors import BrokenInvariant, StorageError, naming
from convert.plan import Plan
from corpus.rules import IntakeRules
from flat_tokens.storage.layout import ArrayLayout

_MOST_JOBS = 4  # conversions at a time in one process; others are read again


class Job(NamedTuple):
    """threshold: a document whose hash is below it is validation, 0 to 2^64. decompress_ahead: by a thread beside,
    since there are workers enough that have nothing to do."""

    tokenizer: Tokenizer
    max_token_id: int
    ends: EndTokens
    plan: Plan
    separator: bytes
    seed: int
    threshold: int
    rules: IntakeRules
    shards: Path
    dataset: Path
    layout: ArrayLayout
    decompress_ahead: bool = False


class JobKey(NamedTuple):
    """digest: SHA-256 of the pickled job in the file `path`; where there is no file, a name for the job."""

    digest: str
    path: str = ""


_jobs: dict[JobKey, Job] = {}
_lock = threading.Lock()


def add_job(key: JobKey, job: Job) -> None:
    """Make the job known to this process."""
    job.tokenizer.encode_documents(b"")  # builds the encoder where it was not inherited
    with _lock:
        _jobs[key] = job
        while len(_jobs) > _MOST_JOBS:
            del _jobs[next(iter(_jobs))]


def find_job(key: JobKey) -> Job:
    """The job of a task, from memory or from its file."""
    job = _jobs.get(key)
    if job is None:
        job = _read_job(key)
        add_job(key, job)
    return job


def write_job(job: Job, path: Path) -> JobKey:
    """Put the job into a file, for processes that were not prepared with it."""
    data = pickle.dumps(job, protocol=pickle.HIGHEST_PROTOCOL)
    with naming(path):
        path.write_bytes(data)
    return JobKey(hashlib.sha256(data).hexdigest(), str(path))


def _read_job(key: JobKey) -> Job:
    if not key.path:
        raise BrokenInvariant("a task came to a process that was not prepared for it")
    with naming(key.path):
        data = Path(key.path).read_bytes()
    if hashlib.sha256(data).hexdigest() != key.digest:
        raise StorageError(
            f"{key.path} is not what the conversion wrote there; every worker must see its --output folder"
        )
    job: Job = pickle.loads(data)
    return job
