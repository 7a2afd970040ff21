"""A conversion from start to end: find, plan, resume, encode and merge, finish, verify, publish.

Every error that can be known in advance is raised before anything is written. The dataset gets its final name last.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bpe.errors import BadTokenizer
from bpe.formats.by_path import files_of
from convert.chat_rules import intake_rules
from convert.cli.summary import Summary
from convert.document_ends import document_ends
from convert.driver.context import Context
from convert.driver.estimate import check_space, estimate_lines
from convert.driver.finish import save_tokenizer, summarize, verify, write_metadata
from convert.driver.resume import resume
from convert.driver.schedule import EncodeAndMerge
from convert.driver.tokenizers import load_tokenizer
from convert.encode.encode_task import smallest_hashes
from convert.encode.held_out import SmallestHashes
from convert.encode.job import Clock, Job, Setup, hand_out
from convert.errors import COMPLETE, Advice, BadInput, Refused, UsageError, printable
from convert.options import ConvertOptions
from convert.planning.plan import Plan, make_plan
from convert.planning.plan_record import plan_record
from convert.workdir.journal import Recorded, threshold_entry
from convert.workdir.overlaps import overlaps, overlaps_of_files, standard_input_file
from convert.workdir.store import open_workdir
from convert.workdir.workdir import WorkDir
from flat_tokens.storage.layout import ArrayLayout
from tokenmill.cli.failures import MACHINE, MEMORY, exit_code_of, one_line
from tokenmill.cli.progress import Progress, Stage, make_progress
from tokenmill.engines.choose import open_engine
from tokenmill.engines.tasks import TaskPool
from tokenmill.inputs.kinds import STANDARD_INPUT, markup_note
from tokenmill.inputs.marked_records import MARKED_FORMATS
from tokenmill.inputs.sizes import counted
from tokenmill.inputs.source_list import Source, SourceList
from tokenmill.inputs.sources import refuse, search_sources
from tokenmill.inputs.standard_input import spool
from tokenmill.stores import is_url

# In format 2 each Zarr chunk is a file. Few file systems can hold many more than this.
MAX_CHUNK_FILES = 50_000_000
MAX_WARNINGS = 8  # in the status file
_RESUMABLE = (BadInput.exit_code, MACHINE, MEMORY)


def convert(options: ConvertOptions, executor: Any = None) -> Summary:
    """Convert and verify. The dataset is at `options.output` when this returns.

    executor: an Executor of `concurrent.futures` or a `distributed.Client` that runs the tasks and stays open;
    None: the engine of the options.

    Errors carry `exit_code` (convert/errors.py). If finished work is kept in `<output>.partial`, a note of the error
    says so, and the same call resumes.
    """
    if options.share is not None:
        raise UsageError("task_count: use encode_share for a share of the corpus")
    with _working(options, executor) as (context, work):
        workspace, progress, clock = context.workspace, context.progress, context.clock
        status = partial(_write_status, context, work)
        with progress.stage("encode", context.plan.total_bytes, status) as stage:
            work.encode(stage)
        clock.lap("encode")
        saved = save_tokenizer(context.tokenizer, workspace.dataset, context.source)  # while workers merge
        with progress.stage("merge", work.run_bytes, status) as stage:
            work.merge(stage)
        files = write_metadata(context, work.ledger, saved)
        clock.lap("merge")
        verify(context, work.ledger, files, status)
        clock.lap("verify")
        workspace.publish()
        clock.lap("publish")
        return summarize(context, work, files)


def encode_share(options: ConvertOptions, executor: Any = None) -> int:
    """Encode a share of the corpus, as task `options.task_index` of `options.task_count` in a job array.

    Return the number of its text chunks. A later `convert` with the same options, except these two, merges the shares.
    """
    if options.share is None:
        raise UsageError("task_count: required by encode_share")
    with _working(options, executor) as (context, work):
        chunks = context.plan.share(options.share)
        total_bytes = sum(map(context.plan.work_bytes, map(context.plan.chunk, chunks)))
        with context.progress.stage("encode", total_bytes, partial(_write_status, context, work)) as stage:
            work.encode(stage)
        context.workspace.log.flush()
    return len(chunks)


def dry_run(options: ConvertOptions) -> list[str]:
    """Return the lines of --dry-run: the inputs and an estimate from a sample. Write nothing and start no process."""
    if STANDARD_INPUT in options.inputs:
        raise UsageError("-: --dry-run cannot sample standard input. Pass a file instead.")
    open_workdir(options).check_output()
    return estimate_lines(prepare(options, make_progress(options.progress)))


@contextmanager
def _working(options: ConvertOptions, executor: Any) -> Iterator[tuple[Context, EncodeAndMerge]]:
    """Find, plan, resume and start the workers. At the end stop the workers and release the work folder."""
    clock, progress, workspace = Clock(), make_progress(options.progress), open_workdir(options)
    warnings: deque[str] = deque(maxlen=MAX_WARNINGS)

    def warn(text: str) -> None:
        warnings.append(text)
        progress.note(text)

    try:
        workspace.check_output()
    except Refused:
        workspace.remove_remains()
        raise
    setup = prepare(options, progress)
    with ExitStack() as opened:
        opened.callback(workspace.close)
        opened.enter_context(_advising(options, workspace))
        where = options.engine if executor is None else replace(options.engine, executor=executor)
        engine = open_engine(where, warn)
        opened.callback(engine.shutdown)
        # After an error, the work that the stopped workers still finished is recorded last.
        recording = opened.enter_context(ExitStack())
        pool = opened.enter_context(TaskPool(engine, options.retries, warn))
        workspace.acquire(options.share)
        if STANDARD_INPUT in options.inputs:  # read last, because it can be read only once
            standard_input = spool(workspace.standard_input, options.input_format, options.storage_options)
            setup = with_sources(setup, find_sources(options, progress, standard_input))
        if options.restart or not workspace.has_plan:  # else a part of the space is in use
            check_space(setup)
        plan = setup.plan
        if workspace.open(plan_record(plan, setup.source["source_sha256"], setup.recorded)):
            progress.note(f"resuming from {workspace.root}")
        finished = workspace.log.recorded()
        job = Job(
            **vars(setup),
            shards=workspace.shard_store,
            temporary=workspace.shards,
            dataset=workspace.dataset,
            syncs=not engine.inherits,
        )
        # Compressed text may give any number of tasks.
        is_decoded = any(kind.is_decoded for kind in plan.sources.kinds)
        max_tasks = sys.maxsize if is_decoded else max(1, plan.chunk_count)
        key = hand_out(job, workspace.put_job, engine, max_tasks, options.storage_options)
        clock.lap("start")
        context = Context(
            **vars(setup),
            workspace=workspace,
            progress=progress,
            clock=clock,
            engine=engine,
            job_key=key,
            pool=pool,
            warnings=warnings,
        )
        threshold = _choose_threshold(context, finished)
        resumed = resume(context, finished, threshold)
        if lost := [counted(count, what) for what, count in resumed.lost.items() if count]:
            progress.note(f"rebuilt {' and '.join(lost)} of {workspace.root} that were damaged or missing")
        work = EncodeAndMerge(context, finished, resumed, threshold)
        recording.enter_context(work.noting_finished())
        yield context, work


def _choose_threshold(context: Context, recorded: Recorded) -> int | None:
    """Return the hash that the documents of --validation-docs are below, or None without that option.

    This reads the whole corpus, unless an earlier run has recorded the result.
    """
    plan, workspace, count = context.plan, context.workspace, context.options.validation_docs
    known = None if count is None else recorded.threshold(count)
    if count is None or known is not None:
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
    workspace.log.append([threshold_entry(count, threshold)])
    return threshold


def _write_status(context: Context, work: EncodeAndMerge, stage: Stage) -> None:
    context.workspace.write_status(
        {
            "stage": stage.name,
            "done_bytes": stage.shown_bytes,
            "total_bytes": stage.total_bytes,
            "bytes_per_second": round(stage.shown_bytes / stage.seconds),
            "tokens": stage.tokens,
            "skipped": work.ledger.bad_count,
            "errors": list(context.warnings),
        }
    )


def prepare(options: ConvertOptions, progress: Progress) -> Setup:
    """Find the inputs, except standard input, and load the tokenizer."""
    sources = find_sources(options, progress)
    tokenizer, source = load_tokenizer(options.tokenizer, options.storage_options)
    rules, ends = intake_rules(options, tokenizer), document_ends(options, tokenizer)
    if note := tokenizer.pretokenizer.slow_note:
        progress.note(note)
    if options.template and options.messages_field is not None:
        why = "because their chat template writes begin and end tokens"
        progress.note(f"warning: --template: has no effect on chats, {why}")
    plan = make_plan(sources, options.text_chunk_bytes)
    return Setup(options, tokenizer, source, ends, rules, plan, layout_of(options, plan))


def with_sources(setup: Setup, sources: SourceList) -> Setup:
    """Return the setup for other sources."""
    plan = make_plan(sources, setup.options.text_chunk_bytes)
    return replace(setup, plan=plan, layout=layout_of(setup.options, plan))


def find_sources(
    options: ConvertOptions, progress: Progress, standard_input: Source | None = None
) -> SourceList:
    """Return the sources. Raise UsageError that lists all problems of inputs, tokenizer and output.

    standard_input: the copy of standard input, which is left out without one.
    """
    named = [path for path in (*options.inputs, *options.validation) if path != STANDARD_INPUT]
    problems = list(_overlaps_of_single_files(options))
    if standard_input is None and not named:
        refuse(problems)
        return SourceList()
    found = search_sources(
        [path for path in options.inputs if path != STANDARD_INPUT or standard_input is not None],
        options.validation,
        options.input_format,
        standard_input,
        options.storage_options,
        keep_unreadable=options.on_error != "fail",
        exclude=options.exclude,
    )
    refuse([*problems, *found.problems, *overlaps(named, found.sources, options.output)])
    if standard_input is None:  # else the same was shown before
        if found.note:
            progress.note(found.note)
        if found.marked_up:
            progress.note(f"warning: {markup_note(found.marked_up)}")
    formats = {kind.format for kind in found.sources.kinds}
    is_whole = standard_input is not None or STANDARD_INPUT not in options.inputs
    if options.has_mask and (
        formats - {"text", *MARKED_FORMATS} or (is_whole and not formats & MARKED_FORMATS)
    ):
        flag = "--messages-field" if options.messages_field is not None else "--prompt-field"
        raise UsageError(
            f"{flag}: requires records in JSON Lines, Parquet, Arrow or CSV (got {', '.join(sorted(formats))}). "
            "Convert the inputs to JSON Lines, or pass --input-format jsonl."
        )
    return found.sources


def _overlaps_of_single_files(options: ConvertOptions) -> Iterator[str]:
    """Yield a problem if the output would replace the tokenizer, the chat template or standard input."""
    with suppress(BadTokenizer):  # reported when the tokenizer is loaded
        yield from overlaps_of_files("the tokenizer", files_of(Path(options.tokenizer)), options.output)
    if options.chat_template is not None:
        yield from overlaps_of_files("the chat template", [options.chat_template], options.output)
    if STANDARD_INPUT in options.inputs and (file := standard_input_file()) is not None:
        yield from overlaps_of_files("standard input", [file], options.output)


def layout_of(options: ConvertOptions, plan: Plan) -> ArrayLayout:
    """Return the layout of the arrays: in format 3 if the corpus is too large for format 2, unless 2 was requested."""
    zarr_format = options.zarr_format or (3 if is_url(options.output) else 2)
    layout = ArrayLayout.create(zarr_format, options.chunk_tokens, compression=options.compression)
    files = plan.total_bytes // layout.chunk_tokens  # as if each byte was a token
    if zarr_format == 3 or files <= MAX_CHUNK_FILES:
        return layout
    if options.zarr_format == 2:
        why = f"because format 2 could need {files:,} files"
        raise UsageError(f"--zarr-format: must be 3 for this corpus, {why} (got 2)")
    return layout_of(replace(options, zarr_format=3), plan)


@contextmanager
def _advising(options: ConvertOptions, workspace: WorkDir) -> Iterator[None]:
    """Add a note on the kept work, and how to resume, to an error."""
    try:
        yield
    except BaseException as error:
        line, code = one_line(error), exit_code_of(error)
        sentences = [f"Finished work is kept in {workspace.root}."]
        if code == BadInput.exit_code:
            if options.on_error == "fail":
                sentences.append("To resume, add --on-error skip or --on-error quarantine.")
            elif "--max-errors" in line:
                sentences.append("To resume, raise --max-errors.")
            sentences.append("After repairing a file or changing other options, pass --restart.")
        elif "same command" not in line:
            sentences.append("Run the same command to resume.")
        if workspace.is_published:
            error.add_note(COMPLETE)
        elif workspace.holds_work and (code in _RESUMABLE or isinstance(error, KeyboardInterrupt)):
            error.add_note(Advice(printable(" ".join(sentences))))
        raise
