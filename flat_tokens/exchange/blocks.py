"""Blocks: the tokens that pass between a dataset and a format, a bounded part at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flat_tokens import format as flat_format
from flat_tokens.errors import CONVERT_AGAIN, damaged
from flat_tokens.exchange.formats import NO_TOKEN
from flat_tokens.reader import FlatTokensArray
from flat_tokens.split_writer import Block

BLOCK_TOKENS = 2**20
NO_ENDS = np.empty(0, dtype=np.int64)


def blocks_of(split: FlatTokensArray) -> Iterator[Block]:
    """Yield the tokens of a split, with all ends. Raise DatasetError if start flags and seq_starts disagree."""
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
    """Append a trained token to each document. [[1, 2], [3]], 9 -> [[1, 2, 9], [3, 9]]."""
    for ids, ends, trained in blocks:
        assert ends is not None
        bits = None if trained is None else np.insert(trained, ends, True)
        yield Block(np.insert(ids, ends, token), ends + np.arange(1, len(ends) + 1), bits)


def cut_at(blocks: Iterator[Block], token: int, place: str) -> Iterator[Block]:
    """Cut documents at each separator token and nowhere else. Tokens after the last one are a document, too.

    token: the separator, or NO_TOKEN for one document.
    place: "last" of the document before it, "first" of the document after it, or "dropped". With separator 9,
        [1, 9, 2] is [[1, 9], [2]], [[1], [9, 2]] or [[1], [2]].
    """
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
