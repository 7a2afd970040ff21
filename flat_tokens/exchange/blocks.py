"""What passes between a dataset and a format: blocks of ids, in order, with the places where documents end.

[[1, 2], [], [3, 4, 5]] in blocks of up to 3 ids is Block([1, 2, 3], [2, 2]), Block([4, 5], [2]): the empty document
ends where the one before it does. A document that ends with the last id of a block may end there, at 3, or at 0 of the
next block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens import format as flat_format
from flat_tokens.errors import CONVERT_AGAIN, damaged
from flat_tokens.reader import FlatTokensArray

BLOCK_TOKENS = 2**20  # some megabytes, and whole zarr chunks of the usual layouts
NO_ENDS = np.empty(0, dtype=np.int64)
NO_TOKEN = -1  # where a token id may be given, and a person said that there is none

Ids = npt.NDArray[Any]
Ends = npt.NDArray[np.int64]


class Block(NamedTuple):
    """ids: integers[n], of whatever type a file has; ends: int64, places in [0, n] where documents end, not falling;
    None where the file says nothing of documents. trained: bool[n], whether each token is to be learned; None for
    all."""

    ids: Ids
    ends: Ends | None
    trained: flat_format.Bools | None = None


def blocks_of(split: FlatTokensArray) -> Iterator[Block]:
    """A split's tokens, ids as uint32. DatasetError where start flags and seq_starts disagree."""
    seq_count = 0
    for start in range(0, split.token_count, BLOCK_TOKENS):
        stop = min(start + BLOCK_TOKENS, split.token_count)
        encoded = split.encoded_tokens[start:stop]
        ends = np.flatnonzero(flat_format.decode_start_flags(encoded))
        seq_count += len(ends)
        if start == 0:
            if len(ends) == 0 or ends[0] != 0:
                raise damaged(split.name, "token 0 must start a sequence", CONVERT_AGAIN)
            ends = ends[1:]
        if stop == split.token_count:
            ends = np.append(ends, stop - start)
        trained = None if split.loss_mask is None else split.loss_mask[start:stop]
        yield Block(flat_format.decode_ids(encoded), ends, trained)
    if seq_count != split.seq_count:
        what = f"start flags must agree with the {split.seq_count} sequences of seq_starts (got {seq_count})"
        raise damaged(split.name, what, CONVERT_AGAIN)


def append_token(blocks: Iterator[Block], token: int) -> Iterator[Block]:
    """The same documents with a token behind each. [[1, 2], [3]], 9 -> [[1, 2, 9], [3, 9]]."""
    for ids, ends, trained in blocks:
        assert ends is not None
        bits = None if trained is None else np.insert(trained, ends, True)  # a model learns to stop
        yield Block(np.insert(ids, ends, token), ends + np.arange(1, len(ends) + 1), bits)


def cut_at(blocks: Iterator[Block], token: int, place: str) -> Iterator[Block]:
    """The same ids, documents cut at each such token and nowhere else; what follows the last is one more document, if
    there is anything.

    token: NO_TOKEN for one document. place: where the token belongs, "last" of the document before it, "first" of the
    one behind it, or "dropped". 9 in [1, 9, 2]: [[1, 9], [2]], [[1], [9, 2]] or [[1], [2]]."""
    is_open = False
    for ids, _, _ in blocks:
        found = NO_ENDS if token == NO_TOKEN else np.flatnonzero(ids == token)
        ends = found + 1 if place == "last" else found
        if place == "dropped" and len(found):
            ids = np.delete(ids, found)
            ends = found - np.arange(len(found))
        elif place == "first" and not is_open and len(ends) and ends[0] == 0:
            ends = ends[1:]  # nothing is before it
        last = int(ends[-1]) if len(ends) else 0
        is_open = len(ids) > last or (is_open and not len(ends))
        yield Block(ids, ends)
    if is_open:
        yield Block(np.empty(0, np.uint32), np.zeros(1, np.int64))
