"""Count on any engine: the Python API of `tokenmill count --executor`.

Text chunks become sorted runs, which are merged in a tree while others are counted.

The counts and facts equal the result of `count_sources` byte for byte, for any engine, workers and chunks, because sums
do not depend on the order and chunks are cut only where the text may be cut (bpe/pretoken_counts/count_tasks.py). The
driver merges the runs that are left when it reads the result.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from bpe.errors import BadArgument, check_range
from bpe.normalizers import make_normalizer
from bpe.output_file import check_output
from bpe.pretoken_counts.count_tasks import ChunkCounts, CountingJob, count_chunk, merge_runs, scratch_in
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.counts import CountSet, PretokenCounts
from bpe.pretoken_counts.counts_facts import CountsFacts
from bpe.pretoken_counts.gathering import gather_counts
from bpe.pretoken_counts.memory import MemoryBudget
from bpe.pretoken_counts.sources import FileRange, Stream, list_of
from bpe.pretoken_counts.workspace import Workspace
from bpe.pretokenizer import Pretokenizer
from bpe.threads import available_threads
from tokenmill.engines.choose import EXECUTORS, RETRIES, EngineOptions, check_engine, open_engine
from tokenmill.engines.job import hand_out
from tokenmill.engines.tasks import SHOW_SECONDS, TaskPool
from tokenmill.inputs.chunks import Chunks, TextChunk
from tokenmill.inputs.source_list import SourceList
from tokenmill.stores import NO_OPTIONS, is_url, split_key

if TYPE_CHECKING:
    from bpe.pretoken_counts.sources import Source
    from bpe.progress import Progress
    from tokenmill.engines.engine import Engine, Notice
    from tokenmill.engines.job import JobKey

FAN_IN: Final = 16
# Large chunks, because their runs are smaller in relation to the text, but enough of them for all workers.
CHUNK_BYTES: Final = (4 << 20, 1 << 30)
_CHUNKS_A_WORKER: Final = 8
_CHUNKS_OF_A_CLUSTER: Final = 256  # at least, because workers may join later


@dataclass(frozen=True)
class Elsewhere:
    """An engine to count on.

    scratch: folder or URL for sorted runs, accessible to all workers; None for the workspace of the run.
    chunk_bytes: bytes of text per task; None: depends on the size of the text and the number of workers.
    memory_bytes: memory limit of a worker process; None: 1 GiB per task.
    notice: shows messages to the user.
    """

    engine: EngineOptions
    scratch: str | None
    chunk_bytes: int | None
    memory_bytes: int | None
    notice: Notice = lambda text: None

    def __post_init__(self) -> None:
        if self.chunk_bytes is not None:
            check_range("--text-chunk-bytes", self.chunk_bytes, 1, 1 << 40)

    def near(self, output: str) -> Elsewhere:
        """Return a copy with a default scratch next to an output at a URL, for workers that are not local."""
        if self.scratch is None and is_url(output) and self.engine.executor != "process":
            return replace(self, scratch=split_key(output)[0])
        return self


def count_files(
    inputs: Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    special_tokens: Sequence[str] = (),
    pattern: str | Pretokenizer = "gpt2",
    executor: str | Executor | Any = "process",
    *,
    workers: int | None = None,
    scheduler: str = "",
    address: str = "",
    scratch: str | os.PathLike[str] | None = None,
    text_chunk_bytes: int | None = None,
    max_memory: int | None = None,
    progress: Progress | None = None,
    retries: int = RETRIES,
    executor_options: Mapping[str, Any] = NO_OPTIONS,
    **options: Any,
) -> CountsFacts:
    """Count the pretokens of files, folders, globs and URLs into a counts file. Return the facts of the text.

    The file equals the output of `tokenmill count` on one machine, byte for byte.

    output: path or URL of the counts file.
    executor: "process"; "dask"; "ray"; a `distributed.Client`; or any executor of `concurrent.futures`. A client or
        executor stays open.
    workers: number of processes, or of tasks at a time of an executor (default: one per core).
    scheduler: address of the dask scheduler.
    address: address of the Ray cluster.
    scratch: folder that all workers can access, or URL, for sorted runs (default: next to the output).
    text_chunk_bytes: bytes of text per task (default: depends on the size of the inputs).
    max_memory: memory limit of a worker process in bytes (default: 1 GiB per task).
    retries: maximum number of retries of a task after transient errors.
    executor_options: arguments of dask's `Client.submit` or of Ray's `options`.

    All other parameters are the fields of `CountingOptions`.

    Raise the errors of `count_pretokens`, and EngineFailure or WorkerLost (exit code 5). A run that failed leaves no
    files.
    """
    counting = CountingOptions(special_tokens, pattern, **options)
    target = os.fspath(output)
    check_output(target, storage_options=counting.storage_options)
    try:
        check_engine(executor if isinstance(executor, str) else EXECUTORS[0], workers, scheduler, address)
    except ValueError as error:
        raise BadArgument(str(error)) from None
    check_range("--retries", retries, 0, 1000)
    engine = EngineOptions(
        executor,
        workers or available_threads(),
        scheduler,
        address,
        retries=retries,
        executor_options=executor_options,
    )
    place = None if scratch is None else os.fspath(scratch)
    elsewhere = Elsewhere(engine, place, text_chunk_bytes, max_memory).near(target)
    folder = None if is_url(target) else os.path.dirname(target) or "."  # noqa: PTH120 - keeps the path as given
    with Workspace(folder) as workspace:
        budget = MemoryBudget.of(None)
        counted = gather_counts(
            list_of(inputs), None, counting, progress, budget, workspace, elsewhere=elsewhere
        )
        counted.save(target, workspace, storage_options=counting.storage_options)
        return counted.facts


def count_on_engine(
    sources: Sequence[Source],
    options: CountingOptions,
    elsewhere: Elsewhere,
    workspace: Workspace,
    progress: Progress | None = None,
) -> CountSet:
    """Return the counts of files and objects, stored as runs in the scratch until the workspace is closed.

    Raise BadArgument for sources that workers cannot open, EngineFailure or WorkerLost if the engine fails, and the
    errors of `count_sources` for the text. If several chunks have errors, the first to finish determines which one.
    """
    options.check()
    whole = _whole_files(sources)
    scratch = workspace.enter_context(scratch_in(elsewhere.scratch, options.storage_options, workspace))
    files = SourceList(source.file for source in whole)
    engine = open_engine(elsewhere.engine, elsewhere.notice)
    if not engine.inherits:
        files = SourceList(
            file if file.version else file._replace(path=os.path.abspath(file.path))  # noqa: PTH100 - "./a" is "a"
            for file in files
        )
    chunks = _chunks(files, elsewhere, engine)
    options = replace(options, threads=1, storage_options=dict(options.storage_options))
    job = CountingJob(chunks, options, scratch, elsewhere.memory_bytes)
    pretokenizer = Pretokenizer.from_pattern(options.pattern)
    with TaskPool(engine, elsewhere.engine.retries, elsewhere.notice) as pool:
        key = hand_out(engine, max(1, chunks.chunk_count), job, scratch.put_job, options.storage_options)
        if progress is not None:  # after the workers were forked, because a bar may start a thread
            progress.begin("counting", chunks.total_bytes, "bytes")
            if note := pretokenizer.slow_note:
                progress.note(note)
        counted, runs = _count_chunks(job, pool, key, progress)
    counted.tally.report_to(progress)
    facts = CountsFacts(
        pretokenizer,
        tuple(options.special_tokens),
        counted.text_bytes,
        counted.documents,
        counted.tally.replaced,
        sources=tuple(source.facts() for source in whole),
        normalizer=make_normalizer(options.normalizer),
    )
    return CountSet([scratch.open(run) for run in runs] or [PretokenCounts.from_mapping({})], facts)


def _count_chunks(
    job: CountingJob, pool: TaskPool, key: JobKey, progress: Progress | None
) -> tuple[ChunkCounts, list[str]]:
    """Count all chunks of a job, and merge `FAN_IN` runs of a level into one of the next level.

    Return (the sums, the names of the runs that are left).
    """
    chunks, left = job.chunks, job.chunks.chunks()
    counted = ChunkCounts()
    levels: dict[int, list[str]] = defaultdict(list)
    done_bytes = shown = 0
    while True:
        for chunk in islice(left, max(0, 2 * pool.engine.worker_count - len(pool))):
            describe = partial(chunks.describe, chunk)
            pool.submit(chunk, describe, count_chunk, chunk, key, name=f"count-{chunk.index}")
        if not len(pool):
            break
        for task, result in pool.done(SHOW_SECONDS):
            if isinstance(task, TextChunk):
                done_bytes += chunks.work_bytes(task)
                counted, level, run = counted.plus(result), 0, result.run
            else:  # a merge
                (level, merged), run = task, result
                job.scratch.delete(merged)
            levels[level] += [] if run is None else [run]
            if len(levels[level]) == FAN_IN:
                names = levels.pop(level)
                describe = partial(str, f"merging {FAN_IN} sorted runs")
                pool.submit((level + 1, names), describe, merge_runs, names, key, name=f"merge-{level + 1}")
        if progress is not None:
            running = sum(done for task, done in pool.running() if isinstance(task, TextChunk))
            shown = max(shown, done_bytes + running)
            progress.update(min(shown, chunks.total_bytes))
    if progress is not None:
        progress.update(chunks.total_bytes)
    return counted, [run for runs in levels.values() for run in runs]


def _whole_files(sources: Sequence[Source]) -> list[FileRange]:
    files = []
    for source in sources:
        if isinstance(source, Stream) or source.size_bytes < source.file.size_bytes:
            raise BadArgument(
                "inputs: workers can only read whole files and objects, but not pipes or samples. "
                "Leave --executor out."
            )
        files.append(source)
    return files


def _chunks(files: SourceList, elsewhere: Elsewhere, engine: Engine) -> Chunks:
    starts = files.starts()
    size = elsewhere.chunk_bytes
    if size is None:
        wanted = _CHUNKS_A_WORKER * engine.worker_count
        if not engine.inherits:
            wanted = max(wanted, _CHUNKS_OF_A_CLUSTER)
        least, most = CHUNK_BYTES
        size = min(max(starts[-1] // wanted, least), most)
    return Chunks(files, size, starts)
