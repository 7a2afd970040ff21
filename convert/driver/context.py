"""A conversion at work, which all stages share."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from convert.encode.job import Clock, Setup
from convert.workdir.workdir import WorkDir
from tokenmill.cli.progress import Progress
from tokenmill.engines.engine import Engine
from tokenmill.engines.job import JobKey
from tokenmill.engines.tasks import TaskPool


@dataclass(frozen=True)
class Context(Setup):
    """A conversion at work, from the start of its workers.

    job_key: by which tasks find the facts that are the same for all of them.
    pool: tasks in flight.
    warnings: the last ones about workers and stores.
    """

    workspace: WorkDir
    progress: Progress
    clock: Clock
    engine: Engine
    job_key: JobKey
    pool: TaskPool
    warnings: deque[str]

    @property
    def window(self) -> int:
        """The number of short tasks in flight."""
        return 4 * self.engine.worker_count
