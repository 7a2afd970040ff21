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
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

from convert.driver.context import Context
from convert.driver.ledger import Ledger
from convert.encode import encode_task
from convert.errors import Refused
from convert.planning.plan import ShardId
from convert.shards import merge_task
from convert.shards.intake import has_quarantine, is_usable
from convert.shards.merge_task import FileCheck, ShardCheck
from convert.shards.shard import ShardRecord
from convert.shards.write_units import MergeTask
from convert.shards.written_files import WrittenFiles
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


def resume(
    context: Context,
    recorded: Recorded,
    threshold: int | None = None,
    share: tuple[int, int] | None = None,
) -> Resumed:
    """Take over finished work, and remove everything else from the folders of the run.

    threshold, share: see EncodeAndMerge. With a share, shards of others are left alone.

    Refused (exit 6) if shards were made with other rules for bad records, BadInput (exit 3) if their sources changed.
    """
    workspace, options = context.workspace, context.options
    ledger = Ledger(context.plan, context.layout, keeps_intakes=options.on_error == "quarantine")
    ledger.unreadable.update(empty_tables(context.plan.sources))
    tasks: list[MergeTask] = []
    written: list[tuple[MergeTask, list[WrittenFiles]]] = []
    for record in _usable_shards(context, recorded, share):
        ledger.add(record)
        for task in ledger.ready():
            if (files := recorded.files(task)) is None:
                tasks.append(task)
            else:
                written.append((task, files))
    lost = Counter[str]()
    intact = _intact(context, written)
    for number, (task, files) in enumerate(written):
        if number in intact:
            ledger.written(task, files)
        else:
            tasks.append(task)
            lost["output span"] += 1
    lost["temporary shard"] = _encode_lost_shards(context, recorded, ledger.needed_files(), threshold)
    if share is None:
        workspace.clean_dataset({file.path for files in ledger.files for file in files.records()})
        workspace.shard_store.delete_others(ledger.needed_files() | ledger.quarantine_files())
    return Resumed(ledger, tasks, lost)


def _usable_shards(
    context: Context, recorded: Recorded, share: tuple[int, int] | None
) -> Iterator[ShardRecord]:
    """Yield the recorded shards, in order, that the options allow to reuse."""
    workspace, rules = context.workspace, context.options.intake_rules
    for shard in sorted(recorded.shards):
        if share is not None and shard.chunk_index % share[1] != share[0]:
            continue
        record = recorded.shard(shard)
        assert record is not None
        if not is_usable(record.intake, rules):
            raise Refused(
                f"{workspace.root}: bad records were left out, which --on-error {rules.on_error} does not allow. "
                "Resume with the former --on-error and --replace-invalid, or start over with --restart."
            )
        if has_quarantine(workspace.shard_store, record, rules):
            yield record


def _intact(context: Context, written: list[tuple[MergeTask, list[WrittenFiles]]]) -> set[int]:
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
    checks = (
        FileCheck(number, files, reads_all or number >= len(written) - LAST_TASKS)
        for number, (_, files) in enumerate(written)
    )
    check = partial(merge_task.check_files, key=context.job_key)
    results = context.pool.run(check, checks, context.window, lambda _: "files of an earlier run")
    return {done.number for done, is_intact in results if is_intact}


def _encode_lost_shards(context: Context, recorded: Recorded, needed: set[str], threshold: int | None) -> int:
    """Encode shards with a missing or damaged file again. Return their number."""
    reads_all = context.options.verify == "full"
    last = set(list(recorded.shards)[-LAST_SHARDS:])

    def checks() -> Iterator[ShardCheck]:
        for shard in sorted(recorded.shards):
            record = recorded.shard(shard)
            assert record is not None
            if files := [file for file in record.files() if file.name in needed]:
                yield ShardCheck(shard, files, reads_all or shard in last)

    remaining = checks()
    batches = iter(lambda: tuple(islice(remaining, SHARDS_PER_CHECK)), ())
    check = partial(merge_task.lost_shards, key=context.job_key)
    window, pool = context.window, context.pool
    lost: list[ShardId] = []
    for _, found in pool.run(check, batches, window, lambda _: "shards of an earlier run"):
        lost += found
    by_chunk = groupby(sorted(lost), lambda shard: shard.chunk_index)
    records = ([recorded.shard(shard) for shard in shards] for _, shards in by_chunk)
    again = partial(encode_task.encode_again, key=context.job_key, threshold=threshold)
    for _ in pool.run(again, records, window, lambda _: "shards of an earlier run"):
        pass
    return len(lost)
