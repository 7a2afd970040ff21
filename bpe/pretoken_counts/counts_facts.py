"""Facts about the text that pretokens were counted in.

Facts are stored with the counts, so that counts of different patterns or special tokens are never added up, and
training knows how the text was split.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.errors import BadArgument, shown
from bpe.formats.huggingface_components import normalizer_from_json, normalizer_to_json
from bpe.normalizers import Normalizer
from bpe.pretoken_counts.count_sums import LIMIT
from bpe.pretokenizer import Pretokenizer

TOOL: Final = f"tokenmill {_core.__version__}"

Arrays = tuple[NDArray[np.uint8], NDArray[np.uint64], NDArray[np.uint64]]  # pretoken bytes, ends, counts


@dataclass(frozen=True, slots=True)
class CountedSource:
    """A text that was counted.

    name: absolute path of a file, without links; URL of an object; "stdin" or "text" for others.
    size_bytes: size of the whole source.
    counted_bytes: fewer bytes if the source was sampled.
    mtime_ns: 0 if the source is not a file.
    """

    name: str
    size_bytes: int
    counted_bytes: int
    mtime_ns: int = 0


@dataclass(frozen=True, slots=True)
class CountsFacts:
    """How and where pretokens were counted.

    pretokenizer: None if the caller supplied the counts.
    text_bytes: bytes of text that were read.
    documents: nonempty texts between special tokens and the ends of the sources.
    replaced: number of U+FFFD inserted for invalid UTF-8.
    sample: description of the sample, "" if all text was counted.
    tool: program that counted.
    normalizer: applied to the text between special tokens.
    """

    pretokenizer: Pretokenizer | None = None
    special_tokens: tuple[str, ...] = ()
    text_bytes: int = 0
    documents: int = 0
    replaced: int = 0
    sample: str = ""
    tool: str = TOOL
    sources: tuple[CountedSource, ...] = ()
    normalizer: Normalizer | None = None

    @property
    def pattern(self) -> str:
        """Return the name or expression of the pattern."""
        return self.pretokenizer.description if self.pretokenizer else "none"

    def to_json(self) -> dict[str, Any]:
        """Return the facts in the form stored in a counts file."""
        return {
            "pattern": self.pretokenizer.to_data() if self.pretokenizer else [],
            "special_tokens": list(self.special_tokens),
            "text_bytes": self.text_bytes,
            "documents": self.documents,
            "replaced": self.replaced,
            "sample": self.sample,
            "tool": self.tool,
            "sources": list(map(list, map(astuple, self.sources))),
            **({} if self.normalizer is None else {"normalizer": normalizer_to_json(self.normalizer)}),
        }

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> CountsFacts:
        """Return the facts of a counts file. Raise KeyError, TypeError or ValueError if they are malformed."""
        return CountsFacts(
            pretokenizer=Pretokenizer.from_data(facts["pattern"]) if facts["pattern"] else None,
            special_tokens=tuple(map(_text, facts["special_tokens"])),
            text_bytes=whole(facts["text_bytes"]),
            documents=whole(facts["documents"]),
            replaced=whole(facts["replaced"]),
            sample=_text(facts["sample"]),
            tool=_text(facts["tool"]),
            sources=tuple(map(_source, facts["sources"])),
            normalizer=normalizer_from_json(facts.get("normalizer")),
        )


def _source(row: Sequence[Any]) -> CountedSource:
    name, size, counted, mtime = row
    return CountedSource(_text(name), whole(size), whole(counted), whole(mtime, least=-LIMIT))


def whole(value: object, least: int = 0, below: int = LIMIT) -> int:
    """Return the value. Raise TypeError or ValueError unless it is an integer in [least, below)."""
    if type(value) is not int:
        raise TypeError(f"must be an integer (got {shown(value)})")
    if not least <= value < below:
        raise ValueError(f"out of range (got {value})")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"must be a string (got {shown(value)})")
    return value


def joined_sources(sources: Iterable[CountedSource]) -> tuple[CountedSource, ...]:
    """Merge the parts of each sampled file, in the order of their first part."""
    joined: dict[str, CountedSource] = {}
    for source in sources:
        known = joined.get(source.name)
        counted_bytes = source.counted_bytes + (known.counted_bytes if known is not None else 0)
        joined[source.name] = replace(source, counted_bytes=counted_bytes)
    return tuple(joined.values())


def merged_facts(named: Sequence[tuple[str, CountsFacts]]) -> CountsFacts:
    """Return the facts of a sum of counts. named: (name of the counts in errors, their facts).

    Raise BadArgument and name both if patterns, normalizers or special tokens differ.
    """
    if not named:
        return CountsFacts()
    first_name, first = named[0]
    for name, facts in named[1:]:
        check_same_cut(first_name, first, name, facts)
    every = [facts for _, facts in named]
    return replace(
        first,
        text_bytes=sum(facts.text_bytes for facts in every),
        documents=sum(facts.documents for facts in every),
        replaced=sum(facts.replaced for facts in every),
        sample="; ".join(dict.fromkeys(facts.sample for facts in every if facts.sample)),
        tool=", ".join(dict.fromkeys(facts.tool for facts in every)),
        sources=tuple(source for facts in every for source in facts.sources),
    )


def other_cut(where: object, what: str, found: object, wanted: object, fix: str) -> BadArgument:
    """Return the error for counts of text that was normalized or split differently."""
    return BadArgument(f"{where}: counted with the {what} {found}, not {wanted}. {fix}")


def check_same_cut(name: str, facts: CountsFacts, other_name: str, other: CountsFacts) -> None:
    """Raise BadArgument and name both if the texts were split differently."""

    def tokens(facts: CountsFacts) -> str:
        return ", ".join(map(shown, facts.special_tokens)) or "none"

    for what, differs, describe in (
        ("pattern", facts.pretokenizer != other.pretokenizer, lambda facts: shown(facts.pattern)),
        ("normalizer", facts.normalizer != other.normalizer, lambda facts: facts.normalizer or "none"),
        ("special tokens", set(facts.special_tokens) != set(other.special_tokens), tokens),
    ):
        if differs:
            wanted = f"{describe(other)} as {other_name}"
            raise other_cut(name, what, describe(facts), wanted, "Count one of them again.")
