"""Stages as a bimachine: a forward and a backward pass, for boundaries that depend on distant text.

For example, a pattern that groups digits in threes from the right cannot cut a number before its last digit. The
forward pass gives each right context a *label*. Contexts of one label agree on all earlier boundaries. A state with a
single label is *settled*: the boundaries before it are certain. The backward pass then starts there. `back` maps a
state, a character and the right context after it to the right context before it, and to the boundary there
(Schützenberger, "A remark on finite transducers", 1961).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from bpe.pretokenization.classes import Classes
from bpe.pretokenization.transitions import Transitions, Walks, explored

MAX_STATES: Final = 256

_State = tuple[tuple[Walks, int, int], ...]  # states of the stages, label, mask of right contexts


class Before(NamedTuple):
    """The right context before a character, and whether a piece starts there and is dropped."""

    right: int
    starts: bool
    drops: bool


@dataclass(frozen=True)
class TwoWay:
    """A bimachine that starts in state 0.

    then: next state, by state and class.
    back: position before a character, by state, class and right context after it.
    settled: by state, the right context to start the backward pass from, or None.
    labels: by state and right context.
    end: right context at the end of the text.
    rights: number of right contexts.
    """

    classes: Classes
    then: list[list[int]]
    back: list[list[dict[int, Before]]]
    settled: list[int | None]
    labels: list[dict[int, int]]
    end: int
    rights: int


def two_way_of(transitions: Transitions) -> TwoWay:
    """Return the bimachine of stages. Raise NotBoundedError if it is too large."""
    first: _State = ((transitions.first, 0, transitions.rights),)
    states, then, back = explored(
        first,
        transitions.classes.examples,
        lambda state, character: _step(transitions, state, character),
        MAX_STATES,
    )
    labels = [{right: label for _, label, rights in state for right in _members(rights)} for state in states]
    settled = [next(iter(each)) if len(set(each.values())) == 1 else None for each in labels]
    return TwoWay(
        transitions.classes, then, back, settled, labels, transitions.end, transitions.rights.bit_length()
    )


def _step(transitions: Transitions, state: _State, character: int) -> tuple[_State, dict[int, Before]]:
    groups: dict[tuple[Walks, tuple[int, bool, bool]], int] = {}
    befores: dict[int, Before] = {}
    for walks, label, rights in state:
        for way in transitions.over(walks, character):
            if not rights >> way.before & 1:
                continue
            key = (way.walks, (label, way.starts, way.drops))
            groups[key] = groups.get(key, 0) | way.rights
            befores |= dict.fromkeys(_members(way.rights), Before(way.before, way.starts, way.drops))
    numbers: dict[tuple[int, bool, bool], int] = {}
    following = tuple(
        (walks, numbers.setdefault(label, len(numbers)), rights)
        for (walks, label), rights in sorted(groups.items(), key=lambda item: item[1])
    )
    return following, befores


@lru_cache(maxsize=4096)  # most sets repeat
def _members(rights: int) -> list[int]:
    return [number for number in range(rights.bit_length()) if rights >> number & 1]
