"""The tasks of `count` on workers: text chunk -> sorted run, and several runs -> their sum.

A run is a counts file without facts in the scratch: a folder that all workers can access, or a store. Tasks are pure
(tokenmill/engines/engine.py): each attempt writes one file with a unique name, complete or not at all, and only the
files of attempts that returned to the driver are read. A late attempt leaves no file: In a removed folder, it cannot
create one. In a store, the driver deletes the object "alive" before it lists and deletes the others. An attempt looks
for this object after writing its file, and deletes the file if the object no longer exists.

A chunk of plain text searches only its own bytes for an offset at which the text may be cut. Its text extends from this
offset to the cut of the next chunk that has one. The texts of all chunks therefore cover the source exactly once,
whichever process computes them. A chunk of records, or of text that is read as documents, counts the ones that begin in
its bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from bpe.pretoken_counts.counting import Counting
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.counts_facts import Arrays, CountsFacts
from bpe.pretoken_counts.counts_file import CountsFile, write_counts_file
from bpe.pretoken_counts.memory import MemoryBudget, used_bytes
from bpe.pretoken_counts.merging import merge_sorted
from bpe.pretoken_counts.reading import Tally
from bpe.pretoken_counts.sources import FileRange
from bpe.pretoken_counts.workspace import PREFIX, Workspace
from tokenmill.engines.job import JobKey, find_job, require_open
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs._core import validate_utf8
from tokenmill.inputs.chunks import Chunks, TextChunk
from tokenmill.inputs.source_list import Piece
from tokenmill.inputs.source_list import Source as File
from tokenmill.inputs.sources import require_unchanged
from tokenmill.inputs.utf8 import cut_character_bytes
from tokenmill.stores import RandomFile, StorageOptions, StoreNotFound, is_url, open_store, read_at

# Memory per task for counts and for text that cannot be cut. Counts beyond it are spilled to the worker's disk.
TASK_BYTES = 1 << 30
_ALIVE: Final = "alive"
_WINDOW_BYTES: Final = 64 << 10
_CONTINUATION: Final = bytes(range(0x80, 0xC0))


class Scratch(NamedTuple):
    """A folder or store for the runs of one count.

    place: path or URL of a folder that only this run uses.
    options: options of the store.
    """

    place: str
    options: tuple[tuple[str, str], ...] = ()

    def keep(self, blocks: Iterator[Arrays]) -> str:
        """Write sorted counts as a run and return its name."""
        name = f"{os.urandom(12).hex()}.run"
        path, options = f"{self.place}/{name}", dict(self.options)
        store = open_store(self.place, options)
        try:
            write_counts_file(path, blocks, CountsFacts(), temporary=True, storage_options=options)
            if is_url(self.place):
                store.head(_ALIVE)
        except BaseException as error:
            if isinstance(error, StoreNotFound) or not is_url(self.place):
                store.delete([name])
            raise
        return name

    def open(self, name: str) -> CountsFile:
        """Open a run."""
        return CountsFile(f"{self.place}/{name}", dict(self.options))

    def delete(self, names: Iterable[str]) -> None:
        """Remove runs that were merged."""
        open_store(self.place, dict(self.options)).delete(names)

    def put_job(self, data: bytes) -> str:
        """Store the job for all workers. Return its path or URL."""
        open_store(self.place, dict(self.options)).put("job", data)
        return f"{self.place}/job"


@contextmanager
def scratch_in(folder: str | None, options: StorageOptions, workspace: Workspace) -> Iterator[Scratch]:
    """Open a scratch in a folder or at a URL, and remove it at the end. folder: None for the workspace."""
    if folder is None or not is_url(folder):
        own = workspace if folder is None else workspace.enter_context(Workspace(folder))
        yield Scratch(str(own.folder.absolute()))
        return
    place = f"{folder.rstrip('/')}/{PREFIX.lstrip('.')}{os.urandom(8).hex()}"
    store = open_store(place, options)
    store.put(_ALIVE, b"")
    try:
        yield Scratch(place, tuple(sorted(options.items())))
    except BaseException:
        with suppress(Exception):  # the original error is raised
            _remove(place, options)
        raise
    _remove(place, options)


def _remove(place: str, options: StorageOptions) -> None:
    store = open_store(place, options)
    store.delete([_ALIVE])
    store.delete([entry.key for entry in store.list()])


class CountingJob(NamedTuple):
    """The job of counting text chunks.

    memory_bytes: memory limit of a worker process; None: TASK_BYTES more than it uses when a task begins.
    """

    chunks: Chunks
    options: CountingOptions
    scratch: Scratch
    memory_bytes: int | None

    def prepare(self) -> None:
        """See `tokenmill.engines.job.Job`."""
        if not is_url(self.scratch.place):
            require_open(Path(self.scratch.place))


class ChunkCounts(NamedTuple):
    """The counts of text chunks. run: None if a chunk has no pretokens."""

    run: str | None = None
    text_bytes: int = 0
    documents: int = 0
    tally: Tally = Tally()

    def plus(self, other: ChunkCounts) -> ChunkCounts:
        """Return the sums, without a run."""
        tally = self.tally.plus(other.tally)
        return ChunkCounts(None, self.text_bytes + other.text_bytes, self.documents + other.documents, tally)


class _Steps:
    """Reports the progress of a task to the engine."""

    def begin(self, phase: str, total: int | None, unit: str) -> None:
        """See Progress."""

    def update(self, done: int) -> None:
        """See Progress."""
        take_step(done)

    def note(self, text: str) -> None:
        """See Progress. The driver shows notes for all chunks together."""


def count_chunk(chunk: TextChunk, key: JobKey) -> ChunkCounts:
    """Count the text that starts in a text chunk. A compressed file belongs to the chunk in which it starts.

    Raise InvalidText with the file and byte, BadInput for a bad record or a file that changed, and NotEnoughMemory for
    text that cannot be cut.
    """
    job: CountingJob = find_job(key)
    budget = MemoryBudget(job.memory_bytes or used_bytes() + TASK_BYTES, job.memory_bytes is not None)
    with Workspace() as workspace:
        counting = Counting(job.options, _Steps(), budget, workspace)
        for piece in job.chunks.pieces(chunk):
            source = job.chunks.sources[piece.source_index]
            part = _part(source, piece, counting, job)
            if part is None:
                continue
            counting.count(part)
            if not source.version:
                require_unchanged(source, os.stat(source.path))  # noqa: PTH116 - called for up to a million files
        counted = counting.finish("")
        run = job.scratch.keep(_steps(counted.blocks(workspace))) if counted.most_distinct else None
        return ChunkCounts(run, counted.facts.text_bytes, counted.facts.documents, counting.tally)


def merge_runs(names: Iterable[str], key: JobKey) -> str:
    """Merge several runs into one and return its name. The memory depends only on the number of runs."""
    scratch: Scratch = find_job(key).scratch
    return scratch.keep(_steps(merge_sorted([scratch.open(name).blocks() for name in names])))


def _steps(blocks: Iterator[Arrays]) -> Iterator[Arrays]:
    for block in blocks:
        take_step()
        yield block


def _part(source: File, piece: Piece, counting: Counting, job: CountingJob) -> FileRange | None:
    """Return the part of a source that a chunk counts, or None. piece: the bytes of the source in the chunk."""
    size = source.size_bytes
    is_text = source.kind.format == "text" and not job.options.text_separator
    if not source.kind.is_divisible or (is_text and not counting.may_cut):
        return FileRange.whole(source) if piece.start == 0 else None
    if not is_text or (piece.start, piece.stop) == (0, size):
        return FileRange(source, piece.start, piece.stop)
    with source.open() as file:
        start = _cut(file, piece.start, piece.stop, counting)
        if start is None or start == size:
            return None
        begin, cut = piece.stop, None
        while begin < size and cut is None:
            stop = min(begin + job.chunks.chunk_bytes, size)
            cut, begin = _cut(file, begin, stop, counting), stop
        return FileRange(source, start, size if cut is None else cut)


def _cut(file: RandomFile, start: int, stop: int, counting: Counting) -> int | None:
    """Return an offset in (start, stop] to cut at, None if there is none. Return 0 at the beginning of the file.

    Windows that are not valid UTF-8 are skipped, so text with replaced bytes is cut only in valid windows.
    """
    if start == 0:
        return 0
    # A special token or character that begins before a window ends within this margin.
    margin = max(map(len, counting.specials), default=0) + 8
    window_bytes = max(_WINDOW_BYTES, 8 * margin)
    while start < stop:
        window = bytes(read_at(file, start, min(window_bytes, stop - start)))
        text = window.lstrip(_CONTINUATION)
        text = text[: len(text) - cut_character_bytes(text[-3:])]
        if validate_utf8(text) < 0 and (cut := counting.last_cut(text)) > margin:
            return start + len(window) - len(window.lstrip(_CONTINUATION)) + cut
        start += window_bytes - 2 * margin
    return None
