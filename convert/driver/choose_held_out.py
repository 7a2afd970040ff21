"""The stage before the encoding with --validation-docs: which documents are held out (convert/encode/held_out.py)."""

from __future__ import annotations

from functools import partial

from convert.driver.context import Context
from convert.encode.encode_task import smallest_hashes
from convert.encode.held_out import SmallestHashes
from convert.errors import Refused
from convert.workdir.journal import Recorded, threshold_entry


def choose_threshold(context: Context, recorded: Recorded) -> int | None:
    """Return the hash that the documents of --validation-docs are below, or None without that option.

    This reads the whole corpus, unless an earlier run has recorded the result.
    """
    plan, workspace, count = context.plan, context.workspace, context.options.validation_docs
    known = None if count is None else recorded.threshold(count)
    if count is None or (known is not None and plan.source_count == len(plan.sources)):
        return known
    smallest = SmallestHashes(count)
    choose = partial(smallest_hashes, key=context.job_key, count=count)
    chunks = plan.chunks() if count else iter(())
    with context.progress.stage("choose", plan.total_bytes) as stage:
        found = context.pool.run(choose, chunks, context.window, plan.describe, stage.show_running)
        for chunk, hashes in found:
            smallest.add(hashes)
            stage.advance(plan.work_bytes(chunk))
    threshold = smallest.threshold()
    if known not in (None, threshold):
        raise Refused(
            f"--validation-docs: an input changed since {workspace.root} was started, so other documents would be "
            f"held out (got {count}). Start over with --restart."
        )
    workspace.log.append([threshold_entry(count, threshold)])
    return threshold
