"""A conversion from start to end: find, plan, resume, encode and merge, finish, verify, publish.

Every error that can be known in advance is raised before anything is written. The dataset gets its final name last.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bpe.errors import BadTokenizer
from bpe.formats.by_path import files_of
from bpe.tokenizer import Tokenizer
from convert.chat_rules import intake_rules
from convert.cli.summary import Summary
from convert.document_ends import document_ends
from convert.driver.choose_held_out import choose_threshold
from convert.driver.context import Context
from convert.driver.estimate import check_space, estimate, estimate_lines
from convert.driver.finish import save_tokenizer, summarize, verify, write_metadata
from convert.driver.left_out import leave_out
from convert.driver.resume import resume
from convert.driver.schedule import EncodeAndMerge
from convert.driver.tokenizers import load_tokenizer
from convert.encode.clock import Clock
from convert.encode.job import Job, hand_out
from convert.encode.splitting import hash_threshold
from convert.errors import Advice, BadInput, Refused, UsageError, printable, shown
from convert.options import ConvertOptions
from convert.planning.plan import Plan, make_plan
from convert.planning.plan_record import RecordFile, plan_record, with_left_out
from convert.workdir.overlaps import overlaps, overlaps_of_files, standard_input_file
from convert.workdir.store import open_workdir
from convert.workdir.workdir import WorkDir
from flat_tokens.storage.layout import ArrayLayout
from tokenmill.cli.failures import MACHINE, MEMORY, exit_code_of, one_line
from tokenmill.cli.progress import Progress, Stage, make_progress
from tokenmill.engines.choose import EngineOptions, open_engine
from tokenmill.engines.tasks import TaskPool
from tokenmill.inputs.kinds import STANDARD_INPUT, markup_note
from tokenmill.inputs.marked_records import MARKED_FORMATS
from tokenmill.inputs.sizes import counted
from tokenmill.inputs.source_list import Source, SourceList
from tokenmill.inputs.sources import refuse, search_sources
from tokenmill.inputs.standard_input import spool
from tokenmill.stores import is_url
from tokenmill.stores.durability import Syncer

# In format 2 each Zarr chunk is a file, and the manifest has space for about 52 million files.
MAX_CHUNK_FILES = 50_000_000
BYTES_PER_TOKEN = 3  # a low estimate for plain text; a byte of compressed text counts as a token
MAX_WARNINGS = 8  # in the status file
COMPLETE = Advice("The dataset is complete.")


def convert(options: ConvertOptions, executor: Any = None) -> Summary:
    """Convert and verify. The dataset is at `options.output` when this returns.

    executor: an Executor of `concurrent.futures` or a `distributed.Client` that runs the tasks and stays open;
    None: the engine of the options.

    Errors carry `exit_code` (convert/errors.py). If finished work is kept in `<output>.partial`, a note of the error
    says so, and the same call resumes.
    """
    _check_type(options)
    if options.task_count is not None:
        raise UsageError("task_count: use encode_share for a share of the corpus")
    with _working(options, executor) as (context, work):
        workspace, progress, clock = context.workspace, context.progress, context.clock
        status = partial(_write_status, context, work)
        with progress.stage("encode", context.plan.total_bytes, status) as stage:
            work.begin(stage)
            # The workers encode in the meantime.
            saved = save_tokenizer(context.tokenizer, workspace.dataset, workspace.shards, context.source)
            work.encode()
        clock.lap("encode")
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
    with _working(options, executor) as (context, work):
        plan = context.plan
        chunks = range(options.task_index or 0, plan.chunk_count, options.task_count or 1)
        total_bytes = sum(plan.work_bytes(plan.chunk(index)) for index in chunks)
        with context.progress.stage("encode", total_bytes, partial(_write_status, context, work)) as stage:
            work.begin(stage)
            work.encode()
        context.workspace.log.flush()
    return len(chunks)


def dry_run(options: ConvertOptions) -> list[str]:
    """Return the lines of --dry-run: the inputs and an estimate from a sample. Write nothing and start no process."""
    _check_type(options)
    if STANDARD_INPUT in options.inputs:
        raise UsageError("-: --dry-run cannot sample standard input. Pass a file instead.")
    open_workdir(options).check_output()
    sources = find_sources(options, make_progress(options.progress))
    tokenizer, _ = load_tokenizer(options.tokenizer, options.storage_options)
    rules, ends = intake_rules(options, tokenizer), document_ends(options, tokenizer)
    check_records(sources, options)
    plan = make_plan(sources, options.text_chunk_bytes)
    layout = layout_of(options, plan)
    found = estimate(tokenizer, plan, layout, options, ends, rules)
    return estimate_lines(found, plan, options, layout, ends)


@contextmanager
def _working(options: ConvertOptions, executor: Any) -> Iterator[tuple[Context, EncodeAndMerge]]:
    """Find, plan, resume and start the workers. At the end stop the workers and release the work folder."""
    _check_type(options)
    clock, progress, workspace = Clock(), make_progress(options.progress), open_workdir(options)
    try:
        workspace.check_output()
    except Refused:
        workspace.remove_remains()
        raise
    sources = find_sources(options, progress)
    tokenizer, source = load_tokenizer(options.tokenizer, options.storage_options)
    rules, ends = intake_rules(options, tokenizer), document_ends(options, tokenizer)
    for note in _notes(options, tokenizer):
        progress.note(note)
    with ExitStack() as opened:
        opened.callback(workspace.close)
        opened.enter_context(_advising(options, workspace))
        warnings: deque[str] = deque(maxlen=MAX_WARNINGS)

        def warn(text: str) -> None:
            warnings.append(text)
            progress.note(text)

        engine = open_engine(_engine_options(options, executor), warn)
        opened.callback(engine.shutdown)
        if STANDARD_INPUT in options.inputs:  # read last, because it can be read only once
            workspace.acquire()
            standard_input = spool(workspace.standard_input, options.input_format, options.storage_options)
            sources = find_sources(options, progress, standard_input)
        check_records(sources, options)
        former: RecordFile | None = None
        with suppress(ValueError):  # of a damaged plan, which `open` reports
            former = None if options.restart else workspace.former_plan()
        sources = sources if former is None else with_left_out(former, sources)
        plan = make_plan(sources, options.text_chunk_bytes)
        layout, chat = layout_of(options, plan), rules.marks and rules.marks.chat
        recorded = {**options.recorded(layout.zarr_format, chat), **ends.added.recorded()}
        if former is None:  # else a part of the space is in use
            check_space(tokenizer, plan, layout, options, ends, rules)
        share = None
        if options.task_index is not None and options.task_count is not None:
            share = options.task_index, options.task_count
            workspace.acquire(share)
        if workspace.open(plan_record(plan, source["source_sha256"], recorded)):
            progress.note(f"resuming from {workspace.root}")
        finished = workspace.log.recorded()
        leave_out(plan, workspace, finished)
        job = Job(
            tokenizer,
            tokenizer.max_token_id,
            ends.added,
            plan,
            options.separator.encode(),
            options.seed,
            hash_threshold(options.fraction),
            rules,
            workspace.shard_store,
            workspace.shards,
            workspace.dataset,
            layout,
            has_template=options.template,
        )
        pool = TaskPool(engine, options.retries, warn)
        # After an error, the work that the stopped workers still finished is recorded last.
        recording = opened.enter_context(ExitStack())
        opened.enter_context(pool)
        key = hand_out(job, workspace.put_job, engine, _max_tasks(plan), options.storage_options)
        clock.lap("start")
        context = Context(
            options,
            tokenizer,
            source,
            ends,
            recorded,
            plan,
            layout,
            workspace,
            progress,
            clock,
            engine,
            key,
            pool,
            Syncer(),
            warnings,
        )
        threshold = choose_threshold(context, finished)
        resumed = resume(context, finished, threshold, share)
        if lost := [counted(count, what) for what, count in resumed.lost.items() if count]:
            progress.note(f"rebuilt {' and '.join(lost)} of {workspace.root} that were damaged or missing")
        work = EncodeAndMerge(context, finished, resumed, threshold, share)
        recording.enter_context(work.noting_finished())
        yield context, work


def _check_type(options: ConvertOptions) -> None:
    if not isinstance(options, ConvertOptions):
        raise UsageError(f"options: must be ConvertOptions(inputs, tokenizer, output) (got {shown(options)})")


def _engine_options(options: ConvertOptions, executor: Any) -> EngineOptions:
    return EngineOptions(
        executor=options.engine_name if executor is None else executor,
        workers=options.worker_count,
        scheduler=options.scheduler,
        address=options.address,
        start_method=options.start_method,
        stall_seconds=options.stall_timeout,
        retries=options.retries,
        executor_options=options.executor_options,
    )


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


def _notes(options: ConvertOptions, tokenizer: Tokenizer) -> Iterator[str]:
    if note := tokenizer.pretokenizer.slow_note:
        yield note
    if options.template and options.messages_field is not None:
        yield "warning: --template: has no effect on chats, because their chat template writes begin and end tokens"


def find_sources(
    options: ConvertOptions, progress: Progress, standard_input: Source | None = None
) -> SourceList:
    """Return the sources. Raise UsageError that lists all problems of inputs, tokenizer and output.

    standard_input: the copy of standard input, which is left out without one.
    """
    inputs: Sequence[str] = options.inputs
    if standard_input is None:
        inputs = [path for path in inputs if path != STANDARD_INPUT]
    named = [path for path in (*options.inputs, *options.validation) if path != STANDARD_INPUT]
    problems = list(_overlaps_of_single_files(options))
    if not inputs and not options.validation:
        refuse(problems)
        return SourceList()
    found = search_sources(
        inputs,
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
    return found.sources


def _overlaps_of_single_files(options: ConvertOptions) -> Iterator[str]:
    """Yield a problem if the output would replace the tokenizer, the chat template or standard input."""
    with suppress(BadTokenizer):  # reported when the tokenizer is loaded
        yield from overlaps_of_files("the tokenizer", files_of(Path(options.tokenizer)), options.output)
    if options.chat_template is not None:
        yield from overlaps_of_files("the chat template", [options.chat_template], options.output)
    if STANDARD_INPUT in options.inputs and (file := standard_input_file()) is not None:
        yield from overlaps_of_files("standard input", [file], options.output)


def check_records(sources: SourceList, options: ConvertOptions) -> None:
    """Raise UsageError if the run needs prompts or chats, but no input has records or some cannot have them."""
    formats = {kind.format for kind in sources.kinds}
    if options.has_mask and (formats - {"text", *MARKED_FORMATS} or not formats & MARKED_FORMATS):
        flag = "--messages-field" if options.messages_field is not None else "--prompt-field"
        raise UsageError(
            f"{flag}: requires records in JSON Lines, Parquet, Arrow or CSV (got {', '.join(sorted(formats))}). "
            "Convert the inputs to JSON Lines, or pass --input-format jsonl."
        )


def layout_of(options: ConvertOptions, plan: Plan) -> ArrayLayout:
    """Return the layout of the arrays: in format 3 if the corpus is too large for format 2, unless 2 was requested."""
    zarr_format = options.zarr_format or (3 if is_url(options.output) else 2)
    layout = ArrayLayout.create(zarr_format, options.chunk_tokens, compression=options.compression)
    max_tokens = MAX_CHUNK_FILES * layout.chunk_tokens
    if zarr_format == 3 or plan.total_bytes <= max_tokens:  # as if each byte were a token
        return layout
    sources = plan.sources
    tokens = sum(each.size_bytes // (1 if each.kind.is_decoded else BYTES_PER_TOKEN) for each in sources)
    if tokens <= max_tokens:
        return layout
    if options.zarr_format == 2:
        files = tokens // layout.chunk_tokens
        raise UsageError(
            f"--zarr-format: must be 3 for this corpus, because format 2 would need about {files:,} files (got 2)"
        )
    return layout_of(replace(options, zarr_format=3), plan)


def _max_tasks(plan: Plan) -> int:
    """Return the number of tasks that can run at once. Compressed text may give any number."""
    return sys.maxsize if any(kind.is_decoded for kind in plan.sources.kinds) else max(1, plan.chunk_count)


@contextmanager
def _advising(options: ConvertOptions, workspace: WorkDir) -> Iterator[None]:
    """Add a note on the kept work, and how to resume, to an error."""
    try:
        yield
    except BaseException as error:
        if workspace.is_published:
            error.add_note(COMPLETE)
        elif workspace.holds_work and (sentences := list(_advice(options, error))):
            kept = f"Finished work is kept in {workspace.root}."
            error.add_note(Advice(printable(" ".join([kept, *sentences]).strip())))
        raise


def _advice(options: ConvertOptions, error: BaseException) -> Iterator[str]:
    line, code = one_line(error), exit_code_of(error)
    if code == BadInput.exit_code:
        if options.on_error == "fail":
            yield "To resume, add --on-error skip, --on-error quarantine or --exclude."
        elif "--max-errors" in line:
            yield "To resume, raise --max-errors."
        yield "After repairing a file or changing other options, pass --restart."
    elif code in (MACHINE, MEMORY) or isinstance(error, KeyboardInterrupt):
        yield "" if "same command" in line else "Run the same command to resume."
