"""Sources that something was done to since the work was begun, or meanwhile, though size and time are those of then.

A time can be set back (`touch -d`, `cp -p`, `rsync -t`), so equal ones do not say that the text is the same. The time
of the last change (ctime) and the file's number cannot: where those are others, what finished shards were made from is
read again and compared with the digests in their records. Harmless changes (`chmod`, a file copied back) cost that
reading, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby, islice

from convert.driver.context import Context
from convert.driver.ledger import Ledger
from convert.encode import worker
from convert.errors import BadInput, Refused, printable
from convert.places.store_workspace import AnyWorkspace
from convert.planning.plan import Plan
from convert.shards.shard import ShardRecord
from tokenmill.engines.tasks import run_tasks
from tokenmill.inputs.digest import block_part, each_digest

_SOURCES_AT_ONCE = 256  # a task costs as much as reading a few small files


def check_maybe_modified(context: Context, ledger: Ledger) -> None:
    """Refused (exit 6) if a source of `workspace.maybe_modified` is not what the shards of `ledger` were made from.

    If all are, the plan says so, and none is suspected any more.
    """
    plan, workspace = context.plan, context.workspace
    context.progress.note(
        f"{_names(workspace, plan)}: its change time or inode differs; comparing its content with the encoded text"
    )
    found = _first_changed(context, workspace.maybe_modified, ledger)
    if found is not None:
        source, (start, stop) = found
        raise Refused(
            f"{printable(plan.sources[source].path)}: bytes {start} to {stop} changed since {workspace.root} was "
            "started, although size and time are the same. Start over with --restart."
        )
    workspace.settle()


def check_modified_during_run(context: Context, maybe_modified: Sequence[int], ledger: Ledger) -> None:
    """BadInput (exit 3) if one of these sources is not what the shards of `ledger` were just made from."""
    found = _first_changed(context, maybe_modified, ledger)
    if found is not None:
        source, (start, stop) = found
        raise BadInput(
            f"{printable(context.plan.sources[source].path)}: bytes {start} to {stop} changed while the file was read, "
            "although size and time are the same. Run again with --restart when nothing writes to it."
        )


def _first_changed(
    context: Context, maybe_modified: Sequence[int], ledger: Ledger
) -> tuple[int, tuple[int, int]] | None:
    """A source and the bytes of it that are others now; None if there is none."""
    plan = context.plan

    def describe(sources: Sequence[worker.SourceParts]) -> str:
        return f"{plan.sources[sources[0][0]].path}"

    tasks = _tasks(maybe_modified, context, ledger)
    compare = partial(worker.changed_part, key=context.job_key)
    for _, changed in run_tasks(context.engine, compare, tasks, context.window, describe):
        if changed is not None:
            return changed
    return None


def _tasks(
    maybe_modified: Sequence[int], context: Context, ledger: Ledger
) -> Iterator[list[worker.SourceParts]]:
    """Some sources at a time, of one text chunk: neither are there too many tasks, nor is one too long."""
    is_touched = bytearray(len(context.plan.sources))
    for number in maybe_modified:
        is_touched[number] = True
    for record in context.workspace.log.last_shards():
        if not ledger.is_encoded(record.id.chunk_index):
            continue
        found = (parts for parts in _parts(context.plan, record) if is_touched[parts[0]])
        while some := list(islice(found, _SOURCES_AT_ONCE)):
            yield some


def _parts(plan: Plan, record: ShardRecord) -> Iterator[worker.SourceParts]:
    """What the shards of a text chunk were made from, by the record of the last one."""
    edges: dict[int, list[tuple[int, int, str]]] = {}
    for source, start, stop, digest in record.edges:
        edges.setdefault(source, []).append((start, stop, digest))
    blocks = zip(plan.blocks(plan.chunk(record.id.chunk_index)), each_digest(record.digests), strict=True)
    for source, own in groupby(blocks, lambda block: block[0][0]):
        size = plan.sources[source].size_bytes
        parts = [block_part(number, size, digest) for (_, number), digest in own]
        yield source, [*parts, *edges.pop(source, ())]
    yield from edges.items()


def _names(workspace: AnyWorkspace, plan: Plan) -> str:
    first = printable(plan.sources[workspace.maybe_modified[0]].path)
    more = len(workspace.maybe_modified) - 1
    return f"{first} and {more} more" if more else first
