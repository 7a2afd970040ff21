"""Count the distinct pretokens of files and texts, block by block, in bounded memory.

The counts equal `reference.count_pretokens`. They do not depend on the number of threads, the order of the sources,
the size of the blocks, or spilling, because a block ends only where the text may be cut whatever follows
(`bpe.pretoken_counts.reading`). No pretoken spans two sources.

With a budget, counts that outgrow their share of the memory are written to a sorted file, and counting continues with
an empty table. The result is a `CountSet`, which merges its parts when it is read. If the core does not support the
pattern or the normalizer, text is split in Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.errors import BadArgument, NotEnoughMemory, UncoveredText, with_sentence
from bpe.normalizers import INPUT, make_normalizer
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.counts import CountSet, PretokenCounts, add_mapping
from bpe.pretoken_counts.counts_facts import CountedSource, CountsFacts, joined_sources
from bpe.pretoken_counts.counts_file import CountsFile, cut_in_blocks, write_counts_file
from bpe.pretoken_counts.memory import MemoryBudget, trim_memory
from bpe.pretoken_counts.reading import HeldLimit, Reader, Records, Tally, text_blocks
from bpe.pretoken_counts.sources import FileRange, found_sources
from bpe.pretoken_counts.workspace import Workspace
from bpe.pretokenizer import Pretokenizer
from bpe.progress import Progress
from bpe.reference import cut_at_special_tokens
from bpe.threads import available_threads
from tokenmill.inputs import utf8
from tokenmill.inputs._core import rows_with_special_tokens
from tokenmill.inputs.batch import Batch

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bpe.pretoken_counts.sources import Input, Source
    from tokenmill.inputs.text_documents import PiecedText

# A block takes a few milliseconds, which bounds the delay of Ctrl-C. It stays in the cache until it is counted.
THREAD_BLOCK_BYTES: Final = 2 << 20
MAX_BLOCK_BYTES: Final = 256 << 20
PYTHON_BLOCK_BYTES: Final = 2 << 20  # at most a second in the regex package
# Tables per thread for counting and sorting (bpe/native/train/thread_local_counts.hpp, sorted_run.hpp).
THREAD_BYTES: Final = 10 << 20
SPILL_SHARE: Final = 8  # counts are spilled when they take an eighth of the free memory


def count_pretokens(
    sources: Iterable[Input],
    special_tokens: Sequence[str] = (),
    pattern: str | Pretokenizer = "gpt2",
    threads: int | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> PretokenCounts:
    """Count the pretokens of all sources exactly, in memory.

    count_pretokens([b"a b a"]).as_dict() -> {b" a": 1, b" b": 1, b"a": 1}

    sources: texts and files. A str or path is a file, folder, glob or URL of a kind that `convert` reads. Bytes are a
        text. An open binary file is read to its end.
    progress: receives the phases, their progress, and notes (default: None).

    All other parameters are the fields of `CountingOptions`. An expression that the core cannot compile runs in the
    `regex` package, on one thread at about 10 MB/s.

    Raise MissingInput for files that do not exist, InvalidText with the file and byte, and EnvironmentFailure if a file
    cannot be read.
    """
    counting = CountingOptions(special_tokens, pattern, threads=threads, **options)
    counting.check()
    with Workspace() as workspace:
        found = found_sources(sources, counting, progress, workspace)
        (part,) = count_sources(found, counting, progress).parts
    assert isinstance(part, PretokenCounts)  # without a budget nothing is spilled
    return part


def count_sources(
    sources: Sequence[Source],
    options: CountingOptions,
    progress: Progress | None = None,
    budget: MemoryBudget | None = None,
    workspace: Workspace | None = None,
    sample: str = "",
) -> CountSet:
    """Return the counts of the sources: one part in memory, or files in the workspace if they outgrew the budget.

    sample: description of the sample for the facts, "" if the sources are not sampled.

    Raise NotEnoughMemory for text without a cut that outgrows the budget, EnvironmentFailure if a source cannot be read
    or counts cannot be spilled.
    """
    options.check()
    if budget is not None and workspace is None:
        raise BadArgument("workspace: required with a budget")
    counting = Counting(options, progress, budget, workspace)
    if progress is not None:
        sizes = [source.size_bytes for source in sources if source.size_bytes is not None]
        progress.begin("counting", sum(sizes) if len(sizes) == len(sources) else None, "bytes")
    for source in sources:
        counting.count(source)
    counted = counting.finish(sample)
    del counting
    trim_memory()  # the next step checks the free memory
    return counted


class Counting:
    """A count in progress.

    specials: special tokens to split the text at.
    tally: replaced bytes and skipped records so far.
    """

    def __init__(
        self,
        options: CountingOptions,
        progress: Progress | None,
        budget: MemoryBudget | None,
        workspace: Workspace | None,
    ) -> None:
        self.tally = Tally()
        self._options, self._progress, self._workspace = options, progress, workspace
        self.specials = [token.encode() for token in options.special_tokens]
        self._pretokenizer = Pretokenizer.from_pattern(options.pattern)
        self._normalizer = make_normalizer(options.normalizer)
        self._preparation = self._pretokenizer.preparation(self._normalizer)
        self._automaton = self._pretokenizer.automaton
        if self._preparation is not None and self._preparation.core is None:
            self._automaton = None  # text that Python normalizes is split in Python
        self._counter = self._new_counter()
        self._runs: list[CountsFile] = []
        self._documents = self._done_bytes = self._text_bytes = 0
        self._sources: list[CountedSource] = []
        if progress is not None and (note := self._pretokenizer.slow_note):
            progress.note(with_sentence(note, "Run count --executor process to use all cores."))
        in_python = self._automaton is None
        self._threads = threads = options.threads or available_threads()
        most = PYTHON_BLOCK_BYTES if in_python else MAX_BLOCK_BYTES
        self._block_bytes = min(options.block_bytes or threads * THREAD_BLOCK_BYTES, most)
        self._spill_bytes: int | None = None  # None: all counts stay in memory
        self._held_limit: HeldLimit | None = None
        if budget is not None:
            free = budget.free_bytes
            self._threads = max(1, min(threads, free // (4 * THREAD_BYTES)))
            # A block of short pretokens grows the counts by up to 15 times its size, and draining them takes as much
            # again: (1/SPILL_SHARE + 15/128) * 2 = 0.48 of the free memory, and the buffers. The threads' tables are
            # freed before.
            self._block_bytes = max(1 << 16, min(self._block_bytes, free // 128))
            self._spill_bytes = free // SPILL_SHARE
            # Held text is in both buffers, and together with its pretokens twice in the counter. For the regex package,
            # text consists of characters of 4 bytes.
            factor, per_thread = (16, 0) if in_python else (4, THREAD_BYTES)
            held_bytes = (free - self._threads * per_thread - (2 << 20)) // factor
            self._held_limit = HeldLimit(held_bytes, factor, threads * per_thread + (4 << 20))

    @property
    def may_cut(self) -> bool:
        """Whether cuts can be found without the preceding text. Special tokens that may overlap prevent this."""
        firsts = {token[0] for token in self.specials}
        if any(byte in firsts for token in self.specials for byte in token[1:]):
            return False
        if self._options.invalid == "replace" and any("\ufffd".encode() in token for token in self.specials):
            return False
        return bool(self.specials) or self._automaton is not None

    def last_cut(self, text: Buffer) -> int:
        """See `PretokenCounter.last_cut`."""
        return self._counter.last_cut(text, self.specials)

    def count(self, source: Source) -> None:
        """Count one source."""
        options = self._options
        if source.kind.format != "text" or options.text_separator:
            assert isinstance(source, FileRange)  # streams of documents were spooled
            specials = self.specials if source.kind.format == "text" else []
            with Records(source, options.rules, options.text_separator) as records:
                for found in records.documents():
                    if isinstance(found, Batch):
                        self._count_batch(found, source.name, specials)
                    else:
                        records.read_bytes += self._count_long(found, source.name, specials)
                    self._counted(records)
            self._finish_source(records)
            return
        with source.opened() as stream:
            reader = Reader(source, stream, options.invalid == "replace")
            in_document = reader.starts_in_document(self.specials)
            for text, start in text_blocks(reader, self.last_cut, self._block_bytes, self._held_limit):
                self._make_room(text.nbytes)
                in_document = self._add(text, self.specials, in_document, source.name, start)
                self._counted(reader)
        self._finish_source(reader)

    def finish(self, sample: str) -> CountSet:
        """Return the counts, and report the tally."""
        facts = CountsFacts(
            self._pretokenizer,
            tuple(self._options.special_tokens),
            self._text_bytes,
            self._documents,
            self.tally.replaced,
            sample=sample,
            sources=joined_sources(self._sources) if sample else tuple(self._sources),
            normalizer=self._normalizer,
        )
        self.tally.report_to(self._progress)
        if not self._runs:
            return CountSet([PretokenCounts(*self._counter.drain(), facts)], facts)
        if self._counter.counted_bytes():
            self._spill()
        return CountSet(self._runs, facts)

    def _new_counter(self) -> _core.PretokenCounter:
        counter = _core.PretokenCounter(self._automaton)
        counter.set_normalizer(None if self._preparation is None else self._preparation.core)
        return counter

    def _counted(self, read: Reader | Records) -> None:
        """Spill the counts if they are too large, and report the progress."""
        self._make_room(0)
        if self._progress is not None:
            self._progress.update(self._done_bytes + read.used_bytes)

    def _finish_source(self, read: Reader | Records) -> None:
        """Add the facts of a source that was read to its end."""
        facts = read.source.facts(read.read_bytes)
        self._sources.append(facts)
        self._text_bytes += read.read_bytes
        self._done_bytes += facts.counted_bytes
        self.tally = self.tally.plus(read.tally)
        if self._progress is not None:
            self._progress.update(self._done_bytes)

    def _make_room(self, text_bytes: int) -> None:
        """Spill the counts if `text_bytes` more could outgrow their share of the memory."""
        counted = 0 if self._spill_bytes is None else self._counter.counted_bytes()
        if self._spill_bytes is not None and counted and counted + text_bytes > self._spill_bytes:
            self._spill()

    def _spill(self) -> None:
        assert self._workspace is not None
        run = self._workspace.new_file()
        write_counts_file(run, cut_in_blocks(self._counter.drain()), CountsFacts(), temporary=True)
        self._runs.append(CountsFile(run))

    def _add(
        self, text: Buffer, specials: list[bytes], in_document: bool, where: str, start: int = 0
    ) -> bool:
        """Count a text and return whether it ends inside a document. in_document: whether it continues a document.

        Raise InvalidText with the offset of the byte, UncoveredText, or EnvironmentFailure if counts cannot be spilled.
        """
        if self._automaton is None:
            return self._add_in_python(text, specials, in_document, where, start)
        try:
            started, in_document = self._counter.count(text, specials, self._threads, in_document)
        except ValueError:
            utf8.check(text, where, start)  # names the source and the byte
            raise
        self._documents += started
        return in_document

    def _add_in_python(
        self, data: Buffer, specials: list[bytes], in_document: bool, where: str, start: int
    ) -> bool:
        utf8.check(data, where, start)
        prepare = self._preparation
        counts: Counter[bytes] = Counter()
        for part, is_special in cut_at_special_tokens(
            str(data, "utf-8"), [each.decode() for each in specials]
        ):
            section = part.encode()
            if is_special:
                in_document = False
            elif part:
                self._documents += not in_document
                in_document = True
                try:
                    prepared = part if prepare is None else prepare.apply(section, INPUT).decode()
                    counts.update(self._pretokenizer.iterate(prepared))
                except UncoveredText as error:
                    if prepare is not None:
                        error = error.moved(prepare.place_before(section, error.place) - error.place)
                    raise error.moved(start, where) from None
            start += len(section)
        add_mapping(self._counter, counts)
        return in_document

    def _count_batch(self, batch: Batch, where: str, specials: list[bytes]) -> None:
        """Count a batch of documents. specials: tokens to split them at."""
        self._make_room(int(batch.offsets[-1]))
        rows: NDArray[Any] = np.arange(len(batch))
        if self._automaton is not None:
            rows = rows_with_special_tokens(batch.text, batch.offsets, specials)
        for row in rows.tolist():
            start, stop = batch.offsets[row : row + 2].tolist()
            self._add(memoryview(batch.text)[start:stop], specials, False, where)
        if len(rows) < len(batch):
            batch = batch.without(rows) if len(rows) else batch
            self._documents += self._counter.count_rows(batch.text, batch.offsets, self._threads)

    def _count_long(self, found: PiecedText, where: str, specials: list[bytes]) -> int:
        """Count a long document if it is valid. Return its number of bytes, 0 if it is invalid."""
        counter, documents, held = self._counter, self._documents, bytearray()
        self._counter = self._new_counter()
        text_bytes = wanted = 0
        in_document = False
        for text in found.texts():
            held += text
            text_bytes += memoryview(text).nbytes
            if self._automaton is None or len(held) < max(wanted, self._block_bytes):
                continue
            limit = self._held_limit
            if limit is not None and max(len(held), self._counter.counted_bytes()) > limit.bytes:
                raise NotEnoughMemory(
                    f"{where}: byte {found.start}: document is longer than the memory limit allows. Raise "
                    "--max-memory."
                )
            wanted = 2 * len(held)
            if cut := self._counter.last_cut(held, specials):
                in_document = self._add(memoryview(held)[:cut], specials, in_document, where)
                held, wanted = held[cut:], 0
        if not found.fault:
            self._add(held, specials, in_document, where)
        own, self._counter = self._counter, counter
        if found.fault:
            self._documents = documents
            return 0
        self._make_room(own.counted_bytes())
        pretoken_bytes, ends, counts = own.drain()
        self._counter.add(pretoken_bytes.data, ends, counts)
        return text_bytes
