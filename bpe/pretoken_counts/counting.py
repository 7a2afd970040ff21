"""Count the distinct pretokens of files and texts, in blocks, in memory that is bounded.

The counts equal `reference.count_pretokens`: they depend neither on the number of threads, the order of the sources,
the size of the blocks nor on how often counts were spilled. For that a block ends only where the text may be cut
whatever follows (`bpe.pretoken_counts.text_blocks`). Sources are texts of their own: no pretoken spans two.

With a budget, counts that outgrow their share of it are written to a sorted file and counting starts afresh; what
comes back is a `CountSet`, whose parts are merged when it is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from bpe import _core
from bpe.encoding import END_OF_TEXT
from bpe.errors import BadArgument, EnvironmentFailure, NotEnoughMemory, UncoveredText
from bpe.normalizers import INPUT, Normalizer, make_normalizer
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.counts import PretokenCounts, add_mapping
from bpe.pretoken_counts.counts_facts import CountedSource, CountsFacts, joined_sources
from bpe.pretoken_counts.counts_file import CountsFile, write_counts_file
from bpe.pretoken_counts.memory import MemoryBudget, enough_limit, trim_memory, used_bytes
from bpe.pretoken_counts.records import Records, check_same_reading, read_as
from bpe.pretoken_counts.source_facts import TextDigest, read_source, unread_source
from bpe.pretoken_counts.sources import StreamRest, file_of, kind_of_source, listed, total_bytes
from bpe.pretoken_counts.stream_rest import read_again
from bpe.pretoken_counts.text_blocks import (
    MAX_BLOCK_BYTES,
    THREAD_BLOCK_BYTES,
    Block,
    HeldLimit,
    Reader,
    text_blocks,
)
from bpe.pretoken_counts.uncut_separator import UncutSeparators, uncut_note
from bpe.pretoken_counts.workspace import Workspace
from bpe.pretokenizer import Pretokenizer
from bpe.progress import Progress
from bpe.reference import cut_at_special_tokens
from bpe.threads import available_threads
from corpus import utf8
from corpus.long_line import LongLine
from corpus.sizes import counted
from stores import NO_OPTIONS

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bpe.pretoken_counts.counts_facts import Arrays
    from bpe.pretoken_counts.sources import Source
    from corpus.batch import Batch
    from corpus.kinds import Kind

__all__ = [
    "CountingOptions",
    "PretokenCounts",
    "Progress",
    "count_pretokens",
    "count_sources",
]

# The regex package is slow: this takes it a second or less, and what Python holds for it stays small.
PYTHON_BLOCK_BYTES: Final = 2 << 20
# What a thread counts into and sorts with (bpe/native/train/thread_local_counts.hpp, run_sorter.hpp).
THREAD_BYTES: Final = 10 << 20
SPILL_SHARE: Final = 8  # counts that take an eighth of what is free go to a file


def count_pretokens(
    sources: Iterable[Source],
    special_tokens: Sequence[str] = (),
    pattern: str | Pretokenizer = "gpt2",
    threads: int | None = None,
    invalid: utf8.Invalid = "error",
    progress: Progress | None = None,
    block_bytes: int | None = None,
    normalizer: Normalizer | Literal["NFC"] | None = None,
    input_format: str = "auto",
    text_field: str = "text",
    on_error: str = "fail",
    storage_options: Mapping[str, str] = NO_OPTIONS,
) -> PretokenCounts:
    """The pretokens of all sources with exact counts, in memory; special tokens cut the text and are not counted.

    sources: a str or path names a file, folder, glob or URL, of any kind that `convert` reads (with input_format,
    text_field, on_error and storage_options as there), bytes-like is a text, an open binary file is read to its end.
    pattern: a name or an expression for the `regex` package, which runs on one thread at some 10 MB/s and cuts blocks
    at special tokens only. threads None: one a core. invalid: "error" or "replace", as `bytes.decode` does. normalizer:
    what is done to the text between special tokens first.
    count_pretokens([b"a b a"]).as_dict() -> {b" a": 1, b" b": 1, b"a": 1}
    MissingInput names the files that are not there, InvalidText the file and byte, EnvironmentFailure a failed read.
    """
    options = CountingOptions(
        special_tokens,
        pattern,
        threads,
        invalid,
        block_bytes,
        normalizer=normalizer,
        input_format=input_format,
        text_field=text_field,
        on_error=on_error,
        storage_options=storage_options,
    )
    options.check()
    counted = count_sources(listed(sources, input_format, storage_options=storage_options), options, progress)
    (part,) = counted.parts
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
    """The counts of the sources: one part in memory or, if they outgrew the budget, files in the workspace.

    sample: what the sources are a sample of, for the facts. NotEnoughMemory for a text without a place to cut that
    outgrows the budget, EnvironmentFailure for what can't be read or spilled: `counted` of both has what they left.
    """
    options.check()
    if budget is not None and workspace is None:
        raise BadArgument("a budget needs a workspace to spill to")
    all_bytes = total_bytes(sources)
    counting = Counting(options, progress, budget, workspace)
    if progress is not None:
        progress.begin("counting", all_bytes, "bytes")
    left = iter(sources)
    try:
        for source in left:
            counting.count(source)
    except (EnvironmentFailure, NotEnoughMemory) as error:
        if counting.stopped:  # behind a block that is counted
            for source in left:
                counting.count(source)
            error.counted = counting.finish(sample, spill=False)
        raise
    counted = counting.finish(sample)
    del counting
    trim_memory()  # what comes next looks at what is left
    return counted


class Tally(NamedTuple):
    """The notices at the end of a count: U+FFFD put in, bad records left out, separators that did not cut."""

    replaced: int = 0
    skipped: int = 0
    uncut: int = 0

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(*map(int.__add__, self, other))

    def tell(self, progress: Progress | None, special_tokens: Sequence[str]) -> None:
        """A line for each that there is."""
        if progress is None:
            return
        if self.replaced:
            what = "byte sequence that is" if self.replaced == 1 else "byte sequences that are"
            progress.note(f"replaced by U+FFFD: {self.replaced:,} {what} not valid UTF-8")
        if self.skipped:
            progress.note(f"left out: {counted(self.skipped, 'bad record')}")
        if self.uncut and END_OF_TEXT not in special_tokens:
            progress.note(uncut_note(self.uncut))


class Counting:
    """The state of a count: the core's counter, what was spilled, and the sums."""

    def __init__(
        self,
        options: CountingOptions,
        progress: Progress | None,
        budget: MemoryBudget | None,
        workspace: Workspace | None,
    ) -> None:
        self.stopped = False
        self._options = options
        self._progress = progress
        self._workspace = workspace
        self._threads = options.threads or available_threads()
        self._pretokenizer = Pretokenizer.from_pattern(options.pattern)
        self._normalizer = make_normalizer(options.normalizer)
        self._preparation = self._pretokenizer.preparation(self._normalizer)
        normalizer = self._preparation.core if self._preparation is not None else None
        automaton = self._pretokenizer.automaton
        if self._preparation is not None and normalizer is None:
            automaton = None  # what Python normalizes, it cuts
        self._in_python = automaton is None
        if progress is not None and (note := self._pretokenizer.slow_note):
            progress.note(f"{note}; count --executor process counts on all cores")
        self._specials = [token.encode() for token in options.special_tokens]
        self._automaton, self._core_normalizer = automaton, normalizer
        self._counter = _core.PretokenCounter(automaton)
        self._counter.set_normalizer(normalizer)
        self._block_bytes = options.block_bytes or min(self._threads * THREAD_BLOCK_BYTES, MAX_BLOCK_BYTES)
        if self._in_python:
            self._block_bytes = min(self._block_bytes, PYTHON_BLOCK_BYTES)
        self._spill_bytes: int | None = None
        self._held_limit: HeldLimit | None = None
        if budget is not None:
            free = budget.free_bytes
            self._threads = max(1, min(self._threads, free // (4 * THREAD_BYTES)))
            # A block of short pretokens grows the counts by up to 15 times its size, and handing them over takes as
            # much again: (1/SPILL_SHARE + 15/128) * 2 = 0.48 of what is free, and the buffers. The threads' tables are
            # given up before.
            self._block_bytes = max(1 << 16, min(self._block_bytes, free // 128))
            self._spill_bytes = free // SPILL_SHARE
            self._held_limit = self._held_limit_of(free)
        self._done_bytes = self._text_bytes = self._replaced = self._documents = self._skipped = 0
        self._uncut = UncutSeparators(self._pretokenizer)
        self._sources: list[CountedSource] = []
        self._runs: list[PretokenCounts | CountsFile] = []

    @property
    def tally(self) -> Tally:
        """What there is to tell; complete behind `finish`."""
        return Tally(self._replaced, self._skipped, self._uncut.found)

    @property
    def may_cut(self) -> bool:
        """Whether places to cut can be found without the text before: of special tokens that do not share bytes."""
        firsts = {token[0] for token in self._specials}
        if any(byte in firsts for token in self._specials for byte in token[1:]):
            return False
        if self._options.invalid == "replace" and any(
            "\ufffd" in token for token in self._options.special_tokens
        ):
            return False
        return bool(self._specials) or self._automaton is not None

    def _held_limit_of(self, free_bytes: int) -> HeldLimit:
        """What may be held: text lies in the two buffers, and with its pretokens in two of the counter's places.

        Beside it are the threads' tables. An expression sees it as characters of 4 bytes.
        """
        used = used_bytes()

        def memory_for(held_bytes: int) -> str:
            if self._in_python:
                return enough_limit(used + 16 * held_bytes)
            threads = self._options.threads or available_threads()
            return enough_limit(used + held_bytes * 13 // 4 + threads * THREAD_BYTES + (4 << 20))

        room = free_bytes - self._threads * THREAD_BYTES - (2 << 20)
        return HeldLimit(free_bytes // 16 if self._in_python else room * 4 // 13, memory_for)

    def count(self, source: Source) -> None:
        """Count one source, or its beginning if `stop` says so; nothing of it if counting has stopped."""
        if self.stopped:
            self._sources.append(unread_source(source))
            return
        stop = self._options.stop
        kind = kind_of_source(source, self._options.input_format)
        if kind.format != "text":
            self._count_records(source, kind)
            return
        with ExitStack() as stack:
            file = file_of(source, kind)
            form = "" if file is None else read_as(file, self._options.rules)
            reader = stack.enter_context(Reader(source, self._options.invalid, file, form))
            if form and isinstance(source, StreamRest):
                check_same_reading(reader.where, source.digest, form)
            digest = self._begin(reader, source)
            if isinstance(source, StreamRest) and digest is None:
                self.stopped = True
                self._sources.append(unread_source(source))
                return
            in_document = reader.starts_in_document(self._specials)
            self._uncut.begin_text()
            counted_to: int | None = reader.start  # None: something was replaced there
            replaced = 0
            blocks = stack.enter_context(
                closing(text_blocks(reader, self.last_cut, self._block_bytes, self._held_limit))
            )
            try:
                for block in blocks:
                    self._make_room(block.text.nbytes)
                    in_document = self._count_block(block, reader.where, in_document)
                    self._uncut.add_text(block.text)
                    if digest is not None:
                        digest.add(block.text)
                    counted_to, replaced = block.position, reader.replaced
                    self._make_room(0)
                    if self._progress is not None:
                        done = reader.used_bytes
                        if counted_to is not None and not form:
                            done = counted_to - reader.start
                        self._progress.update(self._done_bytes + done)
                    if counted_to is not None and stop is not None and stop():
                        self.stopped = True
                        break
                else:
                    counted_to, replaced = reader.start + reader.read_bytes, reader.replaced
                    # Ctrl-C ends the program at the other end of a pipe, too: this may not be the end of the text.
                    self.stopped = reader.status is None and stop is not None and stop()
            except (EnvironmentFailure, NotEnoughMemory):  # behind a block that is counted
                if counted_to is None:
                    raise
                self.stopped = True
                self._note(source, reader, counted_to, replaced, digest)
                raise
            assert counted_to is not None
            self._note(source, reader, counted_to, replaced, digest)
        if self._progress is not None:
            self._progress.update(self._done_bytes)

    def _note(
        self, source: Source, reader: Reader, counted_to: int, replaced: int, digest: TextDigest | None
    ) -> None:
        """Take a source for counted up to a byte of it."""
        counted_bytes = counted_to - reader.start
        self._text_bytes += counted_bytes
        self._done_bytes += reader.used_bytes if reader.file is not None else counted_bytes
        self._replaced += replaced
        self._sources.append(read_source(source, reader, counted_to, self.stopped, digest))

    def _count_records(self, source: Source, kind: Kind) -> None:
        """Count the documents of a file of records; see `count`."""
        stop = self._options.stop
        with Records(source, kind, self._options.rules) as records, closing(records.documents()) as documents:
            before = source.counted_bytes if isinstance(source, StreamRest) else 0
            for found in documents:
                self._uncut.begin_text()
                if isinstance(found, LongLine):
                    records.text_bytes += self._count_long_line(found, records.file.shown)
                else:
                    self._count_batch(found, records.file.shown)
                self._make_room(0)
                if self._progress is not None:
                    self._progress.update(self._done_bytes + records.used_bytes)
                if stop is not None and stop():
                    self.stopped = True
                    break
            self._text_bytes += records.text_bytes - before
            self._done_bytes += records.used_bytes if self.stopped else records.size_bytes
            if self._progress is not None:
                self._progress.update(self._done_bytes)
            self._replaced += records.replaced
            self._skipped += records.skipped
            self._sources.append(records.counted(self.stopped))

    def _count_batch(self, batch: Batch, where: str) -> None:
        self._make_room(int(batch.offsets[-1]))
        if self._in_python:
            for start, stop in pairwise(batch.offsets.tolist()):
                text = str(memoryview(batch.text)[start:stop], "utf-8")
                self._count_in_python(text, where, 0, in_document=False, special_tokens=())
            return
        self._documents += self._counter.count_rows(batch.text, batch.offsets, self._threads)
        self._uncut.add_text(memoryview(batch.text))

    def _count_long_line(self, line: LongLine, where: str) -> int:
        """How much text the line has; only at its end it is known whether it is good, and counted if it is."""
        own = _core.PretokenCounter(self._automaton)
        own.set_normalizer(self._core_normalizer)
        held = bytearray()
        text_bytes = wanted = started = 0
        in_document = False
        for text in line.texts():
            held += text.data
            text_bytes += len(text)
            if self._in_python or len(held) < max(wanted, self._block_bytes):
                continue
            if self._held_limit is not None and max(len(held), own.counted_bytes()) > self._held_limit.bytes:
                raise NotEnoughMemory(
                    f"{where}: the line at byte {line.start} is longer than the memory allows; give --max-memory more"
                )
            wanted = 2 * len(held)
            if cut := self._counter.last_cut(held, ()):
                begun, in_document = own.count(memoryview(held)[:cut], (), self._threads, in_document)
                started += begun
                held = held[cut:]
                wanted = 0
        if line.fault or line.is_blank:
            return 0
        if self._in_python:
            self._count_in_python(held.decode(), where, 0, in_document=False, special_tokens=())
            return text_bytes
        begun, _ = own.count(held, (), self._threads, in_document)
        self._documents += started + begun
        self._make_room(own.counted_bytes())
        pretoken_bytes, ends, counts = own.drain()
        self._counter.add(pretoken_bytes.data, ends, counts)
        return text_bytes

    def _begin(self, reader: Reader, source: Source) -> TextDigest | None:
        """The digest to go on with, of a stream that may be stopped; None if that was asked for meanwhile.

        What was counted of a stream is read again.
        """
        stop = self._options.stop
        if isinstance(source, StreamRest):
            return read_again(reader, source, max(map(len, self._specials), default=0), stop)
        return TextDigest() if reader.status is None and stop is not None else None

    def last_cut(self, text: Buffer) -> int:
        """See `PretokenCounter.last_cut`."""
        return self._counter.last_cut(text, self._specials)

    def _count_block(self, block: Block, where: str, in_document: bool) -> bool:
        """Whether the block ends within a document; `in_document`: whether it goes on with one."""
        if self._in_python:
            utf8.check(block.text, where, block.base_bytes)
            return self._count_in_python(str(block.text, "utf-8"), where, block.base_bytes, in_document)
        try:
            started, in_document = self._counter.count(block.text, self._specials, self._threads, in_document)
        except ValueError:
            utf8.check(block.text, where, block.base_bytes)  # names the source and the byte in it
            raise
        self._documents += started
        return in_document

    def _count_in_python(
        self,
        text: str,
        where: str,
        base_bytes: int,
        in_document: bool,
        special_tokens: Sequence[str] | None = None,
    ) -> bool:
        """As `_count_block`; special_tokens: None: those of the options."""
        special_tokens = self._options.special_tokens if special_tokens is None else special_tokens
        counts: Counter[bytes] = Counter()
        done = 0
        for part, is_special in cut_at_special_tokens(text, special_tokens):
            if is_special:
                in_document = False
            elif part:
                self._documents += not in_document
                in_document = True
                normalizer = self._preparation
                normalized = part if normalizer is None else normalizer.apply(part.encode(), INPUT).decode()
                try:
                    counts.update(self._pretokenizer.iterate(normalized))
                except UncoveredText as error:
                    if normalizer is not None:
                        error = error.moved(normalizer.place_before(part.encode(), error.place) - error.place)
                    raise error.moved(base_bytes + len(text[:done].encode()), where) from None
            done += len(part)
        add_mapping(self._counter, counts)
        return in_document

    def _make_room(self, text_bytes: int) -> None:
        """Spill what is counted if it would outgrow its share with so much text more, be that one long pretoken."""
        if self._spill_bytes is None:
            return
        counted = self._counter.counted_bytes()
        if counted and counted + text_bytes > self._spill_bytes:
            self._spill()

    def _spill(self) -> None:
        assert self._workspace is not None
        counts = self._drained()
        try:
            run = self._workspace.new_file()
            write_counts_file(run, [counts], CountsFacts(), temporary=True)
            self._runs.append(CountsFile(run))
        except EnvironmentFailure:
            self._runs.append(
                PretokenCounts(*counts, CountsFacts())
            )  # the caller can keep them somewhere else
            raise

    def _drained(self) -> Arrays:
        drained = self._counter.drain()
        self._uncut.add_counts(drained)
        return drained

    def finish(self, sample: str, spill: bool = True) -> CountSet:
        """What was counted. spill: where counts lie in files, put the last ones there too."""
        sources = joined_sources(self._sources) if sample else tuple(self._sources)
        complete = not self.stopped or all(source.is_complete for source in sources)  # at the very end
        if complete:
            sources = tuple(replace(source, digest=None, text_bytes=None) for source in sources)
        facts = CountsFacts(
            self._pretokenizer,
            tuple(self._options.special_tokens),
            self._text_bytes,
            self._documents,
            self._replaced,
            complete=complete,
            sample=sample,
            sources=sources,
            normalizer=self._normalizer,
        )
        if not self._runs:
            self._runs.append(PretokenCounts(*self._drained(), facts))
        elif len(self._counter) and spill:
            self._spill()
        elif len(self._counter):
            self._runs.append(PretokenCounts(*self._drained(), CountsFacts()))
        self.tally.tell(self._progress, self._options.special_tokens)
        return CountSet(self._runs, facts)
