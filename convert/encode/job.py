"""The data that all tasks of a conversion share. A task finds it by a key (tokenmill/engines/job.py)."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bpe.end_tokens import EndTokens
from bpe.tokenizer import Tokenizer
from convert.errors import UsageError
from convert.planning.plan import Plan
from convert.shards.shard_store import ShardStore, shards_at
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.writer import Destination
from tokenmill.engines.job import JobKey, Put, require_open, require_same_folder
from tokenmill.engines.job import hand_out as hand_out_job
from tokenmill.inputs.kinds import FORMATS
from tokenmill.inputs.rules import IntakeRules
from tokenmill.stores import StorageOptions, is_url

if TYPE_CHECKING:
    from tokenmill.engines.engine import Engine

MASK_ID_LIMIT = 1 << 30  # with a loss mask, shards store IDs below it (convert/shards/shard.py)


class Job(NamedTuple):
    """A conversion as its tasks see it.

    threshold: for the split by hash, 0 to 2^64 (convert/encode/held_out.py).
    shards: where temporary shards are.
    temporary: a folder on the file system of the dataset, for files that are not complete.
    has_template: `ends` come from the tokenizer's template, so chats get none.
    syncs: whether merge tasks write files to disk, because they may run on other machines than the driver.
    folder: the current folder if inputs are relative to it and workers may run elsewhere, else None.
    """

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
    has_template: bool = False
    syncs: bool = False
    folder: Path | None = None

    @property
    def has_mask(self) -> bool:
        """Whether documents have a loss mask."""
        return self.rules.marks is not None

    def prepare(self) -> None:
        """Build the encoder. Raise EngineFailure if this process cannot access the folders of the conversion."""
        self.tokenizer.encode_documents(b"")
        if self.shards.store.is_local:
            require_open(self.shards.store.path)
        if isinstance(self.dataset, Path):
            require_open(self.dataset)
            require_open(self.temporary)
        require_same_folder(self.folder)

    def for_others(self) -> Job:
        """Return the job for processes that may run in another folder."""
        here = Path.cwd()
        is_relative = not all(
            Path(source.path).is_absolute() or is_url(source.path) for source in self.plan.sources
        )
        return self._replace(
            shards=shards_at(here / self.shards.store.path) if self.shards.store.is_local else self.shards,
            temporary=here / self.temporary,
            dataset=here / self.dataset if isinstance(self.dataset, Path) else self.dataset,
            folder=here if is_relative else None,
        )


class Clock:
    """A stopwatch with named laps: `lap("encode")` adds the time since the last lap to `seconds["encode"]`."""

    def __init__(self) -> None:
        self.start()

    def start(self, started: float | None = None) -> None:
        """Reset all laps. started: the time.perf_counter() at which the first lap started (default: now)."""
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter() if started is None else started

    def lap(self, step: str) -> None:
        """Add the time since the last lap to a step."""
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._last
        self._last = now


def hand_out(job: Job, put: Put, engine: Engine, max_tasks: int, options: StorageOptions) -> JobKey:
    """Start the engine and return the key by which its tasks find the job.

    put: writes bytes where workers that do not inherit the job can read them.
    max_tasks: more workers than this would have no work.
    options: of the stores that the job uses.
    """
    if job.has_mask and job.max_token_id >= MASK_ID_LIMIT:
        raise UsageError(
            f"--tokenizer: token IDs must be below {MASK_ID_LIMIT} with a loss mask (got {job.max_token_id})"
        )
    if engine.inherits:
        _import_for_workers(job.plan)
    else:
        job = job.for_others()
    return hand_out_job(engine, max_tasks, job, put, options)


def _import_for_workers(plan: Plan) -> None:
    """Import the modules of the first tasks, so that forked workers inherit them."""
    for kind in plan.sources.kinds:
        import_module(FORMATS[kind.format].reader)
    import_module("flat_tokens.storage.elements")
