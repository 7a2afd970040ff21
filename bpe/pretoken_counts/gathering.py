"""The counts of inputs and of counts files together, whichever of them there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bpe.errors import BadArgument, BpeError
from bpe.normalizers import make_normalizer
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.counting import count_sources
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.counts_facts import CountsFacts, check_same_cut
from bpe.pretoken_counts.counts_inputs import counted_on, named_twice, still_to_count, tokens_not_cut_at
from bpe.pretoken_counts.memory import MemoryBudget
from bpe.pretoken_counts.records import check_same_cut_of_text
from bpe.pretoken_counts.sampling import sampled
from bpe.pretoken_counts.sources import listed, spooled
from bpe.pretoken_counts.workspace import Workspace
from bpe.pretokenizer import Pretokenizer
from bpe.progress import Progress

if TYPE_CHECKING:
    from bpe.pretoken_counts.on_engine import Elsewhere
    from bpe.pretoken_counts.sources import Source


def gather_counts(
    inputs: Sequence[Source],
    counted: CountSet | None,
    options: CountingOptions,
    progress: Progress | None,
    budget: MemoryBudget,
    workspace: Workspace,
    sample_bytes: int | None = None,
    seed: int = 0,
    elsewhere: Elsewhere | None = None,
) -> CountSet:
    """The counts of the inputs, or of a sample of them, and of the counts files already read, together.

    elsewhere: where the inputs are counted; None: by threads of this process.
    Inputs that such a file holds in part, since counting was stopped, are counted from there on.
    """
    options.check()
    inputs = [
        spooled(source, options.input_format, bool(options.text_separator), workspace) for source in inputs
    ]
    if not inputs and counted is None:
        raise BadArgument("inputs: none to train on. Name at least one file.")
    if not inputs and sample_bytes is not None:
        raise BadArgument(
            "sample_bytes: needs text, but there are only counts files. Name files, or leave it out."
        )
    notify = None if progress is None else progress.note
    inputs = listed(inputs, options.input_format, storage_options=options.storage_options, note=notify)
    sources, sample = list(inputs), ""
    places: list[int | None] = [None] * len(sources)
    notes = [named_twice(inputs)]
    if counted is not None:
        if sample_bytes is not None and sources and not counted.facts.complete:
            raise BadArgument("sample_bytes: not supported for an interrupted run. Leave it out.")
        rest = still_to_count(inputs, counted.facts, progress)
        check_same_cut_of_text(rest.sources, options)
        sources, places = rest.sources, rest.places
        notes.append(tokens_not_cut_at(options.special_tokens, counted.facts))
    if progress is not None:
        for note in filter(None, notes):
            progress.note(note)
    if sample_bytes is not None:
        sources, sample = sampled(
            sources,
            sample_bytes,
            seed,
            options.special_tokens,
            options.input_format,
            bool(options.text_separator),
            options.rules,
        )
        if progress is not None and sample:
            progress.note(sample)
    if counted is not None:
        if not sources:
            return counted
        cut = CountsFacts(
            Pretokenizer.from_pattern(options.pattern),
            tuple(options.special_tokens),
            normalizer=make_normalizer(options.normalizer),
        )
        check_same_cut("counts files", counted.facts, "input", cut)  # not when all is counted
    try:
        if elsewhere is None:
            new = count_sources(sources, options, progress, budget, workspace, sample)
        else:
            from bpe.pretoken_counts.on_engine import count_on_engine  # others need no engine

            new = count_on_engine(sources, options, elsewhere, progress)
    except BpeError as error:
        if error.counted is not None and counted is not None:
            error.counted = counted_on(counted, error.counted, places)
        raise
    return new if counted is None else counted_on(counted, new, places)
