"""Combine the counts of inputs and of counts files, and check that their text is split in the same way."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from bpe.errors import BadArgument, shown
from bpe.normalizers import make_normalizer
from bpe.pretoken_counts.counting import count_sources
from bpe.pretoken_counts.counting_options import CountingOptions, ReadingOptions
from bpe.pretoken_counts.counts import CountSet
from bpe.pretoken_counts.counts_facts import CountsFacts, check_same_cut, other_cut
from bpe.pretoken_counts.memory import MemoryBudget
from bpe.pretoken_counts.sampling import sampled
from bpe.pretoken_counts.sources import Stream, found_sources
from bpe.pretoken_counts.workspace import Workspace
from bpe.pretokenizer import Pretokenizer
from bpe.progress import Progress

if TYPE_CHECKING:
    from bpe.like import TextRule
    from bpe.pretoken_counts.on_engine import Elsewhere
    from bpe.pretoken_counts.sources import Input, Source


def counting_options(
    paths: Iterable[str | os.PathLike[str]],
    special_tokens: Sequence[str] | None,
    pattern: str | Pretokenizer | None,
    rule: TextRule | None,
    reading: ReadingOptions,
) -> tuple[CountingOptions, CountSet | None]:
    """Return (options that split text as counts files were split, the counts files; None for no paths).

    special_tokens, pattern: required values, None to use the values in the files. Special tokens that are not in the
        files are allowed, although the text was not split at them.
    rule: a pattern and a normalizer, instead of a pattern alone.

    Raise BadArgument with both values if the files differ from each other or from the required values.
    """
    paths = list(paths)
    counted = CountSet.of_files(paths, reading.storage_options) if paths else None
    facts = CountsFacts() if counted is None else counted.facts
    where = str(paths[0]) if paths else ""
    if rule is not None:
        pattern = rule.pretokenizer
    if pattern is not None and facts.pretokenizer is not None:
        asked = Pretokenizer.from_pattern(pattern)
        if asked != facts.pretokenizer:
            if asked.description == facts.pattern:
                raise BadArgument(
                    f"{where}: counted without the text that its pattern leaves out. Count again."
                )
            fix = "Count again, or leave --pattern out." if rule is None else "Count again."
            raise other_cut(where, "pattern", shown(facts.pattern), shown(asked.description), fix)
    if rule is not None and facts.pretokenizer is not None and rule.normalizer != facts.normalizer:
        raise other_cut(
            where, "normalizer", facts.normalizer or "none", rule.normalizer or "none", "Count again."
        )
    if special_tokens is None:
        special_tokens = facts.special_tokens
    elif missing := [token for token in facts.special_tokens if token not in special_tokens]:
        raise BadArgument(
            f"{where}: split at the special token {shown(missing[0])}, which was not passed. Pass "
            "it with --special-token too, or pass no --special-token."
        )
    normalizer = rule.normalizer if rule is not None else facts.normalizer
    pattern = facts.pretokenizer or ("gpt2" if pattern is None else pattern)
    return CountingOptions(special_tokens, pattern, normalizer, **reading.reading), counted


def gather_counts(
    inputs: Sequence[Input],
    counted: CountSet | None,
    options: CountingOptions,
    progress: Progress | None,
    budget: MemoryBudget,
    workspace: Workspace,
    sample_bytes: int | None = None,
    seed: int = 0,
    elsewhere: Elsewhere | None = None,
) -> CountSet:
    """Return the counts of the inputs, or of a sample of them, and of the counts files together.

    counted: counts files, already open.
    sample_bytes, seed: size and seed of the sample; None for all text.
    elsewhere: engine that counts the inputs; None for threads of this process.
    """
    options.check()
    if not inputs and counted is None:
        raise BadArgument("inputs: none to train on. Name at least one file.")
    if not inputs and sample_bytes is not None:
        raise BadArgument(
            "sample_bytes: needs text, but there are only counts files. Name files, or leave it out."
        )
    found = found_sources(inputs, options, progress, workspace)
    notes = [_named_twice(found, counted)]
    if counted is not None:
        notes.append(_tokens_not_cut_at(options.special_tokens, counted.facts))
    sources: Sequence[Source] = found
    sample = ""
    if sample_bytes is not None:
        sources, sample = sampled(found, sample_bytes, seed, options)
        notes.append(sample)
    if progress is not None:
        for note in filter(None, notes):
            progress.note(note)
    if counted is not None:
        if not sources:
            return counted
        cut = CountsFacts(
            Pretokenizer.from_pattern(options.pattern),
            tuple(options.special_tokens),
            normalizer=make_normalizer(options.normalizer),
        )
        check_same_cut("counts files", counted.facts, "input", cut)  # before counting
    if elsewhere is None:
        new = count_sources(sources, options, progress, budget, workspace, sample)
    else:
        from bpe.pretoken_counts.on_engine import count_on_engine  # imports the engines

        new = count_on_engine(sources, options, elsewhere, workspace, progress)
    return new if counted is None else counted.with_parts_of(new, "counts files", "input")


def _tokens_not_cut_at(special_tokens: Sequence[str], facts: CountsFacts) -> str:
    """Return a note that names the special tokens at which counted text was not split, "" if there are none."""
    if facts.pretokenizer is None:  # the caller supplied the counts, so the splits are unknown
        return ""
    more = [shown(token) for token in special_tokens if token not in facts.special_tokens]
    if not more:
        return ""
    what = f"special token{'' if len(more) == 1 else 's'}"
    return (
        f"counts files: text was not split at the {what} {', '.join(more)}. Count again if the text "
        "contains them."
    )


def _named_twice(sources: Sequence[Source], counted: CountSet | None) -> str:
    """Return a note about files that are counted twice, through links or counts files too. Return "" if none are."""
    before = {source.name for source in counted.facts.sources if source.mtime_ns} if counted else set()
    seen: set[tuple[int, int]] = set()
    twice = []
    for source in sources:
        if isinstance(source, Stream) or source.file.version:
            continue
        with suppress(OSError):  # a file that disappeared is reported when it is read
            status = os.stat(source.file.path)  # noqa: PTH116 - many inputs
            if (status.st_dev, status.st_ino) in seen or source.full_name in before:
                twice.append(source.full_name)
            seen.add((status.st_dev, status.st_ino))
    if not twice:
        return ""
    more = f" and {len(twice) - 1} more" if len(twice) > 1 else ""
    return f"{twice[0]}{more}: counted more than once, as an input and in the counts files or as two inputs"
