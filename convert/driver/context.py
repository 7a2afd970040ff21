"""What the stages of one conversion have in common, from when its workers are there until the dataset has its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from convert.options import ConvertOptions
from convert.planning.plan import Plan
from convert.workdir.workdir import WorkDir
from flat_tokens.storage.layout import ArrayLayout
from tokenmill.cli.progress import Progress
from tokenmill.engines.engine import Engine
from tokenmill.engines.job import JobKey
from tokenmill.engines.tasks import TaskPool
from tokenmill.stores.durability import Syncer


class Context(NamedTuple):
    """recorded: what decides the dataset's bytes beside sources and tokenizer, JSON-able. job_key: by which tasks
    find what is the same for all of them. engine: the workers. pool: what they are at, chunks and runs. syncer: of
    what a power loss must not take."""

    options: ConvertOptions
    recorded: Mapping[str, Any]
    plan: Plan
    layout: ArrayLayout
    workspace: WorkDir
    progress: Progress
    job_key: JobKey
    engine: Engine
    pool: TaskPool
    syncer: Syncer

    @property
    def window(self) -> int:
        """How many short tasks, which need no disk, are in flight at most."""
        return 4 * self.engine.worker_count
