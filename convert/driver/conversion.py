"""A conversion from beginning to end: find, plan, encode, merge, verify, publish.

The order of the beginning is for speed as well as for safety: what can be refused is refused before anything is
written; the workers are forked right after the tokenizer is loaded, while the process has one thread; and what the
parent alone needs is imported and written while they already encode. The dataset gets its final name last.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bpe.errors import BadTokenizer
from bpe.formats.by_path import files_of
from bpe.tokenizer import Tokenizer
from convert.document_ends import document_ends
from convert.driver.context import Context
from convert.driver.crashes import with_place
from convert.driver.encode_and_merge import EncodeAndMerge
from convert.driver.estimate import check_space
from convert.driver.source_places import has_places
from convert.encode.clock import Clock
from convert.encode.job import Job, hand_out
from convert.encode.splitting import hash_threshold
from convert.errors import Refused, UsageError, WorkerLost
from convert.options import ConvertOptions
from convert.planning.plan import Plan, make_plan
from convert.planning.plan_record import plan_record, with_left_out
from convert.workdir.overlaps import overlaps, overlaps_of_files, standard_input_file
from convert.workdir.store import open_workdir
from convert.workdir.workdir import WorkDir
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.writer import load_codecs
from tokenmill.cli.progress import Progress, make_progress
from tokenmill.engines.choose import open_engine
from tokenmill.engines.ending import ending
from tokenmill.engines.engine import Engine
from tokenmill.engines.tasks import TaskPool
from tokenmill.inputs.kinds import markup_note
from tokenmill.inputs.marked_records import MARKED_FORMATS
from tokenmill.inputs.sizes import counted
from tokenmill.inputs.source_list import Source, SourceList
from tokenmill.inputs.sources import STANDARD_INPUT, check_unchanged, refuse, search_sources
from tokenmill.stores.durability import Syncer

if TYPE_CHECKING:
    from convert.shown.summary import Summary

# Their codec, if any, needs no import (flat_tokens/storage/zstd_library.py); what others need is better inherited by
# workers.
LATE_CODECS = ("zstd", "none")


@dataclass
class Prepared:
    """What is known before the tokenizer is: where to work, what to read (without standard input), what to write."""

    options: ConvertOptions
    times: Clock
    progress: Progress
    workspace: WorkDir
    sources: SourceList
    layout: ArrayLayout


def prepare(
    options: ConvertOptions,
    started: float | None = None,
    is_dry_run: bool = False,
) -> Prepared:
    """Find the sources and raise for all that can be known to fail. started: as for `convert`.

    The only change on disk: a finished output loses the partial folder that a killed run left next to it, and not even
    that in a dry run.
    """
    times = Clock()
    times.start(started)
    progress = make_progress(options.progress)
    workspace = open_workdir(options)
    try:
        workspace.check_output()
    except Refused:
        if not is_dry_run:
            workspace.remove_remains()
        raise
    _check_place(options)
    named = [path for path in options.inputs if path != STANDARD_INPUT]
    is_any = named or options.validation
    sources = find_sources(options, named, note=progress.note) if is_any else SourceList()
    layout = ArrayLayout.create(
        zarr_format=options.zarr_format or 2,
        chunk_tokens=options.chunk_tokens,
        compression=options.compression,
    )
    if layout.compression not in LATE_CODECS:
        load_codecs(layout)
    elif find_spec("numcodecs") is None:
        raise ModuleNotFoundError("numcodecs is not installed", name="numcodecs")
    return Prepared(options, times, progress, workspace, sources, layout)


def _check_place(options: ConvertOptions) -> None:
    """Refuse an output that would replace the tokenizer, chat template or standard input; see `find_sources`."""
    problems: list[str] = []
    with suppress(BadTokenizer):  # told when it is loaded
        problems.extend(overlaps_of_files("the tokenizer", files_of(Path(options.tokenizer)), options.output))
    if options.chat_template is not None:
        template = Path(options.chat_template)
        problems.extend(overlaps_of_files("the chat template", [template], options.output))
    if STANDARD_INPUT in options.inputs and (file := standard_input_file()) is not None:
        problems.extend(overlaps_of_files("standard input", [file], options.output))
    refuse(problems)


def run(
    prepared: Prepared,
    tokenizer: Tokenizer,
    source: Mapping[str, str],
    executor: Executor | None = None,
) -> Summary:
    """Do the work that was prepared, see `convert`. tokenizer, source: from `load_tokenizer`."""
    workspace = prepared.workspace
    engine = open_engine(prepared.options.engine(executor), prepared.progress.note)
    try:
        return _run(prepared, tokenizer, source, engine)
    except BaseException as error:
        # For who tells of it.
        error.kept_work, error.work_at = workspace.holds_work, workspace.root  # type: ignore[attr-defined]
        error.made = prepared.options.output if workspace.is_published else None  # type: ignore[attr-defined]
        raise
    finally:
        try:
            engine.shutdown()
        finally:  # also when a second Ctrl-C ends the shutdown
            workspace.close()


def _run(prepared: Prepared, tokenizer: Tokenizer, source: Mapping[str, str], engine: Engine) -> Summary:
    options, times = prepared.options.with_chat_rules(tokenizer), prepared.times
    progress, workspace = prepared.progress, prepared.workspace
    sources, layout = prepared.sources, prepared.layout
    if note := tokenizer.pretokenizer.slow_note:
        progress.note(note)
    ends = document_ends(options, tokenizer)
    if options.template and options.messages_field is not None:
        progress.note(
            "warning: --template: has no effect on chats, because their chat template writes begin and end tokens"
        )
    if STANDARD_INPUT in options.inputs:  # all else is in order: now it may be read
        sources = _with_standard_input(options, workspace)
    check_records(sources, options)
    if not options.restart:
        with suppress(ValueError):  # a damaged plan, which opening the workspace reports
            if (former := workspace.former_plan()) is not None:
                sources = with_left_out(former, sources)
    plan = make_plan(sources, options.text_chunk_bytes)
    places = has_places(plan, options)
    recorded = {**options.recorded(), **ends.added.recorded()}
    check_space(tokenizer, plan, layout, options)
    if workspace.open(plan_record(plan, source["source_sha256"], recorded)):
        progress.note(f"resuming from {workspace.root}")
    recorded["source_places"] = "yes" if places else "no"  # of auto, what it came to
    recorded |= ends.recorded()
    job = Job(
        tokenizer,
        tokenizer.max_token_id,
        ends.added,
        plan,
        options.separator_bytes,
        options.seed,
        hash_threshold(options.fraction),
        options.intake_rules,
        workspace.shard_store,
        workspace.shards,
        workspace.dataset,
        layout,
        places,
        has_template=options.template,
        decompress_ahead=plan.compressed_count < engine.worker_count,
    )
    pool = TaskPool(engine)
    with ExitStack() as finished, ending(engine, progress.note), pool:
        key = hand_out(job, workspace.put_job, engine, _most_tasks(plan), options.storage_options)
        times.lap("start")
        syncer = Syncer()
        context = Context(options, recorded, plan, layout, workspace, progress, key, engine, pool, syncer)
        try:
            work = EncodeAndMerge(context)
            finished.enter_context(work.noting_finished())
            with progress.stage("encode", plan.total_bytes) as stage:
                work.begin(stage)
                # While the workers encode, as all that the beginning does not need.
                from convert.driver.finalizer import Finalizer

                finalizer = Finalizer(context, tokenizer, ends, source)
                work.encode()
            check_unchanged(plan.sources)
            times.lap("encode")
            with progress.stage("merge", work.run_bytes) as stage:
                work.merge(stage)
        except WorkerLost as error:
            raise with_place(error, plan) from error
        if lost := [counted(count, what) for what, count in work.lost.items() if count]:
            progress.note(f"rebuilt {' and '.join(lost)} of {workspace.root} that were damaged or missing")
        finalizer.write(work)
        times.lap("merge")
        finalizer.verify(work)
        times.lap("verify")
    workspace.publish()
    times.lap("publish")
    return finalizer.summary(work, times.seconds)


def check_records(sources: SourceList, options: ConvertOptions) -> None:
    """UsageError where a part of records is to be learned and there are none, or such as it is not known of."""
    formats = {kind.format for kind in sources.kinds}
    if options.has_mask and (formats - {"text", *MARKED_FORMATS} or not formats & MARKED_FORMATS):
        flag = "--messages-field" if options.messages_field is not None else "--prompt-field"
        raise UsageError(
            f"{flag}: requires records in JSON Lines, Parquet, Arrow or CSV (got {', '.join(sorted(formats))}). "
            "Convert the inputs to JSON Lines, or pass --input-format jsonl."
        )


def _with_standard_input(options: ConvertOptions, workspace: WorkDir) -> SourceList:
    """The sources once more, with standard input, which is read to its end."""
    from tokenmill.inputs.standard_input import spool

    workspace.acquire()
    standard_input = spool(workspace.standard_input, options.input_format, options.storage_options)
    return find_sources(options, options.inputs, standard_input)


def find_sources(
    options: ConvertOptions,
    inputs: Sequence[str],
    standard_input: Source | None = None,
    note: Callable[[str], None] | None = None,
) -> SourceList:
    """The sources; UsageError also for an output inside of an input folder, or the other way round.

    note: takes warnings about the inputs.
    """
    found = search_sources(
        inputs,
        options.validation,
        options.input_format,
        standard_input,
        options.storage_options,
        keep_unreadable=options.on_error != "fail",
        exclude=options.exclude,
    )
    named = [argument for argument in (*inputs, *options.validation) if argument != STANDARD_INPUT]
    refuse([*found.problems, *overlaps(named, found.sources, options.output)])
    if note is not None and found.note:
        note(found.note)
    if note is not None and found.marked_up:
        note(f"warning: {markup_note(found.marked_up)}")
    return found.sources


def _most_tasks(plan: Plan) -> int:
    """How many tasks there can be at once: one a text chunk, so 10 kB start one worker, whatever the machine.

    What is compressed may be many times as much text, of which only the encoding is one task.
    """
    packed = any(kind.is_decoded for kind in plan.sources.kinds)
    return sys.maxsize if packed else max(1, plan.chunk_count)
