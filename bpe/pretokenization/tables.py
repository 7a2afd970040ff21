"""An automaton as the core runs it: tables of bytes.

What is due behind a character becomes part of the state that follows, so that a row of states tells where pieces
start. The states come in groups by what is due: a start one character before, that and one here, one here, nothing,
and all else.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bpe.pretokenization.automaton import NO_ACTIONS, Actions, Automaton, Start
from bpe.pretokenization.classes import Classes
from bpe.pretokenization.code_points import END
from bpe.pretokenization.ways import NotBoundedError

ROW: Final = 256  # entries of a class; state numbers are bytes
_PAGE: Final = 64
_HERE: Final = Start(1, 0, False)
_BEFORE: Final = Start(2, 0, False)
# What is due in the states of each group but the last.
GROUPS: Final = (
    Actions((_BEFORE,), ()),
    Actions((_HERE, _BEFORE), ()),
    Actions((_HERE,), ()),
    NO_ACTIONS,
)


class Border(IntEnum):
    """Between characters of two classes, whatever lies around them, a text may be CUT; no piece starts there, it is
    INSIDE of one; or it DEPENDS."""

    DEPENDS = 0
    CUT = 1
    INSIDE = 2


@dataclass(frozen=True)
class Back:
    """What an automaton that goes back has besides (`two_way`).

    rows: uint16[rows, right contexts], of the place before a character the right context, 0x4000 if a piece starts
    there and 0x8000 if it is dropped. row_of: uint32[classes + 1, 256], the row by class and state. settled:
    uint16[256], by state a right context to go back from, or 0xffff. end: the right context where the text ends.
    """

    rows: NDArray[np.uint16]
    row_of: NDArray[np.uint32]
    settled: NDArray[np.uint16]
    end: int


@dataclass(frozen=True)
class Tables:
    """then: uint8[classes + 1, 256], the state behind a byte of a class; the last class is that of a byte within a
    character. group_ends: the end of each of GROUPS among the states; from the last one on, `actions[state - end]` are
    due. at_end, pending: by state, the starts that are certain where the text ends, and the oldest that is pending.
    borders: uint8[classes, classes], a `Border` each. page_of: uint16[0x110000 / 64] and pages: uint8[pages, 64], the
    class of a code point. initial: the state at the start of a text.
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
    """The tables; NotBoundedError if states or classes are too many for bytes."""
    classes, then, actions = _merged(automaton)
    # A state of the tables is one of the automaton with what is due behind the character that led there.
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
    """The automaton with classes that it does not tell apart made one."""
    members = alike(
        [list(zip(*rows, strict=True)) for rows in zip(automaton.then, automaton.actions, strict=True)]
    )
    return (
        automaton.classes.joined(members),
        [[row[each[0]] for each in members] for row in automaton.then],
        [[due[each[0]] for each in members] for due in automaton.actions],
    )


def alike(rows: Sequence[Sequence[Hashable]]) -> list[list[int]]:
    """The numbers of equal columns together, in the order of the first of each."""
    columns: dict[Hashable, list[int]] = {}
    for number, column in enumerate(zip(*rows, strict=True)):
        columns.setdefault(column, []).append(number)
    return list(columns.values())


def _borders(then: list[list[int]], actions: list[list[Actions]], automaton: Automaton) -> NDArray[np.uint8]:
    """A text may be cut if from every state the second character starts a piece and leads where it leads as the first
    of a text, and if what else it makes certain would be certain, too, did the text end before it. The second one is
    inside of a piece if from every state it starts none, and no start is pending behind it.
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
    """page_of and pages of Tables."""
    class_of = np.zeros(END, np.uint8)
    for number, points in enumerate(classes.sets):
        for start, stop in points.ranges:
            class_of[start:stop] = number
    return pages_of_classes(class_of)


def pages_of_classes(class_of: NDArray[np.uint8]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """The same of uint8[0x110000], the class of each code point."""
    numbers: dict[bytes, int] = {}
    rows = class_of.tobytes()
    page_of = [
        numbers.setdefault(rows[place : place + _PAGE], len(numbers)) for place in range(0, END, _PAGE)
    ]
    pages = np.frombuffer(b"".join(numbers), np.uint8).reshape(-1, _PAGE)
    return np.array(page_of, np.uint16), pages


def starts_of(tables: Tables, text: str) -> list[tuple[int, bool]]:
    """(where a piece starts, whether it is dropped) in a text, in characters: what the core does, one by one."""
    state = tables.initial
    registers = [0] * 4
    found: set[tuple[int, bool]] = set()
    place = 0

    def at(start: Start) -> int:
        return place - start.age if start.age else registers[start.register]

    def add(starts: Sequence[Start]) -> None:
        found.update((at(start), start.drops) for start in starts)

    for character in text:
        code_point = ord(character)
        class_ = tables.pages[tables.page_of[code_point // _PAGE], code_point % _PAGE]
        state = int(tables.then[class_, state])
        place += 1
        group = sum(state >= end for end in tables.group_ends)
        due = GROUPS[group] if group < len(GROUPS) else tables.actions[state - tables.group_ends[-1]]
        add(due.certain)
        for register, value in [(register, at(start)) for register, start in due.registers]:
            registers[register] = value
    add(tables.at_end[state])
    return sorted(found)
