"""Count the distinct pretokens of files and texts, in blocks, in memory that is bounded.

The counts equal `reference.count_pretokens`: they depend neither on the number of threads, the order of the sources,
the size of the blocks nor on how often counts were spilled. For that a block ends only where the text may be cut
whatever follows (`bpe.pretoken_counts.text_blocks`). Sources are texts of their own: no pretoken spans two.

With a budget, counts that outgrow their share of it lie in files (`bpe.pretoken_counts.bounded_counter`); what comes
back is a `CountSet`, whose parts are merged when it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from bpe.errors import BadArgument, EnvironmentFailure, NotEnoughMemory, with_sentence
from bpe.normalizers import Normalizer, make_normalizer
from bpe.pretoken_counts.bounded_counter import BoundedCounter
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import CountedSource, CountsFacts, joined_sources
from bpe.pretoken_counts.memory import MemoryBudget, trim_memory
from bpe.pretoken_counts.records import Records, check_same_reading, read_as
from bpe.pretoken_counts.source_facts import TextDigest, read_source, unread_source
from bpe.pretoken_counts.sources import (
    StreamRest,
    file_of,
    kind_of_source,
    list_of,
    listed,
    path_of,
    spooled,
    total_bytes,
)
from bpe.pretoken_counts.stream_rest import read_again
from bpe.pretoken_counts.tally import Tally
from bpe.pretoken_counts.text_blocks import Reader, text_blocks
from bpe.pretoken_counts.workspace import Workspace
from bpe.pretokenizer import Pretokenizer
from bpe.progress import Progress
from tokenmill.inputs import utf8
from tokenmill.inputs.batch import Batch
from tokenmill.stores import NO_OPTIONS

if TYPE_CHECKING:
    from bpe.pretoken_counts.sources import Source
    from tokenmill.inputs.kinds import Kind

__all__ = [
    "CountingOptions",
    "PretokenCounts",
    "Progress",
    "count_pretokens",
    "count_sources",
]


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
    separator: str | None = None,
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
        separator=separator,
        storage_options=storage_options,
    )
    options.check()
    with Workspace() as workspace:
        of_documents = bool(options.text_separator)
        files = [spooled(source, input_format, of_documents, workspace) for source in list_of(sources)]
        note = None if progress is None else progress.note
        found = listed(files, input_format, storage_options=storage_options, note=note)
        counted = count_sources(found, options, progress)
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
        raise BadArgument("workspace: required with a budget")
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


class Counting:
    """The state of a count: the counter, the sources so far, and the sums."""

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
        self._pretokenizer = Pretokenizer.from_pattern(options.pattern)
        self._normalizer = make_normalizer(options.normalizer)
        self.counter = BoundedCounter(options, self._pretokenizer, self._normalizer, budget, workspace)
        if progress is not None and (note := self._pretokenizer.slow_note):
            progress.note(with_sentence(note, "Run count --executor process to use all cores."))
        self._specials = [token.encode() for token in options.special_tokens]
        self._done_bytes = self._text_bytes = 0
        self._tally = Tally()
        self._sources: list[CountedSource] = []

    @property
    def tally(self) -> Tally:
        """What there is to tell; complete behind `finish`."""
        return self._tally._replace(uncut=self.counter.uncut.found)

    def count(self, source: Source) -> None:
        """Count one source, or its beginning if `stop` says so; nothing of it if counting has stopped."""
        if self.stopped:
            self._sources.append(unread_source(source))
            return
        stop = self._options.stop
        kind = kind_of_source(source, self._options.input_format)
        if kind.format != "text" or self._options.text_separator:
            self._count_records(source, kind)
            return
        with ExitStack() as stack:
            file = file_of(source, kind)
            form = "" if file is None else read_as(file, self._options.rules)
            reader = stack.enter_context(Reader(source, self._options.invalid, file, form))
            path = path_of(source)
            # The rest of a file is one of documents; of a pipe the digest is that of its text.
            if isinstance(source, StreamRest) and (form or (path is not None and path.is_file())):
                check_same_reading(reader.where, source.digest, form)
            digest = self._begin(reader, source)
            if isinstance(source, StreamRest) and digest is None:
                self.stopped = True
                self._sources.append(unread_source(source))
                return
            in_document = reader.starts_in_document(self._specials)
            self.counter.uncut.begin_text()
            counted_to: int | None = reader.start  # None: something was replaced there
            replaced = 0
            blocks = stack.enter_context(
                closing(
                    text_blocks(
                        reader, self.counter.last_cut, self.counter.block_bytes, self.counter.held_limit
                    )
                )
            )
            try:
                for block in blocks:
                    in_document = self.counter.count_block(block, reader.where, in_document)
                    if digest is not None:
                        digest.add(block.text)
                    counted_to, replaced = block.position, reader.replaced
                    self.counter.make_room(0)
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
        self._tally = self._tally.plus(Tally(replaced))
        self._sources.append(read_source(source, reader, counted_to, self.stopped, digest))

    def _count_records(self, source: Source, kind: Kind) -> None:
        """Count the documents of a file of records, or of text; see `count`."""
        options, stop = self._options, self._options.stop
        with (
            Records(source, kind, options.rules, options.text_separator) as records,
            closing(records.documents()) as documents,
        ):
            before = source.counted_bytes if isinstance(source, StreamRest) else 0
            for found in documents:
                self.counter.uncut.begin_text()
                special_tokens = options.special_tokens if records.is_text else ()
                if isinstance(found, Batch):
                    self.counter.count_batch(found, records.file.shown, special_tokens)
                else:
                    size = self.counter.count_long(found, records.file.shown, special_tokens)
                    records.text_bytes += size
                self.counter.make_room(0)
                if self._progress is not None:
                    self._progress.update(self._done_bytes + records.used_bytes)
                if stop is not None and stop():
                    self.stopped = True
                    break
            self._text_bytes += records.text_bytes - before
            self._done_bytes += records.used_bytes if self.stopped else records.size_bytes
            if self._progress is not None:
                self._progress.update(self._done_bytes)
            self._tally = self._tally.plus(Tally(records.replaced, records.skipped))
            self._sources.append(records.counted(self.stopped))

    def _begin(self, reader: Reader, source: Source) -> TextDigest | None:
        """The digest to go on with, of a stream that may be stopped; None if that was asked for meanwhile.

        What was counted of a stream is read again.
        """
        stop = self._options.stop
        if isinstance(source, StreamRest):
            return read_again(reader, source, max(map(len, self._specials), default=0), stop)
        return TextDigest() if reader.status is None and stop is not None else None

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
            self.counter.documents,
            self._tally.replaced,
            complete=complete,
            sample=sample,
            sources=sources,
            normalizer=self._normalizer,
        )
        parts = self.counter.parts(facts, spill)
        self.tally.tell(self._progress, self._options.special_tokens)
        return CountSet(parts, facts)
