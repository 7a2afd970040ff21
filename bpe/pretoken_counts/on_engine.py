"""Count with tasks on an engine: text chunks become sorted runs, which are merged in a tree while others are counted.

The counts and facts equal the result of `count_sources` byte for byte, for any engine, workers and chunks, because sums
do not depend on the order and chunks are cut only where the text may be cut (bpe/pretoken_counts/chunk_text.py). A
merge combines `FAN_IN` runs of one level of the tree. The last merges combine the runs that are left. A merge has one
task per range of keys, so that even the tasks of the last merge are short (bpe/pretoken_counts/runs.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from bpe.errors import BadArgument, BadCounts
from bpe.normalizers import make_normalizer
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.count_tasks import ChunkCounts, CountingJob, count_chunk, merge_range
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import CountedSource, CountsFacts
from bpe.pretoken_counts.runs import OpenRun, Run, RunFile, cut_in_ranges
from bpe.pretoken_counts.scratch import Scratch
from bpe.pretoken_counts.sources import file_of, kind_of_source, object_of, path_of
from bpe.pretoken_counts.tally import Tally
from bpe.pretokenizer import Pretokenizer
from tokenmill.engines.choose import EngineOptions, open_engine
from tokenmill.engines.job import hand_out
from tokenmill.engines.tasks import SHOW_SECONDS, TaskPool
from tokenmill.inputs.chunks import Chunks, TextChunk
from tokenmill.inputs.source_list import Source as File
from tokenmill.inputs.source_list import SourceList

if TYPE_CHECKING:
    from bpe.pretoken_counts.counting_options import CountingOptions
    from bpe.pretoken_counts.sources import Source
    from bpe.progress import Progress
    from tokenmill.engines.engine import Engine, Notice
    from tokenmill.engines.job import JobKey

FAN_IN: Final = 16
RANGE_BYTES: Final = 16 << 20  # of runs per merge task, which takes about a second
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
    """Return the counts of files and objects as one part, stored in the scratch.

    Raise BadArgument for sources that workers cannot open, EngineFailure or WorkerLost if the engine fails, and the
    errors of `count_sources` for the text. If several chunks have errors, the first to finish determines which one.
    """
    options.check()
    files, scratch = _files(sources, options), elsewhere.scratch
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
                file.shown if file.version else os.path.realpath(file.path),
                file.size_bytes,
                file.size_bytes,
                file.mtime_ns,
            )
            for file in files
        ),
        normalizer=make_normalizer(options.normalizer),
    )
    if tree.result is None:
        return CountSet([PretokenCounts.from_mapping({})], facts)
    return CountSet([OpenRun(tree.result, scratch.place, options.storage_options)], facts)


class _Merge:
    """A merge of runs into one run of a level of the tree. files: results per range of keys, None until finished."""

    def __init__(self, level: int, runs: Sequence[Run]) -> None:
        self.level, self.runs = level, runs
        self.ranges = cut_in_ranges(runs, RANGE_BYTES)
        self.files: list[RunFile | None] = [None] * len(self.ranges)

    def take(self, number: int, file: RunFile) -> Run | None:
        """Store the result of a range. Return the merged run after the last range, otherwise None."""
        self.files[number] = file
        files = tuple(file for file in self.files if file is not None)
        if len(files) < len(self.files):
            return None
        if sum(file.total for file in files) != sum(file.total for run in self.runs for file in run):
            raise BadCounts("scratch: sorted runs were damaged (their sums differ). Count again.")
        return files


class _MergeTask(NamedTuple):
    """One range of keys of a merge."""

    merge: _Merge
    number: int


class _Tree:
    """Counts all chunks of a job and merges their runs. result: the final run, None if nothing was counted."""

    def __init__(self, job: CountingJob, pool: TaskPool, key: JobKey) -> None:
        self.text_bytes = self.documents = 0
        self.tally = Tally()
        self.result: Run | None = None
        self._job, self._pool, self._key = job, pool, key
        self._levels: list[list[Run]] = [[]]
        self._chunks_left = job.chunks.chunk_count
        self._counting = self._done_bytes = 0

    def count(self) -> Iterator[int]:
        """Run all tasks. Yield the number of bytes counted so far at intervals."""
        chunks = self._job.chunks
        left = chunks.chunks()
        shown = 0
        while True:
            room = 2 * self._pool.engine.worker_count - len(self._pool)
            for chunk in islice(left, max(0, room)):
                self._begin(chunk)
            while (merge := self._next_merge()) is not None:
                describe = f"merging {len(merge.runs)} sorted runs"
                for number, wanted in enumerate(merge.ranges):
                    task = _MergeTask(merge, number)
                    name = f"merge-{merge.level}"
                    self._pool.submit(task, partial(str, describe), merge_range, wanted, self._key, name=name)
            if not len(self._pool):
                break
            for task, result in self._pool.done(SHOW_SECONDS):
                self._take(task, result)
            shown = max(shown, self._done_bytes + self._running_bytes())
            yield min(shown, chunks.total_bytes)
        yield chunks.total_bytes
        self.result = next((run for level in self._levels for run in level), None)

    def _begin(self, chunk: TextChunk) -> None:
        self._chunks_left -= 1
        self._counting += 1
        describe = partial(self._job.chunks.describe, chunk)
        self._pool.submit(chunk, describe, count_chunk, chunk, self._key, name=f"count-{chunk.index}")

    def _running_bytes(self) -> int:
        """Return the bytes counted by the tasks in flight."""
        return sum(done for task, done in self._pool.running() if isinstance(task, TextChunk))

    def _take(self, task: TextChunk | _MergeTask, result: ChunkCounts | RunFile) -> None:
        level = 0
        run: Run | None
        if isinstance(task, _MergeTask):
            assert isinstance(result, RunFile)
            level, run = task.merge.level, task.merge.take(task.number, result)
            if run is not None:
                self._job.scratch.delete(file.name for run in task.merge.runs for file in run)
        else:
            assert isinstance(result, ChunkCounts)
            self._counting -= 1
            self._done_bytes += self._job.chunks.work_bytes(task)
            self.text_bytes += result.text_bytes
            self.documents += result.documents
            self.tally = self.tally.plus(result.tally)
            run = None if result.run is None else (result.run,)
        if run is not None:
            while len(self._levels) <= level:
                self._levels.append([])
            self._levels[level].append(run)

    def _next_merge(self) -> _Merge | None:
        """Remove runs from the tree and return their merge: FAN_IN runs of one level or, at the end, the rest."""
        for number, runs in enumerate(self._levels):
            if len(runs) >= FAN_IN:
                self._levels[number] = runs[FAN_IN:]
                return _Merge(number + 1, runs[:FAN_IN])
        waiting = sum(map(len, self._levels))
        if self._chunks_left or self._counting or waiting < 2 or (waiting <= FAN_IN and len(self._pool)):
            return None
        group: list[Run] = []
        for number, runs in enumerate(self._levels):
            room = FAN_IN - len(group)
            group += runs[:room]
            self._levels[number] = runs[room:]
        return _Merge(len(self._levels), group)


def _files(sources: Sequence[Source], options: CountingOptions) -> SourceList:
    """Return the sources in the form that workers open."""
    files = SourceList()
    for source in sources:
        path, found = path_of(source), object_of(source)
        if isinstance(source, File) and found is not None:
            files.append(found)
            continue
        if path is None or not isinstance(source, (str, os.PathLike)) or not path.is_file():
            raise BadArgument(
                "inputs: workers can only read whole files and objects, but not pipes or samples. "
                "Leave --executor out."
            )
        file = file_of(source, kind_of_source(source, options.input_format))
        assert file is not None
        files.append(file)
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
