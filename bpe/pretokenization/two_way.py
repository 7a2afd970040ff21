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

import numpy as np
from numpy.typing import NDArray

from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.tables import ROW, Back, Border, Tables, check_size, pages_of
from bpe.pretokenization.transitions import Transitions, Walks, explored
from bpe.pretokenization.unicode_tables import scripts

MAX_STATES: Final = 256
_NOT_SETTLED = 0xFFFF
_STARTS = 0x4000
_DROPS = 0x8000

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
    labels: by state and right context.
    end: right context at the end of the text.
    rights: number of right contexts.
    """

    classes: tuple[CodePoints, ...]
    then: list[list[int]]
    back: list[list[dict[int, Before]]]
    labels: list[dict[int, int]]
    end: int
    rights: int


def two_way_of(transitions: Transitions) -> TwoWay:
    """Return the bimachine of stages. Raise NotBoundedError if it is too large."""
    first: _State = ((transitions.first, 0, transitions.rights),)
    states, then, back = explored(
        first,
        transitions.examples,
        lambda state, character: _step(transitions, state, character),
        MAX_STATES,
    )
    labels = [{right: label for _, label, rights in state for right in _members(rights)} for state in states]
    return TwoWay(transitions.classes, then, back, labels, transitions.end, transitions.rights.bit_length())


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


def script_runs() -> TwoWay:
    """Return the bimachine of UnicodeScripts: a piece starts where the script changes.

    Characters without a script belong to the piece before them, and are dropped at the start of a text. No boundary
    depends on the text to its right, but states with actions would exceed the limit of 256.

    States: 0 at the start, 1 in dropped text, 2 + n in script n. The last class has no script.
    """
    known = scripts()
    none = len(known)
    states = range(none + 2)
    return TwoWay(
        (*known, ~CodePoints.union(known)),
        [[2 + script for script in range(none)] + [max(state, 1)] for state in states],
        [
            [{0: Before(0, state != 2 + script, False)} for script in range(none)]
            + [{0: Before(0, state == 0, state == 0)}]
            for state in states
        ],
        [{0: 0} for _ in states],
        0,
        1,
    )


def two_way_tables_of(automaton: TwoWay) -> Tables:
    """Return the tables. Raise NotBoundedError if states or classes do not fit into bytes."""
    states, classes = len(automaton.then), len(automaton.classes)
    check_size(states, classes)
    then = np.zeros((classes + 1, ROW), np.uint8)
    then[:-1, :states] = np.array(automaton.then).T
    then[-1, :states] = np.arange(states)
    settled = np.full(ROW, _NOT_SETTLED, np.uint16)
    for state, labels in enumerate(automaton.labels):
        if len(set(labels.values())) == 1:
            settled[state] = next(iter(labels))
    rows: dict[bytes, int] = {}
    row_of = np.zeros((classes + 1, ROW), np.uint32)
    for state, befores in enumerate(automaton.back):
        for number in range(classes):
            row = _row(befores[number], automaton)
            row_of[number, state] = rows.setdefault(row.tobytes(), len(rows))
    return Tables(
        then,
        (0, 0, 0, states),
        0,
        (),
        ((),) * states,
        (None,) * states,
        np.where(_cuts(automaton), Border.CUT, Border.DEPENDS).astype(np.uint8),
        *pages_of(automaton.classes),
        Back(
            np.frombuffer(b"".join(rows), np.uint16).reshape(len(rows), automaton.rights),
            row_of,
            settled,
            automaton.end,
        ),
    )


def _row(befores: dict[int, Before], automaton: TwoWay) -> NDArray[np.uint16]:
    row = np.full(automaton.rights, automaton.end, np.uint16)  # any value works for unreachable contexts
    for right, before in befores.items():
        row[right] = before.right | _STARTS * before.starts | _DROPS * before.drops
    return row


def _cuts(automaton: TwoWay) -> NDArray[np.bool_]:
    """Return whether a text can be cut between characters of two classes in any context.

    From every state, the second character must start a piece and lead to the same state as at the start of a text, and
    every continuation must agree with the end of the text on all earlier boundaries.
    """
    classes = range(len(automaton.classes))
    cuts = np.zeros((len(classes), len(classes)), np.bool_)
    for left in classes:
        behind = {row[left] for row in automaton.then}
        for right in classes:
            cuts[left, right] = all(
                automaton.then[state][right] == automaton.then[0][right]
                and all(
                    before.starts
                    and not before.drops
                    and automaton.labels[state][before.right] == automaton.labels[state][automaton.end]
                    for before in automaton.back[state][right].values()
                )
                for state in behind
            ) and not any(before.drops for before in automaton.back[0][right].values())
    return cuts
