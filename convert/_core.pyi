"""The C++ loops of convert. Offsets are 64-bit, and the GIL is released."""

import numpy as np
from numpy.typing import NDArray

def partition_by_split(
    ids: NDArray[np.uint32],
    offsets: NDArray[np.uint64],
    validation: NDArray[np.bool_],
    before: tuple[int, int],
    words: NDArray[np.uint32],
    starts: NDArray[np.uint64],
    front: int | None = None,
    back: int | None = None,
    has_mask: bool = False,
) -> tuple[tuple[int, int, int, int], tuple[int, int, int, int]]:
    """Separate documents by split and encode their IDs as the dataset stores them: id * 2, plus 1 at the first.

    ids, offsets: document i is ids[offsets[i]:offsets[i + 1]]; with has_mask, bit 31 of an ID means "not trained", and
    it is also bit 31 of the word.
    before: words of train and validation that came earlier.
    words: gets the words of train, then of validation.
    starts: gets the offset of the first word of each document that is not empty, likewise.
    front, back: IDs to add around each document that is not empty.

    Returns (words, documents that are not empty, words that are not trained, highest ID) for each split. ValueError if
    the sizes of the arrays do not fit.

    [1, 2, 3, 4], offsets [0, 1, 3, 4], validation [F, T, F], before (7, 9) -> words [3, 9, 5, 6], starts [7, 8, 9],
    ((2, 2, 0, 4), (2, 1, 0, 3))
    """
