"""The stage that --validation-docs takes before the encoding: which documents are held out (see held_out.py)."""

from __future__ import annotations

from functools import partial

from convert.driver.context import Context
from convert.encode import worker
from convert.encode.held_out import SmallestHashes
from convert.errors import Refused
from convert.workdir.journal import Journal, Recorded, threshold_entry
from tokenmill.engines.tasks import run_tasks


def choose_threshold(context: Context, log: Journal, recorded: Recorded) -> int:
    """The hash below which the documents of --validation-docs lie; reads the whole corpus, but only once."""
    plan, workspace = context.plan, context.workspace
    count = context.options.validation_docs or 0
    known = recorded.threshold(count)
    if known is not None and plan.source_count == len(plan.sources):
        return known
    smallest = SmallestHashes(count)
    choose = partial(worker.smallest_hashes, key=context.job_key, count=count)
    chunks = plan.chunks() if count else iter(())
    with context.progress.stage("choose", plan.total_bytes) as stage:
        for chunk, hashes in run_tasks(
            context.engine, choose, chunks, context.window, context.plan.describe, stage.show_running
        ):
            smallest.add(hashes)
            stage.advance(context.plan.work_bytes(chunk))
    threshold = smallest.threshold()
    if known not in (None, threshold):
        raise Refused(
            f"--validation-docs: an input changed since {workspace.root} was started, so other documents would be "
            f"held out (got {count}). Start over with --restart."
        )
    log.append([threshold_entry(count, threshold)])
    return threshold
