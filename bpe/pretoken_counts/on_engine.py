"""Count with tasks on an engine: text chunks become sorted runs, which are merged in a tree while others are counted.

The counts and facts equal the result of `count_sources` byte for byte, for any engine, workers and chunks, because sums
do not depend on the order and chunks are cut only where the text may be cut (bpe/pretoken_counts/count_tasks.py). The
driver merges the runs that are left when it reads the result.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from bpe.errors import BadArgument
from bpe.normalizers import make_normalizer
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.count_tasks import ChunkCounts, CountingJob, Scratch, count_chunk, merge_runs
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import CountedSource, CountsFacts
from bpe.pretoken_counts.reading import Tally
from bpe.pretoken_counts.sources import FileRange, Stream
from bpe.pretokenizer import Pretokenizer
from tokenmill.engines.choose import EngineOptions, open_engine
from tokenmill.engines.job import hand_out
from tokenmill.engines.tasks import SHOW_SECONDS, TaskPool
from tokenmill.inputs.chunks import Chunks, TextChunk
from tokenmill.inputs.source_list import SourceList

if TYPE_CHECKING:
    from bpe.pretoken_counts.counting_options import CountingOptions
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

    scratch: storage for sorted runs and the result, accessible to all workers.
    chunk_bytes: bytes of text per task; None: depends on the size of the text and the number of workers.
    memory_bytes: memory limit of a worker process; None: 1 GiB per task.
    notice: shows messages to the user.
    """

    engine: EngineOptions
    scratch: Scratch
    chunk_bytes: int | None = None
    memory_bytes: int | None = None
    notice: Notice = field(default=lambda text: None)


def count_on_engine(
    sources: Sequence[Source],
    options: CountingOptions,
    elsewhere: Elsewhere,
    progress: Progress | None = None,
) -> CountSet:
    """Return the counts of files and objects, stored as runs in the scratch.

    Raise BadArgument for sources that workers cannot open, EngineFailure or WorkerLost if the engine fails, and the
    errors of `count_sources` for the text. If several chunks have errors, the first to finish determines which one.
    """
    options.check()
    whole, scratch = _whole_files(sources), elsewhere.scratch
    files = SourceList(source.file for source in whole)
    engine = open_engine(elsewhere.engine, elsewhere.notice)
    if not engine.inherits:
        files = SourceList(
            file if file.version else file._replace(path=os.path.abspath(file.path))  # noqa: PTH100 - "./a" is "a"
            for file in files
        )
    chunks = _chunks(files, elsewhere, engine)
    job = CountingJob(
        chunks,
        replace(options, threads=1, storage_options=dict(options.storage_options)),
        scratch,
        elsewhere.memory_bytes,
    )
    pretokenizer = Pretokenizer.from_pattern(options.pattern)
    with TaskPool(engine, elsewhere.engine.retries, elsewhere.notice) as pool:
        key = hand_out(engine, max(1, chunks.chunk_count), job, scratch.put_job, options.storage_options)
        if progress is not None:  # after the workers were forked, because a bar may start a thread
            progress.begin("counting", chunks.total_bytes, "bytes")
            if note := pretokenizer.slow_note:
                progress.note(note)
        tree = _Tree(job, pool, key)
        for done_bytes in tree.count():
            if progress is not None:
                progress.update(done_bytes)
    tree.tally.report_to(progress)
    facts = CountsFacts(
        pretokenizer,
        tuple(options.special_tokens),
        tree.text_bytes,
        tree.documents,
        tree.tally.replaced,
        sources=tuple(
            CountedSource(
                source.full_name,
                file.size_bytes,
                file.size_bytes,
                file.mtime_ns,
            )
            for source, file in zip(whole, files, strict=True)
        ),
        normalizer=make_normalizer(options.normalizer),
    )
    parts = [scratch.open(run) for run in tree.runs]
    return CountSet(parts or [PretokenCounts.from_mapping({})], facts)


class _Tree:
    """Counts all chunks of a job, and merges `FAN_IN` runs of a level into one of the next level.

    runs: names of the runs that are left.
    """

    def __init__(self, job: CountingJob, pool: TaskPool, key: JobKey) -> None:
        self.text_bytes = self.documents = 0
        self.tally = Tally()
        self._job, self._pool, self._key = job, pool, key
        self._levels: list[list[str]] = []
        self._done_bytes = 0

    @property
    def runs(self) -> list[str]:
        return [run for level in self._levels for run in level]

    def count(self) -> Iterator[int]:
        """Run all tasks. Yield the number of bytes counted so far at intervals."""
        chunks = self._job.chunks
        left = chunks.chunks()
        shown = 0
        while True:
            room = 2 * self._pool.engine.worker_count - len(self._pool)
            for chunk in islice(left, max(0, room)):
                describe = partial(chunks.describe, chunk)
                self._pool.submit(chunk, describe, count_chunk, chunk, self._key, name=f"count-{chunk.index}")
            if not len(self._pool):
                break
            for task, result in self._pool.done(SHOW_SECONDS):
                self._take(task, result)
            running = sum(done for task, done in self._pool.running() if isinstance(task, TextChunk))
            shown = max(shown, self._done_bytes + running)
            yield min(shown, chunks.total_bytes)
        yield chunks.total_bytes

    def _take(self, task: TextChunk | _Merge, result: ChunkCounts | str) -> None:
        """Use the result of a task: add the run, and merge its level if that is full."""
        level = 0
        if isinstance(result, ChunkCounts):
            assert isinstance(task, TextChunk)
            self._done_bytes += self._job.chunks.work_bytes(task)
            self.text_bytes += result.text_bytes
            self.documents += result.documents
            self.tally = self.tally.plus(result.tally)
            if result.run is None:
                return
            run = result.run
        else:
            assert isinstance(task, _Merge)
            level, run = task.level, result
            self._job.scratch.delete(task.runs)
        while len(self._levels) <= level:
            self._levels.append([])
        runs = self._levels[level]
        runs.append(run)
        if len(runs) == FAN_IN:
            self._levels[level] = []
            merge = _Merge(level + 1, runs)
            describe = partial(str, f"merging {FAN_IN} sorted runs")
            self._pool.submit(merge, describe, merge_runs, runs, self._key, name=f"merge-{merge.level}")


class _Merge(NamedTuple):
    """A merge of runs into one run of a level."""

    level: int
    runs: list[str]


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
