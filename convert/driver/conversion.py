"""A conversion from start to end: find, plan, resume, encode and merge, finish, verify, publish.

Every error that can be known in advance is raised before anything is written. The dataset gets its final name last.
"""

from __future__ import annotations

import hashlib
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bpe import _core
from bpe.errors import BadTokenizer
from bpe.formats.by_path import files_of
from convert.chat_rules import intake_rules
from convert.cli.summary import Summary, warnings_of
from convert.document_ends import document_ends
from convert.driver.estimate import check_space, estimate_lines
from convert.driver.ledger import Ledger
from convert.driver.schedule import DAMAGE, Context, EncodeAndMerge
from convert.driver.tokenizers import load_tokenizer
from convert.encode.encode_task import smallest_hashes
from convert.encode.held_out import SmallestHashes
from convert.encode.job import Clock, Job, Setup
from convert.errors import (
    COMPLETE,
    Advice,
    BadInput,
    BrokenInvariant,
    Refused,
    StorageError,
    UsageError,
    WorkerLost,
    printable,
    with_sentence,
)
from convert.options import ConvertOptions
from convert.planning.plan import Plan, make_plan
from convert.planning.plan_record import plan_record
from convert.shards.intake import QUARANTINE_NAME, quarantine_lines
from convert.workdir.store import open_workdir
from convert.workdir.workdir import WorkDir
from flat_tokens.errors import DatasetError
from flat_tokens.sources import SOURCE_COUNTS
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import MANIFEST_NAME, FileRecord, SplitRecord, read_manifest
from flat_tokens.verify import verify_dataset
from flat_tokens.writer import create_split, write_file, write_root
from tokenmill.cli.failures import MACHINE, MEMORY, exit_code_of, one_line
from tokenmill.cli.progress import Progress, Stage
from tokenmill.engines.choose import open_engine
from tokenmill.engines.job import hand_out
from tokenmill.engines.tasks import TaskPool
from tokenmill.inputs.kinds import STANDARD_INPUT, markup_note
from tokenmill.inputs.marked_records import MARKED_FORMATS
from tokenmill.inputs.source_list import Source, SourceList
from tokenmill.inputs.sources import recorded_path, refuse, search_sources
from tokenmill.inputs.standard_input import spool
from tokenmill.stores import is_url
from tokenmill.stores.apart import overlap
from tokenmill.stores.durability import sync_in_background

# In format 2 each Zarr chunk is a file. Few file systems can hold many more than this.
MAX_CHUNK_FILES = 50_000_000
MAX_WARNINGS = 8  # in the status file
TOKENIZER_NAME = "tokenizer.json"
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
        progress, clock, status = context.progress, context.clock, partial(_write_status, context, work)
        with progress.stage("encode", context.job.plan.total_bytes, status) as stage:
            work.encode(stage)
        clock.lap("encode")
        with progress.stage("merge", work.run_bytes, status) as stage:
            work.merge(stage)
        files = _write_metadata(context, work.ledger)
        clock.lap("merge")
        _verify(context, work.ledger, files, status)
        clock.lap("verify")
        context.workspace.publish()
        clock.lap("publish")
        return _summarize(context, work, files)


def encode_share(options: ConvertOptions, executor: Any = None) -> int:
    """Encode a share of the corpus, as task `options.task_index` of `options.task_count` in a job array.

    Return the number of its text chunks. A later `convert` with the same options, except these two, merges the shares.
    """
    if options.share is None:
        raise UsageError("task_count: required by encode_share")
    with _working(options, executor) as (context, work):
        plan, chunks = context.job.plan, context.job.plan.share(options.share)
        total_bytes = sum(map(plan.work_bytes, map(plan.chunk, chunks)))
        with context.progress.stage("encode", total_bytes, partial(_write_status, context, work)) as stage:
            work.encode(stage)
        context.workspace.log.flush()
    return len(chunks)


def dry_run(options: ConvertOptions) -> list[str]:
    """Return the lines of --dry-run: the inputs and an estimate from a sample. Write nothing and start no process."""
    if STANDARD_INPUT in options.inputs:
        raise UsageError("-: --dry-run cannot sample standard input. Pass a file instead.")
    open_workdir(options).check_output()
    return estimate_lines(prepare(options, Progress(options.progress)))


@contextmanager
def _working(options: ConvertOptions, executor: Any) -> Iterator[tuple[Context, EncodeAndMerge]]:
    """Find, plan, resume and start the workers. At the end stop the workers and release the work folder."""
    clock, progress, workspace = Clock(), Progress(options.progress), open_workdir(options)
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
        workspace.acquire()
        if STANDARD_INPUT in options.inputs:  # read last, because it can be read only once
            standard_input = spool(workspace.standard_input, options.input_format, options.storage_options)
            plan = make_plan(find_sources(options, progress, standard_input), options.text_chunk_bytes)
            setup = replace(setup, plan=plan, layout=layout_of(options, plan))
        if options.restart or not workspace.has_plan:  # else a part of the space is in use
            check_space(setup)
        plan = setup.plan
        if workspace.open(plan_record(plan, setup.source["source_sha256"], setup.recorded)):
            progress.note(f"resuming from {workspace.root}")
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
        shared = job if engine.inherits else job.for_others()
        key = hand_out(engine, max_tasks, shared, workspace.put_job, options.storage_options)
        clock.lap("start")
        context = Context(job, workspace, progress, clock, pool, key, warnings)
        work = EncodeAndMerge(context, _choose_threshold(context))
        recording.enter_context(work.noting_finished())
        yield context, work


def _choose_threshold(context: Context) -> int | None:
    """Return the hash that the documents of --validation-docs are below, or None without that option.

    This reads the whole corpus, unless an earlier run has recorded the result.
    """
    plan, workspace, count = context.job.plan, context.workspace, context.job.options.validation_docs
    if count is None:
        return None
    if (known := workspace.recorded.tasks.get(f"threshold-{count}")) is not None:
        return int(known["threshold"])
    smallest = SmallestHashes(count)
    choose = partial(smallest_hashes, key=context.job_key, count=count)
    chunks = plan.chunks() if count else iter(())
    with context.progress.stage("choose", plan.total_bytes) as stage:
        for chunk, hashes in context.pool.run(
            choose, chunks, context.window, plan.describe, stage.show_running
        ):
            smallest.add(hashes)
            stage.advance(plan.work_bytes(chunk))
    threshold = smallest.threshold()
    workspace.log.append([{"task": f"threshold-{count}", "threshold": threshold}])
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


def find_sources(
    options: ConvertOptions, progress: Progress, standard_input: Source | None = None
) -> SourceList:
    """Return the sources. Raise UsageError that lists all problems of inputs, tokenizer and output.

    standard_input: the copy of standard input, which is left out without one.
    """
    named: list[str | Path | None] = [*options.inputs, *options.validation, options.chat_template]
    with suppress(BadTokenizer):  # reported when the tokenizer is loaded
        named += files_of(Path(options.tokenizer))
    problem = overlap(options.output, (str(file) for file in named if file is not None))
    problems = [] if problem is None else [problem]
    inputs = [path for path in options.inputs if path != STANDARD_INPUT or standard_input is not None]
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
    paths = (source.path for source in found.sources if source.digest is None)
    if not problems and (problem := overlap(options.output, paths)):
        problems.append(problem)
    refuse([*problems, *found.problems])
    if standard_input is None:  # else the same was shown before
        if found.note:
            progress.note(found.note)
        if found.marked_up:
            progress.note(f"warning: {markup_note(found.marked_up)}")
    formats = {kind.format for kind in found.sources.kinds}
    is_whole = len(inputs) == len(options.inputs)
    others = formats - {"text", *MARKED_FORMATS}
    if options.has_mask and (others or (is_whole and not formats & MARKED_FORMATS)):
        flag = "--messages-field" if options.messages_field is not None else "--prompt-field"
        raise UsageError(
            f"{flag}: requires records in JSON Lines, Parquet, Arrow or CSV (got {', '.join(sorted(formats))}). "
            "Convert the inputs to JSON Lines, or pass --input-format jsonl."
        )
    return found.sources


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
        elif workspace.log.holds_work and (code in _RESUMABLE or isinstance(error, KeyboardInterrupt)):
            error.add_note(Advice(printable(" ".join(sentences))))
        raise


def _write_metadata(context: Context, ledger: Ledger) -> list[FileRecord]:
    """Write all files except the arrays' data, the manifest last. Return the records of all files."""
    ledger.check_whole()
    workspace, layout, has_mask = context.workspace, context.job.layout, context.job.options.has_mask
    tokenizer = context.job.tokenizer.canonical_json
    sha256 = hashlib.sha256(tokenizer).hexdigest()
    files, splits = [write_file(workspace.dataset, TOKENIZER_NAME, tokenizer)], {}
    if any(file.size for file, _ in ledger.quarantine):
        lines = quarantine_lines(workspace.shard_store, context.job.plan.sources, ledger.quarantine)
        files.append(write_file(workspace.dataset, QUARANTINE_NAME, lines))
    for split, counts in ledger.counts.items():
        sizes = counts.tokens, counts.sequences, counts.max_token_id
        files += create_split(workspace.dataset, split, *sizes, layout, has_mask=has_mask)
        splits[split] = SplitRecord(*sizes, counts.tokens - counts.not_trained if has_mask else None)
    files += ledger.files
    write_root(
        workspace.dataset,
        splits,
        files,
        layout,
        tokenizer={"path": TOKENIZER_NAME, "sha256": sha256, "fingerprint": sha256, **context.job.source},
        sources=_source_facts(context, ledger),
        options=_recorded_options(context, ledger),
        versions={"tokenmill": _core.__version__},
    )
    return files


def _recorded_options(context: Context, ledger: Ledger) -> dict[str, Any]:
    intake, counts = ledger.intake, ledger.counts
    facts = {
        **context.job.recorded,
        **context.job.ends.recorded(),
        "on_error": context.job.options.on_error,
        "documents": {split: own.documents for split, own in counts.items()},
        "empty_documents": {split: own.empty for split, own in counts.items()},
        "replaced": intake.replaced,
        "skipped": intake.skipped,
        "blank_lines": intake.blank,
        "with_special_tokens": intake.with_special,
    }
    if ledger.unreadable:
        facts["unreadable_files"] = len(ledger.unreadable)
    if intake.messages:
        facts |= {"messages": intake.messages, "dropped_messages": intake.dropped}
    return facts


def _source_facts(context: Context, ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Yield the manifest's facts about each source, one at a time: there may be a million."""
    for number, (source, counts) in enumerate(zip(context.job.plan.sources, ledger.sources, strict=True)):
        facts = {"path": recorded_path(source.name), "bytes": source.size_bytes}
        if source.version:
            facts["version"] = source.version
        if number in ledger.unreadable:
            facts["unreadable"] = ledger.unreadable[number]
        yield facts | {
            "split": source.split or "by hash",
            "kind": source.kind.name,
            **dict(zip(SOURCE_COUNTS, counts.tolist(), strict=True)),
        }


def _verify(
    context: Context, ledger: Ledger, files: list[FileRecord], watch: Callable[[Stage], None]
) -> None:
    """Read the dataset back, wait until the disk has it, and compare the counts.

    Raise StorageError for damage. The next run then reads all finished work back before it reuses it.
    """
    dataset, log = context.workspace.dataset, context.workspace.log
    stage = context.progress.stage("verify", sum(file.bytes for file in files), watch)

    def advance(done_bytes: int, _: int) -> None:
        # The total does not include the manifest.
        stage.advance(min(done_bytes, stage.total_bytes) - stage.done_bytes)

    syncing = sync_in_background(dataset)  # while verification reads the files from memory
    with stage:
        try:
            whole = dataset.absolute() if isinstance(dataset, Path) else dataset
            report = verify_dataset(whole, context.engine, advance)
            if (
                isinstance(dataset, Path) and read_manifest(dataset) is None
            ):  # once more, since it was read first
                raise DatasetError(f"{MANIFEST_NAME}: missing")
            report.require_ok()
        except BrokenExecutor as error:
            message = with_sentence(f"verification: {error}", "Run the same command to resume.")
            raise WorkerLost(message) from error
        except DatasetError as error:  # not an error of the input, which DatasetError would report
            log.append([{"task": DAMAGE}])
            log.flush()
            failed = f"{context.workspace.root}: verification failed: {error}"
            advice = "Check the disk, then run the same command again."
            raise StorageError(with_sentence(failed, advice)) from error
    syncing.result()
    both = ledger.counts["train"].plus(ledger.counts["validation"])
    if (report.token_count, report.seq_count) != (both.tokens, both.sequences):
        raise BrokenInvariant(f"verification: read {report}, but encoded {both}")


def _summarize(context: Context, work: EncodeAndMerge, files: list[FileRecord]) -> Summary:
    """Return the summary, and show warnings about the result."""
    ledger = work.ledger
    summary = Summary(
        options=context.job.options,
        tokenizer=context.job.tokenizer,
        sources=context.job.plan.sources,
        ends=context.job.ends,
        disk_bytes=sum(file.bytes for file in files),
        array_bytes=sum(file.bytes for file in ledger.files),
        splits=ledger.counts,
        intake=ledger.intake,
        shards=ledger.shard_count,
        reused_shards=work.reused,
        workers=context.engine.worker_count,
        seconds=context.clock.seconds,
        worker_seconds=work.seconds,
        unreadable=tuple(error for _, error in sorted(ledger.unreadable.items())),
        quarantine=QUARANTINE_NAME if any(file.path == QUARANTINE_NAME for file in files) else "",
    )
    for warning in warnings_of(summary):
        context.progress.note(f"warning: {warning}")
    return summary
