"""Pretokens as letters, for training with initial entries other than all bytes.

A letter is a byte or, in text, a character. Its position in a pretoken is a number of two bits: 1 at the end, 2 after
the start. b"abc" has the letters a, b, c at the positions 2 * 0 + 0, 2 * 1 + 0, 2 * 1 + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bpe.errors import BadArgument, shown
from bpe.pretoken_counts.counts import PretokenCounts

POSITIONS: Final = range(4)


def count_letters(counts: PretokenCounts, of_text: bool) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return the number of occurrences of each letter (uint64) and its positions (uint8, bit p for position p).

    Occurrences are weighted by the counts of the pretokens.

    of_text: letters are the 0x110000 characters of pretokens that are UTF-8, otherwise the 256 bytes.
    """
    size = 0x110000 if of_text else 256
    occurrences, seen = np.zeros(size, np.uint64), np.zeros(size, np.uint8)
    for text, ends, weights in counts.blocks():
        letters, positions, stops = _letters(text, ends, of_text)
        np.add.at(occurrences, letters, np.repeat(weights, np.diff(stops, prepend=0)))
        for position in POSITIONS:
            seen[letters[positions == position]] |= np.uint8(1 << position)
    return occurrences, seen


def letter_ids(
    counts: PretokenCounts, ids: Sequence[NDArray[np.int32]]
) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Return the IDs of the letters, concatenated (uint32), and the end of each pretoken in them (uint64[pretokens]).

    ids: per position, int32 by letter. A negative ID drops the letter.
    """
    id_of = np.stack(ids)
    found = np.empty(len(counts.pretoken_bytes), np.uint32)  # untouched pages take no memory
    found_ends = np.empty(len(counts), np.uint64)
    size = pretokens = 0
    for text, ends, _ in counts.blocks():
        letters, positions, stops = _letters(text, ends, id_of.shape[1] > 256)
        block = id_of[positions, letters]
        kept = block >= 0
        kept_before = np.concatenate([[0], np.cumsum(kept)])
        found_ends[pretokens : pretokens + len(ends)] = size + kept_before[stops]
        found[size : size + kept_before[-1]] = block[kept]
        size, pretokens = size + int(kept_before[-1]), pretokens + len(ends)
    return found[:size], found_ends


def _letters(
    text: NDArray[np.uint8], ends: NDArray[np.uint64], of_text: bool
) -> tuple[NDArray[np.uint8] | NDArray[np.uint32], NDArray[np.uint8], NDArray[np.int64]]:
    """Return the letters of concatenated pretokens, their positions, and the end of each pretoken in them."""
    letters: NDArray[np.uint8] | NDArray[np.uint32] = text
    stops = ends.astype(np.int64)
    if of_text:
        try:
            letters = np.frombuffer(str(text.data, "utf-8").encode("utf-32-le"), np.uint32)
        except UnicodeDecodeError as error:
            got = shown(error.object[error.start : error.end])
            raise BadArgument(
                f"counts: pretokens must be UTF-8 for entries that are text (got {got})"
            ) from None
        stops = np.concatenate([[0], np.cumsum((text & 0xC0) != 0x80)])[stops]
    starts = np.concatenate([[0], stops[:-1]])
    positions = np.full(len(letters), 2, np.uint8)
    positions[starts[starts < stops]] = 0
    positions[stops[starts < stops] - 1] |= 1
    return letters, positions, stops
