"""What an earlier run of the same command left, and what of it is taken over.

The log says which shards and runs there were. All shards it speaks of go into the ledger. A run that they make possible
counts as written if its files are there with every byte they had, which the workers see to. Any other is written anew:
should a shard that it reads be gone or damaged, that shows then, and the shard is made again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from convert.driver.context import Context
from convert.driver.ledger import Ledger
from convert.encode import worker
from convert.errors import Refused
from convert.shards.intake import has_quarantine, is_usable
from convert.shards.runs import Run
from convert.shards.shard import ShardRecord
from convert.shards.write_run import WrittenFile
from convert.workdir.journal import Recorded
from tokenmill.engines.tasks import run_tasks
from tokenmill.inputs.sources import empty_tables


def resume(context: Context, recorded: Recorded) -> tuple[Ledger, list[Run], int]:
    """What of the earlier run can be taken over: the ledger with it, the runs that can be written, and how many of them
    were written once but are damaged or gone. Everything else in its folders is removed.

    Refused (exit 6) if its shards were made by another rule for bad records, or from other text.
    """
    workspace = context.workspace
    ledger = Ledger(
        context.plan,
        context.layout,
        keeps_intakes=context.options.on_error == "quarantine",
        has_places=context.recorded["source_places"] == "yes",
    )
    ledger.unreadable.update(empty_tables(context.plan.sources))
    runs: list[Run] = []
    written: dict[int, Run] = {}  # by the identity of the list of their files

    def recorded_runs() -> Iterator[list[WrittenFile]]:
        for record in _usable_shards(context, recorded):
            ledger.add(record)
            for run in ledger.ready():
                files = recorded.run(run)
                if files is None:
                    runs.append(run)
                else:
                    written[id(files)] = run
                    yield files

    lost_runs = 0
    for files, is_intact in run_tasks(
        context.engine,
        partial(worker.are_intact, key=context.job_key),
        recorded_runs(),
        context.window,
        lambda _: "files of an earlier run",
    ):
        run = written.pop(id(files))
        if is_intact:
            ledger.written(run, files)
        else:
            runs.append(run)
            lost_runs += 1
    workspace.clean_dataset({file.path for file in ledger.files})
    workspace.shard_store.delete_others(ledger.needed_files())
    return ledger, runs, lost_runs


def _usable_shards(context: Context, recorded: Recorded) -> Iterator[ShardRecord]:
    """Those of the log, in order, that need not be made again for what the options ask for."""
    workspace, rules = context.workspace, context.options.intake_rules
    for shard in sorted(recorded.shards):
        record = recorded.shard(shard)
        assert record is not None
        if not is_usable(record.intake, rules):
            raise Refused(
                f"{workspace.root}: bad records were left out, which --on-error {rules.on_error} does not allow. "
                "Resume with the former --on-error and --invalid, or start over with --restart."
            )
        if has_quarantine(workspace.shard_store, record.id, record.intake, rules):
            yield record
