"""The syntax tree of a pattern, the same for all dialects.

The reader of a dialect (`read_rust`, `read_oniguruma`) resolves everything in which dialects differ. Classes, Unicode
properties and letter case become sets of code points. `.`, `\\d`, `^`, `$` and `\\b` become sets and lookarounds.

A tree matches like a backtracking engine: the first successful alternative counts. A `Choice` tries its options in
order, a greedy `Repeat` tries another iteration before it stops, and a lazy one stops before it tries another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from bpe.pretokenization.code_points import CodePoints


@dataclass(frozen=True)
class Characters:
    """One character of a set. The empty set never matches."""

    points: CodePoints


@dataclass(frozen=True)
class Sequence:
    """The parts in order. Without parts it matches the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """The first option with which the whole pattern matches. Without options it never matches."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """`body` from `least` to `most` times (None: unbounded). A possessive repeat is an atomic greedy one."""

    body: Node
    least: int
    most: int | None
    mode: Literal["greedy", "lazy", "possessive"] = "greedy"


@dataclass(frozen=True)
class Atomic:
    """The first match of `body`, without backtracking into it later: `(?>...)`."""

    body: Node


@dataclass(frozen=True)
class Look:
    """A lookahead at `body`, or a lookbehind (`behind`). It consumes no text."""

    body: Node
    behind: bool = False
    negated: bool = False


@dataclass(frozen=True)
class TextStart:
    """The start of the text."""


@dataclass(frozen=True)
class TextEnd:
    """The end of the text."""


Node: TypeAlias = Characters | Sequence | Choice | Repeat | Atomic | Look | TextStart | TextEnd
