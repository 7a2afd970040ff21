"""Count the distinct pretokens of files and texts, block by block, in bounded memory.

The counts equal `reference.count_pretokens`. They do not depend on the number of threads, the order of the sources,
the size of the blocks, or spilling, because a block ends only where the text may be cut whatever follows
(`bpe.pretoken_counts.text_blocks`). No pretoken spans two sources.

With a budget, counts that outgrow their share of it are spilled to files (`bpe.pretoken_counts.bounded_counter`). The
result is a `CountSet`, which merges its parts when it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from bpe.errors import BadArgument, with_sentence
from bpe.normalizers import Normalizer, make_normalizer
from bpe.pretoken_counts.bounded_counter import BoundedCounter
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import CountedSource, CountsFacts, joined_sources
from bpe.pretoken_counts.memory import MemoryBudget, trim_memory
from bpe.pretoken_counts.reading import Reader, Records, text_blocks
from bpe.pretoken_counts.sources import FileRange, list_of, listed, spooled
from bpe.pretoken_counts.tally import Tally
from bpe.pretoken_counts.workspace import Workspace
from bpe.pretokenizer import Pretokenizer
from bpe.progress import Progress
from tokenmill.inputs import utf8
from tokenmill.inputs.batch import Batch
from tokenmill.stores import NO_OPTIONS

if TYPE_CHECKING:
    from bpe.pretoken_counts.sources import Input, Source

__all__ = [
    "CountingOptions",
    "PretokenCounts",
    "Progress",
    "count_pretokens",
    "count_sources",
]


def count_pretokens(
    sources: Iterable[Input],
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
        counted = count_sources(found_sources(sources, options, progress, workspace), options, progress)
    (part,) = counted.parts
    assert isinstance(part, PretokenCounts)  # without a budget nothing is spilled
    return part


def found_sources(
    inputs: Iterable[Input], options: CountingOptions, progress: Progress | None, workspace: Workspace
) -> list[Source]:
    """Return the files, objects and streams of the inputs. Streams of documents are copied to the workspace."""
    note = None if progress is None else progress.note
    found = listed(list_of(inputs), options.input_format, storage_options=options.storage_options, note=note)
    return [
        spooled(source, options.input_format, bool(options.text_separator), workspace) for source in found
    ]


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

    counter: holds the counts so far.
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
        self._options = options
        self._progress = progress
        self._pretokenizer = Pretokenizer.from_pattern(options.pattern)
        self._normalizer = make_normalizer(options.normalizer)
        self.counter = BoundedCounter(options, self._pretokenizer, self._normalizer, budget, workspace)
        if progress is not None and (note := self._pretokenizer.slow_note):
            progress.note(with_sentence(note, "Run count --executor process to use all cores."))
        self._specials = [token.encode() for token in options.special_tokens]
        self._done_bytes = self._text_bytes = 0
        self._sources: list[CountedSource] = []

    def count(self, source: Source) -> None:
        """Count one source."""
        options = self._options
        if source.kind.format != "text" or options.text_separator:
            assert isinstance(source, FileRange)  # streams of documents were spooled
            with Records(source, options.rules, options.text_separator) as records:
                self._count_documents(records)
                self._add(records)
            return
        with source.opened() as stream:
            reader = Reader(source, stream, options.invalid == "replace")
            self._count_text(reader)
            self._add(reader)

    def _count_text(self, reader: Reader) -> None:
        counter = self.counter
        in_document = reader.starts_in_document(self._specials)
        for block in text_blocks(reader, counter.last_cut, counter.block_bytes, counter.held_limit):
            in_document = counter.count_block(block, reader.source.name, in_document)
            counter.make_room(0)
            self._update(reader.used_bytes)

    def _count_documents(self, records: Records) -> None:
        special_tokens = self._options.special_tokens if records.source.kind.format == "text" else ()
        for found in records.documents():
            if isinstance(found, Batch):
                self.counter.count_batch(found, records.source.name, special_tokens)
            else:
                records.read_bytes += self.counter.count_long(found, records.source.name, special_tokens)
            self.counter.make_room(0)
            self._update(records.used_bytes)

    def _add(self, read: Reader | Records) -> None:
        """Add the facts of a source that was read to its end."""
        facts = read.facts()
        self._text_bytes += read.read_bytes
        self._done_bytes += facts.counted_bytes
        self._update(0)
        self.tally = self.tally.plus(read.tally())
        self._sources.append(facts)

    def _update(self, used_bytes: int) -> None:
        if self._progress is not None:
            self._progress.update(self._done_bytes + used_bytes)

    def finish(self, sample: str) -> CountSet:
        """Return the counts, and report the tally."""
        facts = CountsFacts(
            self._pretokenizer,
            tuple(self._options.special_tokens),
            self._text_bytes,
            self.counter.documents,
            self.tally.replaced,
            sample=sample,
            sources=joined_sources(self._sources) if sample else tuple(self._sources),
            normalizer=self._normalizer,
        )
        parts = self.counter.parts(facts)
        self.tally.report_to(self._progress)
        return CountSet(parts, facts)
