"""What an earlier run of the same command left, and what of it is taken over.

The journal says which shards and runs there were. Files of runs are taken over if they are there with every byte they
had, which the workers see to; shards are looked at when their turn comes (convert/worker.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from convert import worker
from convert.context import Context
from convert.engine.tasks import run_tasks
from convert.errors import Refused
from convert.intake import is_usable
from convert.journal import Recorded
from convert.shards.assembly import Assembly, recorded_assembly
from convert.shards.merge import WrittenFile
from convert.shards.runs import Run
from convert.shards.shard import ShardRecord
from convert.touched import check_touched
from corpus.rules import IntakeRules


class EarlierRun(NamedTuple):
    """assembly: the shards there were, and what of them is still needed; lost_runs: how many are to be made again."""

    assembly: Assembly
    written: dict[tuple[str, str, int], list[WrittenFile]]
    lost_runs: int

    def files(self, run: Run) -> list[WrittenFile] | None:
        """The files of a run that need not be written again; None if it has to be written."""
        return self.written.get((run.split, run.array, run.first))


def take_over(context: Context, recorded: Recorded) -> EarlierRun:
    """What of the earlier run can be taken over; everything else in the dataset's folder is removed.

    Refused (exit 6) if its shards were made by another rule for bad records, or from other text.
    """
    workspace = context.workspace
    # What of a compressed file was read for some of its shards is not known: its digests come with the last.
    assembly, runs = recorded_assembly(
        context.plan.chunk_count, context.layout, recorded, whole_chunks=bool(workspace.touched)
    )
    runs_of = {id(files): run for run, files in runs}
    written: dict[tuple[str, str, int], list[WrittenFile]] = {}
    tasks = (files for _, files in runs)
    for files, intact in run_tasks(
        context.engine,
        partial(worker.are_intact, key=context.job_key),
        tasks,
        context.window,
        lambda _: "a check of files",
    ):
        if intact:
            run = runs_of[id(files)]
            written[run.split, run.array, run.first] = files
            assembly.written(run, files)
    workspace.clean_dataset({file.record.path for files in written.values() for file in files})
    _check_rules(workspace.root, assembly.records(), context.options.intake_rules)
    if workspace.touched:
        check_touched(context, assembly.records())
        context.syncer.add([workspace.plan], stays=True)
    return EarlierRun(assembly, written, len(runs) - len(written))


def _check_rules(root: Path, records: Iterable[ShardRecord], rules: IntakeRules) -> None:
    for record in records:
        if not is_usable(record.intake, rules):
            raise Refused(
                f"bad records were left out of {root} in another way than --on-error {rules.on_error} "
                f"asks for now; go on with the former way, or begin anew with --overwrite"
            )
