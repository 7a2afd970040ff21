"""The tables that the core uses to run a bimachine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bpe.pretokenization.tables import ROW, Back, Border, Tables, alike, pages_of
from bpe.pretokenization.transitions import NotBoundedError
from bpe.pretokenization.two_way import Before, TwoWay

_NOT_SETTLED = 0xFFFF
_STARTS = 0x4000
_DROPS = 0x8000


def two_way_tables_of(automaton: TwoWay) -> Tables:
    """Return the tables. Raise NotBoundedError if states or classes do not fit into bytes."""
    states = len(automaton.then)
    members = alike(
        [
            [(following, tuple(sorted(befores.items()))) for following, befores in zip(*row, strict=True)]
            for row in zip(automaton.then, automaton.back, strict=True)
        ]
    )
    if states > ROW or len(members) >= ROW:
        raise NotBoundedError(f"{states} states and {len(members)} classes, more than {ROW}")
    first = [each[0] for each in members]
    classes = automaton.classes.joined(members)
    then = np.zeros((len(members) + 1, ROW), np.uint8)
    then[:-1, :states] = np.array(automaton.then)[:, first].T
    then[-1, :states] = np.arange(states)
    settled = np.full(ROW, _NOT_SETTLED, np.uint16)
    for state, right in enumerate(automaton.settled):
        if right is not None:
            settled[state] = right
    rows: dict[bytes, int] = {}
    row_of = np.zeros((len(members) + 1, ROW), np.uint32)
    for number, class_ in enumerate(first):
        for state in range(states):
            row = _row(automaton.back[state][class_], automaton)
            row_of[number, state] = rows.setdefault(row.tobytes(), len(rows))
    page_of, pages = pages_of(classes)
    return Tables(
        then,
        (0, 0, 0, states),
        0,
        (),
        ((),) * states,
        (None,) * states,
        np.where(_cuts(automaton, first), Border.CUT, Border.DEPENDS).astype(np.uint8),
        page_of,
        pages,
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


def _cuts(automaton: TwoWay, classes: list[int]) -> NDArray[np.bool_]:
    """Return whether a text can be cut between characters of two classes in any context.

    From every state, the second character must start a piece and lead to the same state as at the start of a text, and
    every continuation must agree with the end of the text on all earlier boundaries.
    """
    cuts = np.zeros((len(classes), len(classes)), np.bool_)
    for left, left_class in enumerate(classes):
        behind = {row[left_class] for row in automaton.then}
        for right, right_class in enumerate(classes):
            cuts[left, right] = all(
                automaton.then[state][right_class] == automaton.then[0][right_class]
                and all(
                    before.starts
                    and not before.drops
                    and automaton.labels[state][before.right] == automaton.labels[state][automaton.end]
                    for before in automaton.back[state][right_class].values()
                )
                for state in behind
            ) and not any(before.drops for before in automaton.back[0][right_class].values())
    return cuts
