"""The automaton of UnicodeScripts: a piece starts at a character whose script is not that of the last one that has any.

Characters without a script belong to the piece before; where there is none they are dropped. The state is the last
script. One that also told whether a piece starts would have more states than there are, so it goes back (`two_way`),
though nothing hangs on what is to the right.
"""

from __future__ import annotations

from bpe.pretokenization.classes import Classes
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.two_way import Before, TwoWay
from bpe.pretokenization.unicode_tables import scripts


def script_runs() -> TwoWay:
    """State 0: at the start, 1: in what is dropped, 2 + n: in script n. The last class is that of no script."""
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
