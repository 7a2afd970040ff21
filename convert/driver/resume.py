"""Continuing an interrupted run: which finished work is reused.

The log lists the finished shards and merge tasks. All listed shards go into the ledger. Files of the dataset that merge
tasks have written are reused if they pass this check, depending on --verify:

    sample   on a store, every object has its size; on a disk, also the content of one file in 16 and of the last ones
    full     the content of every file

Both find missing and truncated files. A changed byte outside of the sample is found by "full" here, and otherwise by
the verification at the end of the run, which then fails.

Shards that remain to be merged must have their sizes. The content of the last ones is compared as well, because a power
failure may have damaged them. All others are compared when they are merged. Shards that fail are encoded again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from convert.driver.context import Context
from convert.driver.ledger import Ledger
from convert.encode import encode_task
from convert.errors import Refused
from convert.shards import merge
from convert.shards.intake import is_usable, lacks_quarantine
from convert.shards.merge import FileCheck, MergeTask, ShardCheck, WrittenFiles
from convert.workdir.journal import Recorded
from flat_tokens.writer import place_of
from tokenmill.inputs.sources import empty_tables

LAST_TASKS = 16  # merge tasks that are read back in any case
LAST_SHARDS = 1024  # shards that are read back in any case
SHARDS_PER_CHECK = 16


class Resumed(NamedTuple):
    """The state of an interrupted run. tasks: merge tasks to run; lost: damaged or missing work, by kind."""

    ledger: Ledger
    tasks: list[MergeTask]
    lost: Mapping[str, int]


def resume(context: Context, recorded: Recorded, threshold: int | None = None) -> Resumed:
    """Take over finished work, and remove everything else from the folders of the run.

    threshold: see EncodeAndMerge. A task of a job array leaves the work of others alone.

    Refused (exit 6) if shards were made with other rules for bad records, BadInput (exit 3) if their sources changed.
    """
    workspace, options = context.workspace, context.options
    ledger = Ledger(context.plan, context.layout, keeps_quarantine=options.on_error == "quarantine")
    ledger.unreadable.update(empty_tables(context.plan.sources))
    tasks: list[MergeTask] = []
    written: list[tuple[MergeTask, list[WrittenFiles]]] = []
    own_chunks = context.plan.share(options.share)
    for _, record in sorted(recorded.shards.items()):
        if record.id.chunk_index not in own_chunks:
            continue
        if not is_usable(record.intake, context.rules):
            raise Refused(
                f"{workspace.root}: bad records were left out, which --on-error {options.on_error} does not allow. "
                "Resume with the former --on-error and --replace-invalid, or start over with --restart."
            )
        if lacks_quarantine(record, context.rules):
            continue
        ledger.add(record)
        for task in ledger.ready():
            files = recorded.files(task)
            if files is None:
                tasks.append(task)
            else:
                written.append((task, files))
    lost = Counter[str]()
    intact = _intact(context, recorded, written)
    for number, (task, files) in enumerate(written):
        if number in intact:
            ledger.written(task, files)
        else:
            tasks.append(task)
            lost["output span"] += 1
    if options.share is None:
        workspace.clean_dataset({file.path for files in ledger.files for file in files.records()})
    needed = ledger.needed_files()
    workspace.shard_store.delete_others(needed, None if options.share is None else own_chunks)
    lost["temporary shard"] = _encode_lost_shards(context, recorded, needed, threshold)
    return Resumed(ledger, tasks, lost)


def _intact(
    context: Context, recorded: Recorded, written: list[tuple[MergeTask, list[WrittenFiles]]]
) -> set[int]:
    """Return the indexes of merge tasks with intact files."""
    reads_all = context.options.verify == "full"
    place = place_of(context.workspace.dataset)
    if not isinstance(place, Path) and not reads_all:
        sizes = {entry.key: entry.size for entry in place.store.list()} if written else {}
        return {
            number
            for number, (_, files) in enumerate(written)
            if all(sizes.get(file.path) == file.bytes for some in files for file in some.records())
        }
    first_read = 0 if reads_all else len(written) - LAST_TASKS
    checks = (
        FileCheck(number, files, number >= first_read or not recorded.is_in_memory(task))
        for number, (task, files) in enumerate(written)
    )
    return {done.number for done, is_intact in _run(context, merge.check_files, checks) if is_intact}


def _encode_lost_shards(context: Context, recorded: Recorded, needed: set[str], threshold: int | None) -> int:
    """Encode shards with a missing or damaged file again. Return their number."""
    reads_all = context.options.verify == "full"
    last = set(list(recorded.shards)[-LAST_SHARDS:])
    checks = (
        ShardCheck(record.id, files, reads_all or record.id in last)
        for _, record in sorted(recorded.shards.items())
        if (files := [file for file in (*record.files(), record.quarantine_file) if file.name in needed])
    )
    batches = iter(lambda: tuple(islice(checks, SHARDS_PER_CHECK)), ())
    lost = sorted(shard for _, found in _run(context, merge.lost_shards, batches) for shard in found)
    by_chunk = groupby(lost, lambda shard: shard.chunk_index)
    records = ([recorded.shards[shard] for shard in shards] for _, shards in by_chunk)
    for _ in _run(context, partial(encode_task.encode_again, threshold=threshold), records):
        pass
    return len(lost)


def _run(context: Context, function: Callable[..., Any], tasks: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield (task, result) of each task."""
    function = partial(function, key=context.job_key)
    return context.pool.run(function, tasks, context.window, lambda _: "work of an earlier run")
