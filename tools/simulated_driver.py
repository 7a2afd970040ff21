"""Measure the parent process of a conversion with tasks that return at once and results of realistic size.

    python tools/simulated_driver.py [--tasks 1000000] [--workers 500] [--zarr-format 3]

Only the engine is simulated: tasks end in random order. The ledger, the log on the disk, the submission of tasks and
the manifest are the real code. The output gives processor seconds per GB of text, tasks per second, memory per task and
the size of the log. `scripts/bench conversion` measures the parent with real files.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from bpe.tokenizer import Tokenizer
from convert import ConvertOptions
from convert.chat_rules import intake_rules
from convert.document_ends import document_ends
from convert.driver.context import Context
from convert.driver.finish import save_tokenizer, write_metadata
from convert.driver.resume import resume
from convert.driver.schedule import EncodeAndMerge
from convert.encode.encode_task import ChunkResult
from convert.encode.job import Clock
from convert.planning.plan import ShardId, TextChunk, make_plan
from convert.planning.plan_record import plan_record
from convert.shards.merge import MergeTask, WrittenFiles
from convert.shards.shard import BLOCK_BYTES, IntakeCounts, ShardRecord, SourceCounts, SplitCounts
from convert.workdir.store import open_workdir
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord
from tokenmill.cli.progress import Progress
from tokenmill.engines.engine import Engine
from tokenmill.engines.job import JobKey
from tokenmill.engines.tasks import TaskPool
from tokenmill.inputs.source_list import Source, SourceList

CHUNK_BYTES = 32 << 20
TOKENS, VALIDATION_TOKENS = 7_900_000, 40_000  # tokens of an English text chunk
SEQUENCES = 7_000
FILES_OF_SOURCES = 1000


class SimulatedEngine(Engine):
    """Completes some of the running tasks, in random order, whenever it is polled."""

    def __init__(self, workers: int, results: Results) -> None:
        self._workers, self._results = workers, results
        self._waiting: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self._rng = random.Random(0)
        self.tasks = 0

    @property
    def worker_count(self) -> int:
        """See Engine."""
        return self._workers

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See Engine."""
        future: Future[Any] = Future()
        self._waiting.append((future, fn, args))
        self.tasks += 1
        return future

    def check(self) -> None:
        """See Engine."""
        for _ in range(min(len(self._waiting), max(1, self._workers // 10))):
            place = self._rng.randrange(min(len(self._waiting), self._workers))
            self._waiting[place], self._waiting[-1] = self._waiting[-1], self._waiting[place]
            future, function, arguments = self._waiting.pop()
            future.set_result(self._results.of(function, *arguments))


class Results:
    """The results of simulated tasks."""

    def __init__(self, layout: ArrayLayout) -> None:
        self._layout = layout
        self._rng = random.Random(1)

    def of(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if isinstance(function, partial):  # encode_chunk
            return ChunkResult((self._record(function.args[0]),), {"encode": 0.1})
        return [self._files(arguments[0])]

    def _record(self, chunk: TextChunk) -> ShardRecord:
        held_out = round(SEQUENCES * VALIDATION_TOKENS / TOKENS)
        train = SplitCounts(SEQUENCES, 0, SEQUENCES, TOKENS, 50_000)
        validation = SplitCounts(held_out, 0, held_out, VALIDATION_TOKENS, 50_000)
        sizes = ((4 * TOKENS, 8 * SEQUENCES), (4 * VALIDATION_TOKENS, 8 * held_out))
        digests = tuple(
            tuple(self._rng.randbytes(8 * -(-size // BLOCK_BYTES)).hex() for size in own) for own in sizes
        )
        return ShardRecord(
            ShardId(chunk.index),
            train,
            validation,
            digests,
            (SourceCounts(0, SEQUENCES, TOKENS, held_out, VALIDATION_TOKENS),),
            IntakeCounts(SEQUENCES + held_out, chunk.text_bytes),
            True,
            chunk.text_bytes,
        )

    def _files(self, task: MergeTask) -> WrittenFiles:
        is_tokens = task.array == "tokens"
        unit = self._layout.write_unit_tokens if is_tokens else self._layout.write_unit_starts
        name = "encoded_tokens" if is_tokens else "seq_starts"
        prefix = "c/" if self._layout.zarr_format == 3 else ""
        files = []
        for first in range(task.first, task.first + task.item_count, unit):
            path = f"{task.split}/{name}/{prefix}{first // unit}"
            files.append(FileRecord(path, 1_200_000, f"{self._rng.getrandbits(64):016x}"))
        return WrittenFiles.pack(files)


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=1_000_000, help="number of text chunks")
    parser.add_argument("--workers", type=int, default=500)
    parser.add_argument("--zarr-format", type=int, default=3, choices=(2, 3))
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        measure(folder, asked.tasks, asked.workers, asked.zarr_format)
    finally:
        shutil.rmtree(folder)


def measure(folder: Path, chunks: int, workers: int, zarr_format: int) -> None:
    """Print the cost of a conversion for the parent process."""
    size = chunks * CHUNK_BYTES // FILES_OF_SOURCES
    sources = SourceList(Source(f"corpus/{n:06}.txt", size, 1) for n in range(FILES_OF_SOURCES))
    plan = make_plan(sources, CHUNK_BYTES)
    layout = ArrayLayout.create(zarr_format=zarr_format)
    options = ConvertOptions(("corpus",), "tokenizer.json", str(folder / "out.zarr"), zarr_format=zarr_format)
    tokenizer = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [])
    ends = document_ends(options, tokenizer)
    workspace = open_workdir(options)
    workspace.open(plan_record(plan, "0" * 64, {}))
    engine = SimulatedEngine(workers, Results(layout))
    context = Context(
        options,
        tokenizer,
        {},
        ends,
        intake_rules(options, tokenizer),
        plan,
        layout,
        workspace,
        Progress(),
        Clock(),
        engine,
        JobKey("1"),
        TaskPool(engine),
        deque(),
    )
    before, started = resident_bytes(), time.process_time()
    recorded = workspace.log.recorded()
    work = EncodeAndMerge(context, recorded, resume(context, recorded))
    with context.progress.stage("encode", plan.total_bytes) as stage:
        work.encode(stage)
    with context.progress.stage("merge", work.run_bytes) as stage:
        work.merge(stage)
    seconds = time.process_time() - started
    work.ledger.check_whole()
    used = resident_bytes() - before
    started = time.process_time()
    saved = save_tokenizer(tokenizer, workspace.dataset, {})
    files = write_metadata(context, work.ledger, saved)
    manifest_seconds = time.process_time() - started
    gigabytes = plan.total_bytes / 1e9
    log_bytes = Path(workspace.place, "journal").stat().st_size
    print(
        f"zarr format {zarr_format}, {chunks:,} text chunks of {CHUNK_BYTES >> 20} MiB ({gigabytes:,.0f} GB), "
        f"{workers} workers, {engine.tasks:,} tasks, {len(files):,} files\n"
        f"  driver    {seconds:.1f} s of processor time, {seconds / gigabytes:.4f} s a GB of text, "
        f"{engine.tasks / seconds:,.0f} tasks/s\n"
        f"  manifest  {manifest_seconds:.1f} s, {manifest_seconds / gigabytes:.4f} s a GB\n"
        f"  memory    {used / 1e6:,.0f} MB, {used / chunks:.0f} bytes a text chunk, "
        f"{used / engine.tasks:.0f} a task\n"
        f"  log       {log_bytes / 1e6:,.0f} MB, {log_bytes / chunks:.0f} bytes a text chunk"
    )


if __name__ == "__main__":
    main()
