"""Counts files beside inputs: how their text was cut, and which inputs are still to be counted.

Counting that was stopped leaves a file that says how far each input was counted. Given that file and the same inputs,
the rest alone is counted, and the sum is exactly what an undisturbed run counts.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bpe.errors import BadArgument, Refused, shown
from bpe.normalizers import Normalizer
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.counts_facts import COUNT_AGAIN, CountedSource, CountsFacts, other_cut
from bpe.pretoken_counts.sources import FileRange, StreamRest, identity, object_of, path_of
from bpe.pretokenizer import Pretokenizer
from tokenmill.inputs.source_list import Source as File
from tokenmill.stores import NO_OPTIONS, StorageOptions

if TYPE_CHECKING:
    from bpe.like import TextRule
    from bpe.pretoken_counts.sources import Source
    from bpe.progress import Progress


@dataclass(frozen=True)
class Cut:
    """How text is cut, and the counts files that were cut so; counted None: there are none."""

    special_tokens: Sequence[str]
    pattern: str | Pretokenizer
    counted: CountSet | None
    normalizer: Normalizer | None = None


def cut_of_files(
    paths: Iterable[str | os.PathLike[str]],
    special_tokens: Sequence[str] | None,
    pattern: str | Pretokenizer | None,
    rule: TextRule | None = None,
    storage_options: StorageOptions = NO_OPTIONS,
) -> Cut:
    """The counts files and the special tokens and pattern they were counted with, or those asked for without files.

    rule: a pattern and a normalizer, in place of a pattern alone, which asks for no normalizer.

    BadArgument naming both if files differ, or if something else is asked for. More special tokens may be asked for:
    the text was not cut at those.
    """
    paths = list(paths)
    if rule is not None:
        pattern = rule.pretokenizer
    if not paths:
        return Cut(
            () if special_tokens is None else special_tokens,
            "gpt2" if pattern is None else pattern,
            None,
            None if rule is None else rule.normalizer,
        )
    counted = CountSet.of_files(paths, storage_options)
    facts = counted.facts
    where = str(paths[0])
    if pattern is not None and facts.pretokenizer is not None:
        asked = Pretokenizer.from_pattern(pattern)
        if asked != facts.pretokenizer:
            if asked.description == facts.pattern:
                raise BadArgument(
                    f"{where}: counted without the text that its pattern leaves out. Count again."
                )
            raise other_cut(
                where,
                "pattern",
                shown(facts.pattern),
                shown(asked.description),
                "Count again, or leave --pattern out." if rule is None else "Count again.",
            )
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
    return Cut(special_tokens, facts.pretokenizer or pattern or "gpt2", counted, normalizer)


def tokens_not_cut_at(special_tokens: Sequence[str], facts: CountsFacts) -> str:
    """A line that names the special tokens at which text with these facts was not cut; "" if there is none."""
    if facts.pretokenizer is None:  # given, not counted: how they were cut is not known
        return ""
    more = [shown(token) for token in special_tokens if token not in facts.special_tokens]
    if not more:
        return ""
    what = f"special token{'' if len(more) == 1 else 's'}"
    return (
        f"counts files: text was not split at the {what} {', '.join(more)}. Count again if the text "
        "contains them."
    )


@dataclass(frozen=True)
class Rest:
    """What is still to be counted. places: of the source in the facts that each goes on with; None: a new one."""

    sources: list[Source]
    places: list[int | None]


def still_to_count(inputs: Sequence[Source], facts: CountsFacts, progress: Progress | None) -> Rest:
    """What of the inputs counts with these facts do not hold yet; all of them if counting was not stopped.

    An input is the first one of that name which the stopped run had and no input before it is: a file that was named
    twice is counted twice. Refused for a file that changed since it was counted, and for inputs that lack a file with
    text that is still to be counted.
    """
    if not inputs:
        if not facts.complete and progress is not None:
            done = sum(source.is_complete for source in facts.sources)
            progress.note(
                f"counts files: from an interrupted run, {done} of {len(facts.sources)} inputs are "
                "complete. Name the inputs too to count the rest."
            )
        return Rest([], [])
    if facts.sample and not facts.complete:
        raise Refused(f"sample: an interrupted sample cannot resume. {COUNT_AGAIN}")
    settled: dict[str, CountedSource] = {}
    stopped: dict[str, deque[int]] = {}
    for place, known in enumerate(facts.sources):
        if known.may_go_on:
            stopped.setdefault(known.name, deque()).append(place)
        else:
            settled[known.name] = known
    rest = Rest([], [])
    twice: list[str] = []
    for source in inputs:
        name, status = identity(source)
        if places := stopped.get(name):
            place = places.popleft()
            if (left := _rest_of(source, facts.sources[place], status)) is not None:
                rest.sources.append(left)
                rest.places.append(place)
            continue
        if status is not None and (known_too := settled.get(name)) and _is_as_counted(known_too, status):
            twice.append(name)
        rest.sources.append(source)
        rest.places.append(None)
    _check_none_is_missing([facts.sources[place] for places in stopped.values() for place in places])
    if twice and progress is not None:
        progress.note(f"{_first(twice)}: counted twice, in the counts files and as an input")
    return rest


def counted_on(counted: CountSet, new: CountSet, places: Sequence[int | None]) -> CountSet:
    """Counts and those of their `Rest`, together; BadArgument if they were not cut in the same way."""
    both = counted.with_parts_of(new, "counts files", "input")
    if all(place is None for place in places):
        return both
    sources = list(counted.facts.sources)
    for source, place in zip(new.facts.sources, places, strict=True):
        if place is None:
            sources.append(source)
        else:
            sources[place] = _joined(sources[place], source)
    complete = all(source.is_complete for source in sources if source.may_go_on)
    if complete:
        sources = [replace(source, digest=None, text_bytes=None) for source in sources]
    return CountSet(both.parts, replace(both.facts, complete=complete, sources=tuple(sources)))


def _joined(known: CountedSource, rest: CountedSource) -> CountedSource:
    """A source of a run that was stopped and what was counted of it since."""
    size_bytes = rest.size_bytes
    if known.text_bytes is not None and (known.size_bytes, known.mtime_ns) == (size_bytes, rest.mtime_ns):
        return replace(rest, counted_bytes=max(known.counted_bytes, rest.counted_bytes))
    if known.digest and known.text_bytes is None:  # of a stream: its rest is a stream of its own
        size_bytes += known.counted_bytes
    elif (known.size_bytes, known.mtime_ns) != (rest.size_bytes, rest.mtime_ns):
        raise _changed(known, rest.size_bytes)
    return replace(rest, size_bytes=size_bytes, counted_bytes=known.counted_bytes + rest.counted_bytes)


def named_twice(inputs: Sequence[Source]) -> str:
    """A line that names the files which are several of the inputs, by links too; "" if there is none."""
    seen: set[tuple[int, int]] = set()
    twice = []
    for source in inputs:
        name, status = identity(source)
        if status is not None:
            if (status.st_dev, status.st_ino) in seen:
                twice.append(name)
            seen.add((status.st_dev, status.st_ino))
    return f"{_first(twice)}: counted more than once, as it was named more than once" if twice else ""


def _rest_of(source: Source, known: CountedSource, status: os.stat_result | None) -> Source | None:
    """The part of an input that was not counted; None if there is none."""
    path = path_of(source)
    if status is not None and path is not None:
        if not _is_as_counted(known, status):
            raise _changed(known, status.st_size)
        if known.is_complete:
            return None
        if known.text_bytes is not None and known.digest:
            return StreamRest(path, known.text_bytes, known.digest) if known.text_bytes else source
        return FileRange(path, known.counted_bytes) if known.counted_bytes else source
    found = object_of(source)
    if found is not None and known.size_bytes != found.size_bytes:
        raise _changed(known, found.size_bytes)
    if known.is_complete:
        return None
    if found is not None:
        return (
            StreamRest(found, known.text_bytes, known.digest) if known.text_bytes and known.digest else found
        )
    if not known.digest:
        raise Refused(
            f"{known.name}: counted by an older version, which did not record the text. {COUNT_AGAIN}"
        )
    assert not isinstance(source, (File, FileRange, StreamRest))
    return StreamRest(source, known.counted_bytes, known.digest) if known.counted_bytes else source


def _is_as_counted(known: CountedSource, status: os.stat_result) -> bool:
    return (status.st_size, status.st_mtime_ns) == (known.size_bytes, known.mtime_ns)


def _changed(known: CountedSource, size_bytes: int) -> Refused:
    return Refused(
        f"{known.name}: changed since a part of it was counted ({known.size_bytes} bytes then, "
        f"{size_bytes} now). {COUNT_AGAIN}"
    )


def _check_none_is_missing(missing: Sequence[CountedSource]) -> None:
    """Raise Refused for a source that still has text to count and is no input now."""
    names = [source.name for source in missing if not source.is_complete]
    if names:
        raise Refused(
            f"{_first(names)}: missing input of the interrupted run. Name all of its inputs, or name "
            "none to use the counts alone."
        )


def _first(names: Sequence[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
