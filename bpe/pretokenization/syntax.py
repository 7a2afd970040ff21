"""The syntax tree of a pattern, one for all dialects.

A reader of a dialect (`read_rust`, `read_oniguruma`) resolves all that dialects mean in their own ways: classes with
their Unicode properties and letter case become sets of code points; `.`, `\\d`, `^`, `$`, `\\b` and the like become
sets and looks around. What is left means one thing only.

Matching is that of backtracking engines: at a place of the text the first way to match counts, where a `Choice` tries
its options in order, a greedy `Repeat` tries one more before it stops, and a lazy one the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from bpe.pretokenization.code_points import CodePoints


@dataclass(frozen=True)
class Characters:
    """One character out of a set; the empty set never matches."""

    points: CodePoints


@dataclass(frozen=True)
class Sequence:
    """One part behind the other; without parts it matches the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """The first option by which the whole matches; without options it never matches."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """`body` from `least` to `most` times (None: any number).

    A possessive one takes what a greedy one takes first and gives nothing back: it is atomic.
    """

    body: Node
    least: int
    most: int | None
    mode: Literal["greedy", "lazy", "possessive"] = "greedy"


@dataclass(frozen=True)
class Atomic:
    """The first way in which `body` matches by itself, whatever comes behind: `(?>...)`."""

    body: Node


@dataclass(frozen=True)
class Look:
    """Whether `body` matches from here on (behind: up to here); takes no text. negated: whether it does not."""

    body: Node
    behind: bool = False
    negated: bool = False


@dataclass(frozen=True)
class TextStart:
    """Nothing lies before."""


@dataclass(frozen=True)
class TextEnd:
    """Nothing lies behind."""


@dataclass(frozen=True)
class Capture:
    """`body`, for a `Reference` of this number. Groups that none refers to are not in the tree."""

    number: int
    body: Node


@dataclass(frozen=True)
class Reference:
    """The text that the `Capture` of this number matched last; where it matched none, nothing does: `\\1`."""

    number: int


Node: TypeAlias = (
    Characters | Sequence | Choice | Repeat | Atomic | Look | TextStart | TextEnd | Capture | Reference
)
