"""Stages as one automaton that reads a text once, from left to right.

Boundaries depend on the right context (`stage`). The automaton tracks the result for every possible right context, and
each character rules some of them out. The start of a piece is certain once all remaining contexts agree, and *pending*
until then. A pending start is stored as its age in characters, or in a register if it is older than `MAX_AGE`. Every
transition has actions: starts that become certain, and positions to store in registers (a subsequential transducer with
registers, after Laurikari's tagged automata, 2000).

`NotBoundedError`: the pattern needs too many states or registers, because its boundaries depend on distant text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from bpe.pretokenization.code_points import Classes
from bpe.pretokenization.transitions import NotBoundedError, Transitions, Walks, explored

MAX_AGE: Final = 2  # characters; older pending starts are in registers
MAX_REGISTERS: Final = 3
MAX_STATES: Final = 1_000


class Start(NamedTuple):
    """The start of a piece: `age` characters ago, or if that is 0, at the position in `register`."""

    age: int
    register: int
    drops: bool


class Actions(NamedTuple):
    """Actions after a character: certain starts, then registers to set, as (register, position)."""

    certain: tuple[Start, ...]
    registers: tuple[tuple[int, Start], ...]


NO_ACTIONS: Final = Actions((), ())

_Pending = tuple[Start, ...]
_State = tuple[tuple[Walks, _Pending, int], ...]  # with a mask of right contexts


@dataclass(frozen=True)
class Automaton:
    """An automaton that starts in state 0.

    then, actions: next state and actions, by state and class.
    at_end: starts that become certain if the text ends, by state.
    oldest_pending: the first pending start, by state.
    """

    classes: Classes
    then: list[list[int]]
    actions: list[list[Actions]]
    at_end: list[tuple[Start, ...]]
    oldest_pending: list[Start | None]


def automaton_of(transitions: Transitions) -> Automaton:
    """Return the automaton of stages. Raise NotBoundedError if it would be too large."""
    first: _State = ((transitions.first, (), transitions.rights),)
    states, then, actions = explored(
        first,
        transitions.classes.examples,
        lambda state, character: _step(transitions, state, character),
        MAX_STATES,
    )
    at_end = [
        next(pending for _, pending, rights in state if rights >> transitions.end & 1) for state in states
    ]
    pending = [
        min((start for _, starts, _ in state for start in starts), key=_by_place, default=None)
        for state in states
    ]
    return Automaton(transitions.classes, then, actions, at_end, pending)


def _step(transitions: Transitions, state: _State, character: int) -> tuple[_State, Actions]:
    groups: dict[tuple[Walks, _Pending], int] = {}
    for walks, pending, rights in state:
        aged = tuple(Start(start.age + 1, 0, start.drops) if start.age else start for start in pending)
        for way in transitions.over(walks, character):
            if not rights >> way.before & 1:
                continue
            key = (way.walks, (*aged, Start(1, 0, way.drops)) if way.starts else aged)
            groups[key] = groups.get(key, 0) | way.rights
    return _settled(groups)


def _by_place(start: Start) -> tuple[bool, int, int]:
    """Return a sort key for text order: starts in registers are older than starts with an age."""
    return (start.age > 0, -start.age, start.register)


def _settled(groups: dict[tuple[Walks, _Pending], int]) -> tuple[_State, Actions]:
    """Return the state of these groups. Starts in all groups become certain, and old ones move to registers."""
    pendings = [set(pending) for _, pending in groups]
    certain = set.intersection(*pendings)
    pending = sorted(set.union(*pendings) - certain, key=_by_place)
    old = [start for start in pending if start.age == 0 or start.age > MAX_AGE]
    if len(old) > MAX_REGISTERS:
        raise NotBoundedError(
            f"more than {MAX_REGISTERS} starts of pieces at a time depend on distant text to the right"
        )
    renamed = {start: Start(0, register, start.drops) for register, start in enumerate(old)}
    merged: dict[tuple[Walks, _Pending], int] = {}
    for (walks, starts), rights in groups.items():
        key = (walks, tuple(renamed.get(start, start) for start in starts if start not in certain))
        merged[key] = merged.get(key, 0) | rights
    moves = tuple((new.register, start) for start, new in renamed.items() if start != new)
    state = tuple((*key, rights) for key, rights in sorted(merged.items(), key=lambda item: item[1]))
    return state, Actions(tuple(sorted(certain)), moves)
