"""Sources that something was done to since the work was begun, or meanwhile, though size and time are those of then.

A time can be set back (`touch -d`, `cp -p`, `rsync -t`), so equal ones do not say that the text is the same. The time
of the last change (ctime) and the file's number cannot: where those are others, what finished shards were made from is
read again and compared with the digests in their records. Harmless changes (`chmod`, a file copied back) cost that
reading, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from convert import worker
from convert.context import Context
from convert.errors import BadInput, Refused, printable
from convert.inputs.digest import block_part
from convert.plan import Plan
from convert.processes.tasks import run_tasks
from convert.shards.shard import ShardRecord
from convert.workspace import Workspace

_Parts = tuple[int, tuple[tuple[int, int, str], ...]]  # source, (start, stop, digest) of parts of it


def check_touched(context: Context, records: Sequence[ShardRecord | None]) -> None:
    """Refused (exit 6) if a source of `workspace.touched` is not what the shards of `records` were made from.

    If all are, the plan says so, and they are no longer touched.
    """
    plan, workspace = context.plan, context.workspace
    context.progress.note(
        f"{_names(workspace, plan)} may have been edited, with size and time set back; what was encoded is compared"
    )
    found = _first_changed(context, workspace.touched, records)
    if found is not None:
        source, (start, stop) = found
        raise Refused(
            f"{printable(plan.sources[source].path)} has its former size and time, but other bytes between "
            f"{start} and {stop} than when {workspace.root} was begun: what was encoded of it no longer "
            f"holds; begin anew with --overwrite"
        )
    workspace.settle()


def check_meanwhile(context: Context, touched: Sequence[int], records: Sequence[ShardRecord | None]) -> None:
    """BadInput (exit 3) if one of the sources `touched` is not what the shards of `records` were made from just now."""
    found = _first_changed(context, touched, records)
    if found is not None:
        source, (start, stop) = found
        raise BadInput(
            f"{printable(context.plan.sources[source].path)} was edited while it was read, and its time set back: "
            f"bytes {start} to {stop} are others; convert it again with --overwrite when nothing writes to it"
        )


def _first_changed(
    context: Context, touched: Sequence[int], records: Sequence[ShardRecord | None]
) -> tuple[int, tuple[int, int]] | None:
    """A source and the bytes of it that are others now; None if there is none."""
    plan = context.plan

    def describe(parts: _Parts) -> str:
        return f"a check of {plan.sources[parts[0]].path}"

    tasks = _parts(set(touched), plan, records)
    for (source, _), changed in run_tasks(
        context.executor, worker.changed_part, tasks, context.window, describe
    ):
        if changed is not None:
            return source, changed
    return None


def _parts(touched: set[int], plan: Plan, records: Sequence[ShardRecord | None]) -> Iterator[_Parts]:
    for record in records:
        if record is None:
            continue
        of_source: dict[int, list[tuple[int, int, str]]] = {}
        for source, block, digest in record.digests:
            if source in touched:
                part = block_part(block, plan.sources[source].size_bytes, digest)
                of_source.setdefault(source, []).append(part)
        for source, start, stop, digest in record.edges:
            if source in touched:
                of_source.setdefault(source, []).append((start, stop, digest))
        for source, parts in of_source.items():
            yield source, tuple(parts)


def _names(workspace: Workspace, plan: Plan) -> str:
    first = printable(plan.sources[workspace.touched[0]].path)
    more = len(workspace.touched) - 1
    return f"{first} and {more} more" if more else first
