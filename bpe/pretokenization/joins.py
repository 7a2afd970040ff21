"""Where a text without a pre-tokenizer may be cut: between two characters that no merge ever joins.

If no product of a merge holds "ab", no merge crosses between a and b, whatever stands around: what is left of the
border and what is right of it are merged as if they were alone. So the text falls into pieces like those of a pattern,
told by each two neighbours, and an automaton whose state is the character before cuts it.

The core's tables have a class for each byte at most, and are fast for `MOST_CLASSES` of them. So characters of like
neighbours are one class. Classes join where two of their characters do, which makes pieces longer and no id another.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bpe.pretokenization.code_points import END
from bpe.pretokenization.tables import ROW, Border, Tables, pages_of_classes

MOST_CLASSES: Final = 60
_ALONE: Final = 0  # the class of characters that join nothing
_BLOCK: Final = 256  # code points beyond ASCII that begin as one class
# Blocks of ideographs and syllables, and from there on all planes.
_LARGE_BLOCKS: Final = ((0x3100, 0xAC00), (0xAC00, 0xD800), (0x10000, END))


def tables_of_joins(
    joined: NDArray[np.uint64], joins_unknown: bool, by_themselves: Collection[int] = ()
) -> Tables:
    """The tables that cut wherever two neighbours are none of the pairs.

    joined: uint64[pairs], left << 32 | right, code points. joins_unknown: characters that are in no pair may become one
    token where they stand together. by_themselves: ASCII that is to be no other's class.
    """
    left, right = (
        (joined >> np.uint64(32)).astype(np.int64),
        (joined & np.uint64(0xFFFFFFFF)).astype(np.int64),
    )
    class_of = _first_classes(left, right)
    count = int(class_of.max()) + 1
    pairs = np.zeros((count, count))
    np.add.at(pairs, (class_of[left], class_of[right]), 1)
    kept = {_ALONE, *class_of[list(by_themselves)].tolist()}
    new_class, joins = _merged(pairs > 0, 1 + pairs.sum(0) + pairs.sum(1), kept)
    class_of = new_class[class_of]
    joins[_ALONE, _ALONE] = joins_unknown
    return _tables(class_of, joins)


def _first_classes(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[code points]: letters of ASCII, digits, all other ASCII one by one, and blocks of what is beyond it."""
    points = np.unique(np.append(left, right))
    keys = np.where(points < 0x80, points, 0x80 + points // _BLOCK)
    for start, stop in _LARGE_BLOCKS:
        keys[(points >= start) & (points < stop)] = 0x80 + start // _BLOCK
    narrow = (points >= 0x3000) & (points < 0x3040) | (points >= 0xFF00) & (points < 0x10000)
    keys[narrow] = END + points[narrow]  # punctuation that cuts ideographs
    characters = points.astype(np.uint32)
    letters = (characters | 0x20) - ord("a") < 26
    keys[letters & (points < 0x80)] = ord("a")
    keys[characters - ord("0") < 10] = ord("0")
    # Beyond ASCII, by whether they may come first and last, too.
    keys = 4 * keys + np.where(points < 0x80, 0, np.isin(points, left) + 2 * np.isin(points, right))
    class_of = np.full(END, _ALONE, np.int64)
    class_of[points] = 1 + np.unique(keys, return_inverse=True)[1]
    return class_of


def joins_only_itself(joined: NDArray[np.uint64], code_point: int) -> bool:
    """Whether a character is in no pair with another."""
    left, right = joined >> np.uint64(32), joined & np.uint64(0xFFFFFFFF)
    return bool(
        (left[right == code_point] == code_point).all() and (right[left == code_point] == code_point).all()
    )


def _merged(
    joins: NDArray[np.bool_], weights: NDArray[np.float64], kept: Collection[int]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(new class by old one, bool[classes, classes]): the two made one, again and again, that join the least more.

    kept: classes that stay as they are.
    """
    members = {number: [number] for number in range(len(joins))}

    def more_joins(number: int) -> NDArray[np.float64]:
        """By other class, what joins more where the two are one; as it was when either last changed."""
        lacking = [
            (matrix[number] & ~matrix) @ weights * weights
            + (~matrix[number] & matrix) @ weights * weights[number]
            for matrix in (joins, joins.T)
        ]
        row = lacking[0] + lacking[1]
        row[[other for other in range(len(joins)) if other not in members or other in (number, *kept)]] = (
            np.inf
        )
        return np.full(len(joins), np.inf) if number in kept else row

    more = np.array([more_joins(number) for number in members])
    while len(members) > MOST_CLASSES:
        one, gone = map(int, np.unravel_index(np.argmin(more), more.shape))
        joins[one] |= joins[gone]
        joins[:, one] |= joins[:, gone]
        weights[one] += weights[gone]
        members[one] += members.pop(gone)
        more[gone], more[:, gone] = np.inf, np.inf
        more[one] = more[:, one] = more_joins(one)
    new_class = np.zeros(len(joins), np.int64)
    for number, each in enumerate(members.values()):
        new_class[each] = number
    left = list(members)
    return new_class, joins[np.ix_(left, left)]


def _tables(class_of: NDArray[np.int64], joins: NDArray[np.bool_]) -> Tables:
    """The state is what the character before joins, and whether a piece starts with it, which is due behind it."""
    rows, row_of = np.unique(np.vstack([np.zeros_like(joins[:1]), joins]), axis=0, return_inverse=True)
    row_of = row_of.reshape(-1)
    start, row_of, count = row_of[0], row_of[1:], len(rows)
    states = 2 * count  # of each row that with a start and that without
    then = np.zeros((len(joins) + 1, ROW), np.uint8)
    then[:-1, :states] = row_of[:, None] + count * np.tile(rows.T, 2)
    then[-1, :states] = np.tile(np.arange(count) + count, 2)
    page_of, pages = pages_of_classes(class_of.astype(np.uint8))
    return Tables(
        then,
        (0, 0, count, states),
        int(start) + count,
        (),
        ((),) * states,
        (None,) * states,
        np.where(joins, Border.INSIDE, Border.CUT).astype(np.uint8),
        page_of,
        pages,
        by_joins=True,
    )
