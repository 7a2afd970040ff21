"""The objects that all stages of one conversion share."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bpe.tokenizer import Tokenizer
from convert.document_ends import DocumentEnds
from convert.encode.clock import Clock
from convert.options import ConvertOptions
from convert.planning.plan import Plan
from convert.workdir.workdir import WorkDir
from flat_tokens.storage.layout import ArrayLayout
from tokenmill.cli.progress import Progress
from tokenmill.engines.engine import Engine
from tokenmill.engines.job import JobKey
from tokenmill.engines.tasks import TaskPool
from tokenmill.stores.durability import Syncer


@dataclass(frozen=True)
class Context:
    """One conversion, from the start of its workers.

    source: facts on the origin of the tokenizer, for the manifest.
    ends: tokens added to documents.
    recorded: options that decide the bytes of the dataset, as plain JSON values.
    job_key: by which tasks find the facts that are the same for all of them.
    pool: tasks in flight.
    syncer: writes files through to the disk.
    warnings: the last ones about workers and stores.
    """

    options: ConvertOptions
    tokenizer: Tokenizer
    source: Mapping[str, str]
    ends: DocumentEnds
    recorded: Mapping[str, Any]
    plan: Plan
    layout: ArrayLayout
    workspace: WorkDir
    progress: Progress
    clock: Clock
    engine: Engine
    job_key: JobKey
    pool: TaskPool
    syncer: Syncer
    warnings: deque[str]

    @property
    def window(self) -> int:
        """The number of short tasks in flight."""
        return 4 * self.engine.worker_count
