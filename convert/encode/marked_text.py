"""The ids of marked text, each with whether it is to be learned.

A text is encoded as a whole, so its ids are those of any encoder; a token is to be learned if one of its bytes is.
Where the bytes of a token lie follows from the lengths of the entries, which together must be the text. A text that the
tokenizer changes (a normalizer, an added token that takes white space with it) is told, and gets no ids: where its
tokens lie is not known.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpe.tokenizer import AllowedSpecial, Tokenizer
from convert.shards.shard import NOT_TRAINED
from corpus.batch import Batch

_BYTE_ENTRY = re.compile(rb"<0x[0-9A-F]{2}>")
_SPACE = "\u2581".encode()


class MarkedTokens(NamedTuple):
    """tokens: uint32, with NOT_TRAINED where a token is not to be learned; offsets: uint64[documents + 1]. changed:
    documents whose text is not that of their tokens; if there are some, nothing else is of use."""

    tokens: NDArray[np.uint32]
    offsets: NDArray[np.uint64]
    changed: NDArray[np.int64]


class MarkedText:
    """Encodes batches with marks."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def encode(self, batch: Batch, allowed: AllowedSpecial, out: NDArray[np.uint32]) -> MarkedTokens:
        """out: room for the ids, as encode_ragged takes it."""
        assert batch.marks is not None
        trained, cuts, _ = batch.marks
        begins = batch.offsets[:-1].astype(np.int64)
        borders = np.sort(np.concatenate([begins, begins[cuts[:, 0]] + cuts[:, 1]])).astype(np.uint64)
        rows = self._tokenizer.encode_ragged(
            batch.text, np.append(borders, batch.offsets[-1]), allowed_special=allowed, checked=True, out=out
        )
        first_rows = np.searchsorted(borders, batch.offsets[:-1], side="left")
        offsets = rows.offsets[np.append(first_rows, len(borders))]
        tokens, firsts = rows.tokens, offsets[:-1].astype(np.int64)
        lengths = self._lengths[tokens]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        beyond = np.diff(ends[offsets.astype(np.int64)]) - np.diff(batch.offsets).astype(np.int64)
        for document in np.flatnonzero(beyond == 1).tolist():  # a space that the tokenizer puts in front
            if self._begin_with_space[tokens[firsts[document]]]:
                lengths[firsts[document]] -= 1
                beyond[document] = 0
        changed = np.flatnonzero(beyond)
        if not len(changed):
            stops = np.cumsum(lengths)
            begin, end = begins[trained[:, 0]] + trained[:, 1], begins[trained[:, 0]] + trained[:, 2]
            at = np.searchsorted(
                end, stops - lengths, side="right"
            )  # the first stretch that ends behind its begin
            is_trained = np.append(begin, np.iinfo(np.int64).max)[at] < stops
            tokens |= np.where(is_trained, np.uint32(0), NOT_TRAINED)
        return MarkedTokens(tokens, offsets, changed)

    @cached_property
    def _texts(self) -> dict[int, bytes]:
        """The text of each entry in a text."""
        texts = dict(self._tokenizer.vocab)
        if self._tokenizer.text_rules is not None:
            texts = {
                id_: b"?" if _BYTE_ENTRY.fullmatch(text) else text.replace(_SPACE, b" ")
                for id_, text in texts.items()
            }
        return texts | {id_: text.encode() for text, id_ in self._tokenizer.special_tokens.items()}

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        found = np.zeros(self._tokenizer.max_token_id + 1, dtype=np.int64)
        found[list(self._texts)] = [len(text) for text in self._texts.values()]
        return found

    @cached_property
    def _begin_with_space(self) -> NDArray[np.bool_]:
        found = np.zeros(self._tokenizer.max_token_id + 1, dtype=np.bool_)
        found[list(self._texts)] = [text.startswith(b" ") for text in self._texts.values()]
        return found
