"""What is known of the text that pretokens were counted in.

Facts travel with the counts into files and back, so that counts of different patterns or special tokens are never
added up, and nobody need say twice how a text was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.errors import BadArgument, shown
from bpe.formats.huggingface_normalizer import normalizer_from_json, normalizer_to_json
from bpe.normalizers import Normalizer
from bpe.patterns import PATTERNS
from bpe.pretoken_counts.count_sums import LIMIT
from bpe.pretokenization.components import Split
from bpe.pretokenizer import Pretokenizer, named

TOOL: Final = f"tokenmill {_core.__version__}"

Arrays = tuple[NDArray[np.uint8], NDArray[np.uint64], NDArray[np.uint64]]  # pretoken bytes, ends, counts


@dataclass(frozen=True, slots=True)
class CountedSource:
    """A text that was counted. size_bytes: of all of it. counted_bytes: less where counting stopped, or of a sample.

    digest: of the counted text, in hexadecimal, where it came from a stream, which has no time of change: None where
    counting need not go on, "" for a file of a run that was stopped; of a file whose bytes are not the text itself, how
    it was read ("jsonl.gz text"), and text_bytes says how much text of it was counted.
    """

    name: str  # the absolute path of a file, without links
    size_bytes: int
    counted_bytes: int
    mtime_ns: int = 0  # 0: no file
    digest: str | None = None
    text_bytes: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all of it was counted."""
        return self.counted_bytes == self.size_bytes

    @property
    def may_go_on(self) -> bool:
        """Whether it was an input of a run that was stopped, which goes on with it."""
        return self.digest is not None

    def to_json(self) -> list[Any]:
        """As a counts file has it."""
        more = [value for value in (self.digest, self.text_bytes) if value is not None]
        return [self.name, self.size_bytes, self.counted_bytes, self.mtime_ns, *more]


@dataclass(frozen=True, slots=True)
class CountsFacts:
    """How and where pretokens were counted.

    pretokenizer None: they were given, not counted. documents: stretches of text between special tokens and the ends
    of the sources; empty ones do not count. replaced: how many U+FFFD were put in for what was not valid UTF-8.
    complete: False if counting was stopped before all sources were read. sample: what was sampled, in words. part: of
    counts that lie in several files: (a name of them all, which of them this is, from 0, how many there are).
    normalizer: what was done to the text between special tokens first.
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
    part: tuple[str, int, int] | None = None
    normalizer: Normalizer | None = None

    @property
    def pattern(self) -> str:
        """The pattern's name or expression."""
        return self.pretokenizer.description if self.pretokenizer else "none"

    def to_json(self) -> dict[str, Any]:
        """The facts as a counts file has them."""
        return {
            "pattern": self.pretokenizer.to_data() if self.pretokenizer else [],
            "special_tokens": list(self.special_tokens),
            "text_bytes": self.text_bytes,
            "documents": self.documents,
            "replaced": self.replaced,
            "complete": self.complete,
            "sample": self.sample,
            "tool": self.tool,
            "sources": [source.to_json() for source in self.sources],
            **({} if self.part is None else {"part": list(self.part)}),
            **({} if self.normalizer is None else {"normalizer": normalizer_to_json(self.normalizer)}),
        }

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> CountsFacts:
        """The facts of a counts file; KeyError, TypeError or ValueError for what `to_json` does not write."""
        return CountsFacts(
            pretokenizer=_pretokenizer(facts["pattern"]),
            special_tokens=tuple(map(_text, facts["special_tokens"])),
            text_bytes=whole(facts["text_bytes"]),
            documents=whole(facts["documents"]),
            replaced=whole(facts["replaced"]),
            complete=_yes_or_no(facts["complete"]),
            sample=_text(facts["sample"]),
            tool=_text(facts["tool"]),
            sources=_sources_from_json(facts["sources"], complete=facts["complete"]),
            part=_part(facts["part"]) if "part" in facts else None,
            normalizer=normalizer_from_json(facts.get("normalizer")),
        )


def _pretokenizer(data: Sequence[dict[str, Any]]) -> Pretokenizer | None:
    """The pre-tokenizer; former versions wrote a name or an expression and what becomes of the text between matches."""
    if not data:
        return None
    if "type" in data[0]:
        return Pretokenizer.from_data(data)
    if len(data) == 1 and data[0]["expression"] in PATTERNS:
        return named(data[0]["expression"])
    splits = []
    for stage in data:
        drops = {"error": False, "keep": False, "drop": True}[stage["unmatched"]]
        splits.append(
            Split(
                _text(PATTERNS.get(stage["expression"], stage["expression"])),
                "rust",
                "Removed" if drops else "Isolated",
                drops,
                gaps_are_errors=stage["unmatched"] == "error",
            )
        )
    return Pretokenizer(tuple(splits))


def _sources_from_json(rows: Iterable[Sequence[Any]], complete: bool) -> tuple[CountedSource, ...]:
    sources = [
        CountedSource(
            _text(name),
            whole(size),
            whole(counted),
            whole(time, least=-LIMIT),
            _text(more[0]) if more else None,
            whole(more[1]) if len(more) > 1 else None,
        )
        for name, size, counted, time, *more in rows
    ]
    if not complete and not any(source.may_go_on for source in sources):
        # Former versions did not say which sources were inputs of the run that was stopped: any may be.
        sources = [replace(source, digest="") for source in sources]
    return tuple(sources)


def whole(value: object, least: int = 0, below: int = LIMIT) -> int:
    """The value, if it is a whole number of JSON in [least, below); else TypeError or ValueError."""
    if type(value) is not int:
        raise TypeError(f"must be an integer (got {shown(value)})")
    if not least <= value < below:
        raise ValueError(f"out of range (got {value})")
    return value


def _part(value: Sequence[Any]) -> tuple[str, int, int]:
    name, number, count = value
    return _text(name), whole(number, below=whole(count)), count


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"must be a string (got {shown(value)})")
    return value


def _yes_or_no(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"must be true or false (got {shown(value)})")
    return value


def joined_sources(sources: Iterable[CountedSource]) -> tuple[CountedSource, ...]:
    """The sources of a sample with the parts of one file put together, in the order of their first part."""
    joined: dict[str, CountedSource] = {}
    for source in sources:
        known = joined.get(source.name)
        counted_bytes = source.counted_bytes + (known.counted_bytes if known is not None else 0)
        joined[source.name] = replace(source, counted_bytes=counted_bytes)
    return tuple(joined.values())


def merged_facts(named: Sequence[tuple[str, CountsFacts]]) -> CountsFacts:
    """The facts of counts that are added up; names say where each comes from.

    BadArgument naming both if their patterns or special tokens differ: such counts have no sum; or a file of several
    that hold the same counts together, if one of them is missing or there twice.
    """
    if not named:
        return CountsFacts()
    _check_parts(named)
    first_name, first = named[0]
    for name, facts in named[1:]:
        check_same_cut(first_name, first, name, facts)
    every = [facts for _, facts in named]
    sample = "; ".join(dict.fromkeys(facts.sample for facts in every if facts.sample))
    return replace(
        first,
        text_bytes=sum(facts.text_bytes for facts in every),
        documents=sum(facts.documents for facts in every),
        replaced=sum(facts.replaced for facts in every),
        complete=all(facts.complete for facts in every),
        sample=sample,
        tool=", ".join(dict.fromkeys(facts.tool for facts in every)),
        sources=tuple(source for facts in every for source in facts.sources),
        part=None,
    )


def _check_parts(named: Sequence[tuple[str, CountsFacts]]) -> None:
    parts: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for name, facts in named:
        if facts.part is not None:
            whole_name, number, count = facts.part
            parts.setdefault((whole_name, count), []).append((number, name))
    for (_, count), found in parts.items():
        numbers = [number for number, _ in found]
        if sorted(numbers) != list(range(count)):
            number, name = found[0]
            raise BadArgument(
                f"{name}: file {number + 1} of {count} that belong together (got {len(found)} of them). Name each once."
            )


COUNT_AGAIN: Final = "Count again without --counts."


def other_cut(where: object, what: str, found: object, wanted: object, fix: str) -> BadArgument:
    """Return the error for counts of text that was normalized or split in another way than is wanted."""
    return BadArgument(f"{where}: counted with the {what} {found}, not {wanted}. {fix}")


def check_same_cut(name: str, facts: CountsFacts, other_name: str, other: CountsFacts) -> None:
    """Raise BadArgument naming both if the texts were cut in different ways."""

    def wrong(what: str, found: object, wanted: object) -> BadArgument:
        return other_cut(name, what, found, f"{wanted} as {other_name}", "Count one of them again.")

    if facts.pretokenizer != other.pretokenizer:
        raise wrong("pattern", shown(facts.pattern), shown(other.pattern))
    if facts.normalizer != other.normalizer:
        raise wrong("normalizer", facts.normalizer or "none", other.normalizer or "none")
    if set(facts.special_tokens) != set(other.special_tokens):
        raise wrong("special tokens", _list(facts.special_tokens), _list(other.special_tokens))


def _list(tokens: Iterable[str]) -> str:
    return ", ".join(map(shown, tokens)) or "none"
