"""The stage that --validation-docs takes before the encoding: which documents are held out (convert/held_out.py)."""

from __future__ import annotations

from functools import partial

from convert import worker
from convert.context import Context
from convert.driver.log import Log, Recorded, threshold_entry
from convert.engine.tasks import run_tasks
from convert.errors import Refused
from convert.held_out import SmallestHashes


def choose_threshold(context: Context, log: Log, recorded: Recorded) -> int:
    """The hash below which the documents of --validation-docs lie; reads the whole corpus, but only once."""
    plan, workspace = context.plan, context.workspace
    count = context.options.validation_docs or 0
    known = recorded.threshold(count)
    if known is not None and not workspace.touched:
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
            f"an input is other text than when {workspace.root} was begun, though it has its former size and time: "
            f"other documents would be the {count} of --validation-docs; begin anew with --overwrite"
        )
    log.append([threshold_entry(count, threshold)])
    return threshold
