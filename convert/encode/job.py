"""What is the same for every task of a conversion; how a task finds it: tokenmill/engines/job.py."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bpe.end_tokens import EndTokens
from bpe.tokenizer import Tokenizer
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


class Job(NamedTuple):
    """threshold: a document whose hash is below it is validation, 0 to 2^64. shards: a folder; temporary: one on
    the file system of the dataset. has_places: it is kept where sequences begin in their sources. decompress_ahead: by
    a thread beside, since there are workers enough that have nothing to do. folder: that inputs are named from, None if
    by whole paths or to all workers alike. has_template: whether `ends` come from the tokenizer's template, so
    that chats get none."""

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
    has_places: bool = False
    has_template: bool = False
    decompress_ahead: bool = False
    folder: Path | None = None

    @property
    def has_mask(self) -> bool:
        """Whether a part of documents is to be learned."""
        return self.rules.marks is not None

    def prepare(self) -> None:
        """Build the encoder where it was not inherited."""
        self.tokenizer.encode_documents(b"")

    def check_sight(self) -> None:
        """EngineFailure if this process does not see the folders of the conversion."""
        if self.shards.store.is_local:
            require_open(self.shards.store.path)
        if isinstance(self.dataset, Path):
            require_open(self.dataset)
            require_open(self.temporary)
        require_same_folder(self.folder)

    def for_others(self) -> Job:
        """The job for processes that may run in another folder."""
        here = Path.cwd()
        is_relative = not all(
            Path(folder).is_absolute() or is_url(folder) for folder in self.plan.sources.folders()
        )
        return self._replace(
            shards=shards_at(here / self.shards.store.path) if self.shards.store.is_local else self.shards,
            temporary=here / self.temporary,
            dataset=here / self.dataset if isinstance(self.dataset, Path) else self.dataset,
            folder=here if is_relative else None,
        )


def hand_out(job: Job, put: Put, engine: Engine, most_tasks: int, options: StorageOptions) -> JobKey:
    """Start the engine for up to `most_tasks` tasks of a job at a time; return the key by which they find it.

    put, options (of the stores that the job uses): for workers that do not inherit the job.
    """
    if engine.inherits:
        _import_for_workers(job.plan)
    else:
        job = job.for_others()
    return hand_out_job(engine, most_tasks, job, put, options)


def _import_for_workers(plan: Plan) -> None:
    """The modules that each worker's first tasks need beside those here: what is forked has them already."""
    for kind in plan.sources.kinds:
        import_module(FORMATS[kind.format].reader)
    import_module("flat_tokens.storage.elements")  # of the tasks that verify
