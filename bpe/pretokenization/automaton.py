"""Stages as one automaton that reads a text once, from left to right.

What a place is depends on what stands to the right of it (`stage`). The automaton keeps, for each right context that
there may be, what the stages would have made of the text so far; the next characters leave fewer and fewer of them. A
piece's start that all agree on is certain. One that they do not agree on is *pending*: it is known by its age, in
characters, and when it is older than `OLDEST` by a register that holds its place. So each state comes with a list of
actions: starts that have become certain, and places that go into registers (a subsequential transducer with registers,
after Laurikari's tagged automata, 2000).

Patterns for which this takes too many states or registers are those in which no bounded memory tells where pieces
start before the end of a run is seen: `NotBoundedError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from bpe.pretokenization.classes import Classes
from bpe.pretokenization.ways import NotBoundedError, Walks, Ways, explored

OLDEST: Final = 2  # characters; a pending start that is older is held in a register
MOST_REGISTERS: Final = 3
MOST_STATES: Final = 1_000


class Start(NamedTuple):
    """Where a piece starts: `age` characters ago or, if that is 0, where `register` says; whether it is dropped."""

    age: int
    register: int
    drops: bool


class Actions(NamedTuple):
    """What to do behind a character: the starts that are certain; then registers: (which, the place it is to hold)."""

    certain: tuple[Start, ...]
    registers: tuple[tuple[int, Start], ...]


NO_ACTIONS: Final = Actions((), ())

_Pending = tuple[Start, ...]
_State = tuple[tuple[Walks, _Pending, int], ...]  # with the set of right contexts, a bit each


@dataclass(frozen=True)
class Automaton:
    """State 0 is that at the start of a text. Behind a character of class c, state s becomes `then[s][c]`, and
    `actions[s][c]` are due; where the text ends in state s, the starts `at_end[s]` are certain, too.

    oldest_pending: by state, the first start that is not certain.
    """

    classes: Classes
    then: list[list[int]]
    actions: list[list[Actions]]
    at_end: list[tuple[Start, ...]]
    oldest_pending: list[Start | None]


def automaton_of(ways: Ways) -> Automaton:
    """The automaton of stages, by the ways over characters; NotBoundedError where there is none."""
    first: _State = ((ways.first, (), ways.rights),)
    states, then, actions = explored(
        first, ways.classes.examples, lambda state, character: _step(ways, state, character), MOST_STATES
    )
    at_end = [next(pending for _, pending, rights in state if rights >> ways.end & 1) for state in states]
    pending = [
        min((start for _, starts, _ in state for start in starts), key=_by_place, default=None)
        for state in states
    ]
    return Automaton(ways.classes, then, actions, at_end, pending)


def _step(ways: Ways, state: _State, character: int) -> tuple[_State, Actions]:
    groups: dict[tuple[Walks, _Pending], int] = {}
    for walks, pending, rights in state:
        aged = tuple(Start(start.age + 1, 0, start.drops) if start.age else start for start in pending)
        for way in ways.over(walks, character):
            if not rights >> way.before & 1:
                continue
            key = (way.walks, (*aged, Start(1, 0, way.drops)) if way.starts else aged)
            groups[key] = groups.get(key, 0) | way.rights
    return _settled(groups)


def _by_place(start: Start) -> tuple[bool, int, int]:
    """A key by which starts of a state are in the order of the text: registers hold older ones than there are ages."""
    return (start.age > 0, -start.age, start.register)


def _settled(groups: dict[tuple[Walks, _Pending], int]) -> tuple[_State, Actions]:
    """The state of these groups: what all have pending is certain, what is too old goes into registers."""
    pendings = [set(pending) for _, pending in groups]
    certain = set.intersection(*pendings)
    pending = sorted(set.union(*pendings) - certain, key=_by_place)
    old = [start for start in pending if start.age == 0 or start.age > OLDEST]
    if len(old) > MOST_REGISTERS:
        raise NotBoundedError(
            f"more than {MOST_REGISTERS} starts of pieces at a time depend on distant text to the right"
        )
    renamed = {start: Start(0, register, start.drops) for register, start in enumerate(old)}
    merged: dict[tuple[Walks, _Pending], int] = {}
    for (walks, starts), rights in groups.items():
        key = (walks, tuple(renamed.get(start, start) for start in starts if start not in certain))
        merged[key] = merged.get(key, 0) | rights
    moves = tuple((new.register, start) for start, new in renamed.items() if start != new)
    state = tuple((*key, rights) for key, rights in sorted(merged.items(), key=lambda item: item[1]))
    return state, Actions(tuple(sorted(certain)), moves)
