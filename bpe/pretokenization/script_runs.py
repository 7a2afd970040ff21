"""The automaton of UnicodeScripts: a piece starts where the script changes.

Characters without a script belong to the piece before them, and are dropped at the start of a text. The state is the
last script. Adding actions to the states would exceed the limit of 256 states, so this is a bimachine (`two_way`),
although no boundary depends on the text to its right.
"""

from __future__ import annotations

from bpe.pretokenization.classes import Classes
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.two_way import Before, TwoWay
from bpe.pretokenization.unicode_tables import scripts


def script_runs() -> TwoWay:
    """Return the bimachine.

    States: 0 at the start, 1 in dropped text, 2 + n in script n. The last class has no script.
    """
    known = scripts()
    none = len(known)
    classes = Classes((*known, ~CodePoints.union(known)))
    states = range(none + 2)
    return TwoWay(
        classes,
        [[2 + script for script in range(none)] + [max(state, 1)] for state in states],
        [
            [{0: Before(0, state != 2 + script, False)} for script in range(none)]
            + [{0: Before(0, state == 0, state == 0)}]
            for state in states
        ],
        [0 for _ in states],
        [{0: 0} for _ in states],
        0,
        1,
    )
