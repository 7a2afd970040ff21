"""The C++ loops of convert as Python sees them: ids on their way to a dataset.

Offsets are 64-bit. The GIL is released.
"""

import numpy as np
from numpy.typing import NDArray

def partition_by_split(
    ids: NDArray[np.uint32],
    offsets: NDArray[np.uint64],
    marked: NDArray[np.bool_],
    before: tuple[int, int],
    out: NDArray[np.uint16] | NDArray[np.uint32],
    starts: NDArray[np.uint64],
    front: int | None = None,
    back: int | None = None,
) -> tuple[tuple[int, int, int, int], tuple[int, int, int, int]]:
    """Put rows [offsets[i], offsets[i + 1]) of ids apart: those that are not marked to the front of out, the marked
    ones behind them; and where they begin among their kind, if they are not empty, likewise to starts, `before` ids of
    each kind having come earlier. Of each kind: ids, rows that are not empty, the longest of them, the highest id;
    above 65535 something was lost in uint16. front, back: ids around each row that is not empty. ValueError if offsets,
    marked, out (as many as ids, and rows for each of front and back) or starts (as many as rows) do not fit.

    [1, 2, 3, 4], offsets [0, 1, 3, 4], marked [F, T, F], before (7, 9) -> out [1, 4, 2, 3], starts [7, 8, 9],
    ((2, 2, 1, 4), (2, 1, 2, 3))
    """

def flag_ids(
    ids: NDArray[np.uint16] | NDArray[np.uint32],
    starts: NDArray[np.uint64],
    first: int,
    out: NDArray[np.uint32],
) -> None:
    """Write ids * 2 to out, and 1 more where one of the starts is: they lie in [first, first + len(ids)).

    [1, 2, 3], starts [10, 12], first 10 -> [3, 4, 7]. ValueError for a start outside, or an out that is too small.
    """
