"""The C++ loops of convert as Python sees them: hashes of documents, JSON Lines, ids on their way to a dataset.

Offsets are 64-bit. The GIL is released.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def hash_documents(buffer: Buffer, separator: bytes, seed: int) -> NDArray[np.uint64]:
    """XXH64 of each document's bytes, the rows of encode_documents."""

def hash_ragged(buffer: Buffer, offsets: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """XXH64 of the bytes of each row [offsets[i], offsets[i + 1]) of the buffer."""

def json_texts(
    lines: Buffer,
    path: Sequence[bytes],
    out: NDArray[np.uint8],
    replace_surrogates: bool = False,
    max_line_bytes: int = ...,
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], list[tuple[int, int, int, str]], int, int, int]:
    """The strings that JSON Lines have at `path`, end to end in `out`, which has len(lines) + 16 bytes of room.

    (offsets uint64[texts + 1] in out, starts uint64[texts] of their lines, the lines without a text, how many lines,
    blank ones, surrogates replaced). A line without a text: (start, stop, place of the fault, its name in
    json_line.hpp). lines must be valid UTF-8.
    """

class JsonLongLine:
    """A line for `json_texts` that comes in pieces, without its LF: the same text, the same faults."""

    def __init__(self, path: Sequence[bytes], replace_surrogates: bool = False) -> None: ...
    def feed(self, piece: Buffer, final: bool, out: NDArray[np.uint8]) -> tuple[int, int]:
        """(bytes used, bytes of text written to out); what was not used, under 12 bytes, belongs before the next piece.

        piece: valid UTF-8 cut between characters; out has len(piece) + 16 bytes of room. After a fault all is used.
        """

    @property
    def fault(self) -> str:
        """What is wrong, as by `json_texts`, "none" so far; known for sure after the final piece."""

    @property
    def place(self) -> int:
        """Of the byte at fault in the line."""

    @property
    def is_blank(self) -> bool:
        """Nothing but white space so far."""

    @property
    def replaced(self) -> int:
        """Surrogates replaced so far."""

def narrow_ids(ids: NDArray[np.uint32], out: NDArray[np.uint16]) -> int:
    """The highest of the ids (0: none), whose low halves are written to out; above 65535 something was lost."""

def deal_out(
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
