"""The tables that the core uses to run an automaton.

The actions after a character are part of the next state, so the sequence of states determines where pieces start.
States are ordered by their actions: a start one character before, that and a start here, a start here, no action, and
all other actions.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bpe.pretokenization.automaton import NO_ACTIONS, Actions, Automaton, Start
from bpe.pretokenization.code_points import END, Classes
from bpe.pretokenization.transitions import NotBoundedError

ROW: Final = 256  # entries per class; state numbers are bytes
_PAGE: Final = 64
_HERE: Final = Start(1, 0, False)
_BEFORE: Final = Start(2, 0, False)
# The actions of each group of states except the last.
GROUPS: Final = (
    Actions((_BEFORE,), ()),
    Actions((_HERE, _BEFORE), ()),
    Actions((_HERE,), ()),
    NO_ACTIONS,
)


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


def tables_of(automaton: Automaton) -> Tables:
    """Return the tables. Raise NotBoundedError if states or classes do not fit into bytes."""
    classes, then, actions = _merged(automaton)
    # A state of the tables is a state of the automaton and the actions of the transition that led to it.
    twins = sorted(
        {(0, NO_ACTIONS)}
        | {
            (state, due)
            for row, dues in zip(then, actions, strict=True)
            for state, due in zip(row, dues, strict=True)
        }
        | {(state, NO_ACTIONS) for row in then for state in row},
        key=lambda twin: (_group(twin[1]), twin),
    )
    if len(twins) > ROW or len(classes.sets) >= ROW:
        raise NotBoundedError(f"{len(twins)} states and {len(classes.sets)} classes, more than {ROW}")
    numbers = {twin: number for number, twin in enumerate(twins)}
    table = np.zeros((len(classes.sets) + 1, ROW), np.uint8)
    for number, (state, _) in enumerate(twins):
        table[:-1, number] = [numbers[twin] for twin in zip(then[state], actions[state], strict=True)]
        table[-1, number] = numbers[state, NO_ACTIONS]
    groups = [_group(due) for _, due in twins]
    ends = np.cumsum([groups.count(group) for group in range(len(GROUPS))]).tolist()
    page_of, pages = pages_of(classes)
    return Tables(
        table,
        (ends[0], ends[1], ends[2], ends[3]),
        numbers[0, NO_ACTIONS],
        tuple(due for _, due in twins if _group(due) == len(GROUPS)),
        tuple(automaton.at_end[state] for state, _ in twins),
        tuple(automaton.oldest_pending[state] for state, _ in twins),
        _borders(then, actions, automaton),
        page_of,
        pages,
    )


def _group(due: Actions) -> int:
    return GROUPS.index(due) if due in GROUPS else len(GROUPS)


def _merged(automaton: Automaton) -> tuple[Classes, list[list[int]], list[list[Actions]]]:
    """Merge the classes that the automaton does not distinguish."""
    members = alike(
        [list(zip(*rows, strict=True)) for rows in zip(automaton.then, automaton.actions, strict=True)]
    )
    return (
        automaton.classes.joined(members),
        [[row[each[0]] for each in members] for row in automaton.then],
        [[due[each[0]] for each in members] for due in automaton.actions],
    )


def alike(rows: Sequence[Sequence[Hashable]]) -> list[list[int]]:
    """Group the indexes of equal columns, in order of the first index."""
    columns: dict[Hashable, list[int]] = {}
    for number, column in enumerate(zip(*rows, strict=True)):
        columns.setdefault(column, []).append(number)
    return list(columns.values())


def _borders(then: list[list[int]], actions: list[list[Actions]], automaton: Automaton) -> NDArray[np.uint8]:
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
                and {*actions[state][right].certain} == {_HERE, *map(_older, automaton.at_end[state])}
                for state in behind
            ):
                borders[left, right] = Border.CUT
            elif all(
                all(start.age != 1 for start in actions[state][right].certain)
                and automaton.oldest_pending[then[state][right]] is None
                for state in behind
            ):
                borders[left, right] = Border.INSIDE
    return borders


def _older(start: Start) -> Start:
    return Start(start.age + 1, 0, start.drops) if start.age else start


def pages_of(classes: Classes) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Return page_of and pages of Tables."""
    class_of = np.zeros(END, np.uint8)
    for number, points in enumerate(classes.sets):
        for start, stop in points.ranges:
            class_of[start:stop] = number
    return pages_of_classes(class_of)


def pages_of_classes(class_of: NDArray[np.uint8]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Return page_of and pages for uint8[0x110000], the class of each code point."""
    numbers: dict[bytes, int] = {}
    rows = class_of.tobytes()
    page_of = [
        numbers.setdefault(rows[start : start + _PAGE], len(numbers)) for start in range(0, END, _PAGE)
    ]
    pages = np.frombuffer(b"".join(numbers), np.uint8).reshape(-1, _PAGE)
    return np.array(page_of, np.uint16), pages
