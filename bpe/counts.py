"""Counted pretokens in memory, and what is known of the text that they were counted in.

Facts travel with the counts into files and back, so that counts of different patterns or special tokens are never
added up, and nobody need say twice how a text was cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.errors import BadArgument, shown
from bpe.pretokenizer import Pretokenizer, Stage

TOOL: Final = f"tokenmill {_core.__version__}"

Arrays = tuple[NDArray[np.uint8], NDArray[np.uint64], NDArray[np.uint64]]  # pretoken bytes, ends, counts


@dataclass(frozen=True, slots=True)
class CountedSource:
    """A text that was counted. size_bytes: of all of it. counted_bytes: less where counting stopped, or of a sample."""

    name: str  # the absolute path of a file
    size_bytes: int
    counted_bytes: int
    mtime_ns: int = 0  # 0: no file

    @property
    def is_complete(self) -> bool:
        """Whether all of it was counted."""
        return self.counted_bytes == self.size_bytes


@dataclass(frozen=True, slots=True)
class CountsFacts:
    """How and where pretokens were counted.

    pretokenizer None: they were given, not counted. documents: stretches of text between special tokens and the ends
    of the sources; empty ones do not count. replaced: how many U+FFFD were put in for what was not valid UTF-8.
    complete: False if counting was stopped before all sources were read. sample: what was sampled, in words.
    """

    pretokenizer: Pretokenizer | None = None
    special_tokens: tuple[str, ...] = ()
    text_bytes: int = 0
    documents: int = 0
    replaced: int = 0
    complete: bool = True
    sample: str = ""
    tool: str = TOOL
    sources: tuple[CountedSource, ...] = ()

    @property
    def pattern(self) -> str:
        """The pattern's name or expression."""
        return self.pretokenizer.description if self.pretokenizer else "none"

    def to_json(self) -> dict[str, Any]:
        """The facts as a counts file has them."""
        stages = self.pretokenizer.stages if self.pretokenizer else ()
        return {
            "pattern": [{"expression": stage.expression, "unmatched": stage.unmatched} for stage in stages],
            "special_tokens": list(self.special_tokens),
            "text_bytes": self.text_bytes,
            "documents": self.documents,
            "replaced": self.replaced,
            "complete": self.complete,
            "sample": self.sample,
            "tool": self.tool,
            "sources": [
                [source.name, source.size_bytes, source.counted_bytes, source.mtime_ns]
                for source in self.sources
            ],
        }

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> CountsFacts:
        """The facts of a counts file; KeyError, TypeError or ValueError for what `to_json` does not write."""
        stages = tuple(Stage(str(stage["expression"]), stage["unmatched"]) for stage in facts["pattern"])
        if any(stage.unmatched not in ("drop", "keep") for stage in stages):
            raise ValueError("unmatched")
        return CountsFacts(
            pretokenizer=Pretokenizer(stages) if stages else None,
            special_tokens=tuple(map(str, facts["special_tokens"])),
            text_bytes=int(facts["text_bytes"]),
            documents=int(facts["documents"]),
            replaced=int(facts["replaced"]),
            complete=bool(facts["complete"]),
            sample=str(facts["sample"]),
            tool=str(facts["tool"]),
            sources=tuple(
                CountedSource(str(name), int(a), int(b), int(c)) for name, a, b, c in facts["sources"]
            ),
        )


def joined_sources(sources: Iterable[CountedSource]) -> tuple[CountedSource, ...]:
    """The sources with the parts of one file put together, in the order of their first part."""
    joined: dict[tuple[str, int, int], CountedSource] = {}
    for source in sources:
        key = source.name, source.size_bytes, source.mtime_ns
        if source.mtime_ns == 0:
            key = f"{source.name} {len(joined)}", 0, 0  # two pipes are two sources
        known = joined.get(key)
        joined[key] = (
            source
            if known is None
            else replace(known, counted_bytes=known.counted_bytes + source.counted_bytes)
        )
    return tuple(joined.values())


def merged_facts(named: Sequence[tuple[str, CountsFacts]]) -> CountsFacts:
    """The facts of counts that are added up; names say where each comes from.

    BadArgument naming both if their patterns or special tokens differ: such counts have no sum.
    """
    if not named:
        return CountsFacts()
    first_name, first = named[0]
    for name, facts in named[1:]:
        check_same_cut(first_name, first, name, facts)
    every = [facts for _, facts in named]
    sources = joined_sources(source for facts in every for source in facts.sources)
    sample = "; ".join(dict.fromkeys(facts.sample for facts in every if facts.sample))
    complete = all(facts.complete for facts in every)
    return replace(
        first,
        text_bytes=sum(facts.text_bytes for facts in every),
        documents=sum(facts.documents for facts in every),
        replaced=sum(facts.replaced for facts in every),
        # What was stopped is complete once other counts hold the rest of its sources.
        complete=complete or (not sample and all(source.is_complete for source in sources)),
        sample=sample,
        tool=", ".join(dict.fromkeys(facts.tool for facts in every)),
        sources=sources,
    )


def check_same_cut(name: str, facts: CountsFacts, other_name: str, other: CountsFacts) -> None:
    """Nothing, or BadArgument naming both if the texts were cut in different ways."""
    if facts.pretokenizer != other.pretokenizer:
        raise BadArgument(
            f"{name} was counted with the pattern {shown(facts.pattern)}, {other_name} with {shown(other.pattern)}; "
            "such counts have no sum: count one of them anew"
        )
    if set(facts.special_tokens) != set(other.special_tokens):
        raise BadArgument(
            f"{name} was cut at the special tokens {_list(facts.special_tokens)}, {other_name} at "
            f"{_list(other.special_tokens)}; such counts have no sum: count one of them anew"
        )


def _list(tokens: Iterable[str]) -> str:
    return ", ".join(map(shown, tokens)) or "none"


@dataclass(frozen=True, slots=True, eq=False)
class PretokenCounts:
    """Distinct pretokens, ascending as byte strings, and how often each occurs.

    pretoken_bytes: uint8[sum of lengths], end to end. ends, counts: uint64[pretokens].
    {b"a": 2, b"bc": 1} -> pretoken_bytes b"abc", ends [1, 3], counts [2, 1].
    """

    pretoken_bytes: NDArray[np.uint8]
    ends: NDArray[np.uint64]
    counts: NDArray[np.uint64]
    facts: CountsFacts = CountsFacts()

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def total(self) -> int:
        """How many pretokens the texts have, repeated ones each time."""
        return int(self.counts.sum())

    @property
    def text_bytes(self) -> int:
        """Bytes of text read."""
        return self.facts.text_bytes

    @property
    def replaced(self) -> int:
        """How many U+FFFD were put in for what was not valid UTF-8."""
        return self.facts.replaced

    @property
    def arrays(self) -> Arrays:
        """(pretoken_bytes, ends, counts)."""
        return self.pretoken_bytes, self.ends, self.counts

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a counts file (format: `bpe.counts_file`); it appears complete or not at all."""
        from bpe.counts_file import write_counts_file

        write_counts_file(path, [self.arrays], self.facts)

    def as_dict(self) -> dict[bytes, int]:
        """{pretoken: count}, ascending; some 200 bytes a pretoken, so for small sets."""
        text = self.pretoken_bytes.tobytes()
        ends = self.ends.tolist()
        spans = zip([0, *ends[:-1]], ends, self.counts.tolist(), strict=True) if ends else ()
        return {text[start:stop]: count for start, stop, count in spans}

    @staticmethod
    def load(*paths: str | os.PathLike[str]) -> PretokenCounts:
        """The counts of one or more files, added up.

        MissingInput and BadCounts name the file that is at fault, BadArgument two that were not cut in the same way.
        """
        from bpe.count_set import CountSet
        from bpe.merge_counts import joined
        from bpe.workspace import Workspace

        counted = CountSet.of_files(paths)
        with Workspace() as workspace:
            return PretokenCounts(*joined(counted.blocks(workspace)), counted.facts)

    @staticmethod
    def from_mapping(counts: Mapping[bytes, int], facts: CountsFacts | None = None) -> PretokenCounts:
        """The counts of a {pretoken: count}."""
        counter = _core.PretokenCounter(None)
        add_mapping(counter, counts)
        return PretokenCounts(*counter.items(), facts or CountsFacts())


def add_mapping(counter: _core.PretokenCounter, counts: Mapping[bytes, int]) -> None:
    """Add the counts of a {pretoken: count} to the core's counter."""
    ends = np.cumsum([len(pretoken) for pretoken in counts], dtype=np.uint64)
    counter.add(b"".join(counts), ends, np.array(list(counts.values()), dtype=np.uint64))
