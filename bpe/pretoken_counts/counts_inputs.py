"""Counts files beside inputs: how their text was cut, and which inputs are still to be counted.

Counting that was stopped leaves a file that says how far each input was counted. Given that file and the same inputs,
the rest alone is counted, and the sum is exactly what an undisturbed run counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bpe.errors import BadArgument, Refused, shown
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.counts_facts import CountsFacts
from bpe.pretoken_counts.text_blocks import Stretch
from bpe.pretokenizer import Pretokenizer

if TYPE_CHECKING:
    from bpe.pretoken_counts.text_blocks import Source
    from bpe.progress import Progress


@dataclass(frozen=True)
class Cut:
    """How text is cut, and the counts files that were cut so; counted None: there are none."""

    special_tokens: Sequence[str]
    pattern: str | Pretokenizer
    counted: CountSet | None


def cut_of_files(
    paths: Iterable[str | os.PathLike[str]],
    special_tokens: Sequence[str] | None,
    pattern: str | Pretokenizer | None,
) -> Cut:
    """The counts files and the special tokens and pattern they were counted with, or those asked for without files.

    BadArgument naming both if files differ, or if something else is asked for. More special tokens may be asked for:
    the text was not cut at those.
    """
    paths = list(paths)
    if not paths:
        return Cut(
            () if special_tokens is None else special_tokens, "gpt2" if pattern is None else pattern, None
        )
    counted = CountSet.of_files(paths)
    facts = counted.facts
    where = str(paths[0])
    if pattern is not None and facts.pretokenizer is not None:
        asked = Pretokenizer.from_pattern(pattern)
        if asked != facts.pretokenizer:
            if asked.description == facts.pattern:
                raise BadArgument(
                    f"{where} was counted without the text that its pattern leaves out; count again"
                )
            raise BadArgument(
                f"{where} was counted with the pattern {shown(facts.pattern)}, asked for is "
                f"{shown(asked.description)}; leave --pattern out, or count again"
            )
    if special_tokens is None:
        special_tokens = facts.special_tokens
    elif missing := [token for token in facts.special_tokens if token not in special_tokens]:
        raise BadArgument(
            f"{where} was cut at the special token {shown(missing[0])}, which is not among those asked for; name it "
            "too (--special-token), or none at all to take those of the file"
        )
    return Cut(special_tokens, facts.pretokenizer or pattern or "gpt2", counted)


def tokens_not_cut_at(special_tokens: Sequence[str], facts: CountsFacts) -> str:
    """A line that names the special tokens at which text with these facts was not cut; "" if there is none."""
    if facts.pretokenizer is None:  # given, not counted: how they were cut is not known
        return ""
    more = [shown(token) for token in special_tokens if token not in facts.special_tokens]
    if not more:
        return ""
    what = f"special token{'' if len(more) == 1 else 's'}"
    return (
        f"the text of the counts files was not cut at the {what} {', '.join(more)}: if it holds them, they were "
        "counted as ordinary text; count again to change that"
    )


def still_to_count(inputs: Sequence[Source], facts: CountsFacts, progress: Progress | None) -> list[Source]:
    """What of the inputs counts with these facts do not hold yet; all of them if counting was not stopped.

    Refused for a file that changed since it was counted.
    """
    by_name = {source.name: source for source in facts.sources}
    left: list[Source] = []
    twice: list[str] = []
    for source in inputs:
        path = Path(source).absolute() if isinstance(source, (str, os.PathLike)) else None
        known = by_name.get(str(path)) if path is not None and path.is_file() else None
        if known is None or path is None:
            left.append(source)
            continue
        status = path.stat()
        same = (status.st_size, status.st_mtime_ns) == (known.size_bytes, known.mtime_ns)
        if facts.complete:
            twice += [str(path)] if same else []
            left.append(source)
        elif not same:
            raise Refused(
                f"{path} changed since a part of it was counted ({known.size_bytes} bytes then, {status.st_size} now); "
                "count anew, without --counts"
            )
        elif facts.sample:
            raise Refused(
                f"{path}: counting a sample was stopped and can't go on; count anew, without --counts"
            )
        elif not known.is_complete:
            left.append(Stretch(path, known.counted_bytes) if known.counted_bytes else source)
    if progress is not None:
        if twice:
            more = f" and {len(twice) - 1} more" if len(twice) > 1 else ""
            progress.note(f"{twice[0]}{more}: in the counts files and an input, so counted twice")
        elif not facts.complete and not inputs:
            done = sum(source.is_complete for source in facts.sources)
            progress.note(
                f"the counts are of a run that was stopped: {done} of {len(facts.sources)} inputs are complete; name "
                "the inputs too to count the rest"
            )
    return left
