"""Stages as one automaton that reads a text once, from left to right, and the tables that the core uses to run it.

Boundaries depend on the right context (`stage`). The automaton tracks the result for every possible right context, and
each character rules some of them out. The start of a piece is certain once all remaining contexts agree, and *pending*
until then. A pending start is stored as its age in characters, or in a register if it is older than `MAX_AGE`. Every
transition has actions: starts that become certain, and positions to store in registers (a subsequential transducer with
registers, after Laurikari's tagged automata, 2000).

In the tables, the actions after a character are part of the next state, so the sequence of states determines where
pieces start. States are ordered by their actions: a start one character before, that and a start here, a start here, no
action, and all other actions.

`NotBoundedError`: the pattern needs too many states or registers, because its boundaries depend on distant text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpe.pretokenization.code_points import END, CodePoints
from bpe.pretokenization.program import NotBoundedError
from bpe.pretokenization.transitions import Transitions, Walks, explored

MAX_AGE: Final = 2  # characters; older pending starts are in registers
MAX_REGISTERS: Final = 3
MAX_STATES: Final = 1_000
ROW: Final = 256  # entries per class; state numbers are bytes
_PAGE: Final = 64


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
_HERE: Final = Start(1, 0, False)
_BEFORE: Final = Start(2, 0, False)
# The actions of each group of states except the last.
GROUPS: Final = (Actions((_BEFORE,), ()), Actions((_HERE, _BEFORE), ()), Actions((_HERE,), ()), NO_ACTIONS)

_Pending = tuple[Start, ...]
_State = tuple[tuple[Walks, _Pending, int], ...]  # with a mask of right contexts


class Border(IntEnum):
    """Whether a text can be cut between characters of two classes in any context.

    CUT: yes. INSIDE: no piece ever starts there. DEPENDS: this depends on the context.
    """

    DEPENDS = 0
    CUT = 1
    INSIDE = 2


@dataclass(frozen=True)
class Back:
    """The additional tables of a bimachine (`two_way`).

    rows: uint16[rows, right contexts], right context before a character, | 0x4000 if a piece starts there, | 0x8000 if
        the piece is dropped.
    row_of: uint32[classes + 1, 256], row by class and state.
    settled: uint16[256], by state the right context to start the backward pass from, or 0xffff.
    end: right context at the end of the text.
    """

    rows: NDArray[np.uint16]
    row_of: NDArray[np.uint32]
    settled: NDArray[np.uint16]
    end: int


@dataclass(frozen=True)
class Tables:
    """The tables of an automaton.

    then: uint8[classes + 1, 256], next state by class and state. The last class is for continuation bytes.
    group_ends: end of each of GROUPS among the states. Later states have the actions `actions[state - end]`.
    initial: state at the start of a text.
    at_end: by state, starts that become certain if the text ends.
    pending: by state, the oldest pending start.
    borders: uint8[classes, classes], `Border` values.
    page_of, pages: uint16[0x110000 / 64] and uint8[pages, 64], class of a code point.
    back: tables of the backward pass of a bimachine.
    """

    then: NDArray[np.uint8]
    group_ends: tuple[int, int, int, int]
    initial: int
    actions: tuple[Actions, ...]
    at_end: tuple[tuple[Start, ...], ...]
    pending: tuple[Start | None, ...]
    borders: NDArray[np.uint8]
    page_of: NDArray[np.uint16]
    pages: NDArray[np.uint8]
    back: Back | None = None


def tables_of(transitions: Transitions) -> Tables:
    """Return the tables of stages. Raise NotBoundedError if they would be too large."""
    first: _State = ((transitions.first, (), transitions.rights),)
    states, then, actions = explored(
        first,
        transitions.examples,
        lambda state, character: _step(transitions, state, character),
        MAX_STATES,
    )
    at_end = [
        next(pending for _, pending, rights in state if rights >> transitions.end & 1) for state in states
    ]
    oldest = [
        min((start for _, starts, _ in state for start in starts), key=_by_place, default=None)
        for state in states
    ]
    # A state of the tables is a state of the automaton and the actions of the transition that led to it.
    reached = {pair for rows in zip(then, actions, strict=True) for pair in zip(*rows, strict=True)}
    twins = sorted(
        reached | {(state, NO_ACTIONS) for state in (0, *(state for state, _ in reached))},
        key=lambda twin: (_group(twin[1]), twin),
    )
    classes = transitions.classes
    check_size(len(twins), len(classes))
    numbers = {twin: number for number, twin in enumerate(twins)}
    table = np.zeros((len(classes) + 1, ROW), np.uint8)
    for number, (state, _) in enumerate(twins):
        table[:-1, number] = [numbers[twin] for twin in zip(then[state], actions[state], strict=True)]
        table[-1, number] = numbers[state, NO_ACTIONS]
    groups = [_group(due) for _, due in twins]
    ends = np.cumsum([groups.count(group) for group in range(len(GROUPS))]).tolist()
    return Tables(
        table,
        (ends[0], ends[1], ends[2], ends[3]),
        numbers[0, NO_ACTIONS],
        tuple(due for _, due in twins if _group(due) == len(GROUPS)),
        tuple(at_end[state] for state, _ in twins),
        tuple(oldest[state] for state, _ in twins),
        _borders(then, actions, at_end, oldest),
        *pages_of(classes),
    )


def check_size(states: int, classes: int) -> None:
    """Raise NotBoundedError if the numbers of states or classes do not fit into bytes."""
    if states > ROW or classes >= ROW:
        raise NotBoundedError(f"{states} states and {classes} classes, more than {ROW}")


def _step(transitions: Transitions, state: _State, character: int) -> tuple[_State, Actions]:
    groups: dict[tuple[Walks, _Pending], int] = {}
    for walks, pending, rights in state:
        aged = tuple(map(_older, pending))
        for way in transitions.over(walks, character):
            if rights >> way.before & 1:
                key = (way.walks, (*aged, Start(1, 0, way.drops)) if way.starts else aged)
                groups[key] = groups.get(key, 0) | way.rights
    return _settled(groups)


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


def _by_place(start: Start) -> tuple[bool, int, int]:
    """Return a sort key for text order: starts in registers are older than starts with an age."""
    return (start.age > 0, -start.age, start.register)


def _older(start: Start) -> Start:
    return Start(start.age + 1, 0, start.drops) if start.age else start


def _group(due: Actions) -> int:
    return GROUPS.index(due) if due in GROUPS else len(GROUPS)


def _borders(
    then: list[list[int]],
    actions: list[list[Actions]],
    at_end: list[tuple[Start, ...]],
    oldest: list[Start | None],
) -> NDArray[np.uint8]:
    """Compute Tables.borders.

    CUT: from every state, the second character starts a piece, leads to the same state as at the start of a text, and
    makes the same starts certain as the end of the text. INSIDE: from every state, the second character starts no piece
    and leaves no start pending.
    """
    classes = range(len(then[0]))
    borders = np.full((len(classes), len(classes)), Border.DEPENDS, np.uint8)
    for left in classes:
        behind = {row[left] for row in then}
        for right in classes:
            if actions[0][right] == Actions((_HERE,), ()) and all(
                then[state][right] == then[0][right]
                and not actions[state][right].registers
                and {*actions[state][right].certain} == {_HERE, *map(_older, at_end[state])}
                for state in behind
            ):
                borders[left, right] = Border.CUT
            elif all(
                all(start.age != 1 for start in actions[state][right].certain)
                and oldest[then[state][right]] is None
                for state in behind
            ):
                borders[left, right] = Border.INSIDE
    return borders


def pages_of(classes: tuple[CodePoints, ...]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Return page_of and pages of Tables."""
    class_of = np.zeros(END, np.uint8)
    for number, points in enumerate(classes):
        for start, stop in points.ranges:
            class_of[start:stop] = number
    numbers: dict[bytes, int] = {}
    rows = (page.tobytes() for page in class_of.reshape(-1, _PAGE))
    page_of = np.array([numbers.setdefault(row, len(numbers)) for row in rows], np.uint16)
    return page_of, np.frombuffer(b"".join(numbers), np.uint8).reshape(-1, _PAGE)
