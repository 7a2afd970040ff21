"""A loss mask from the tokens of one tokenizer to those of another, by way of the bytes of the text.

A new token is to be learned if one of its bytes was: where tokens of both lie across a border of the mask, somewhat
more is learned than before, never less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bpe.ragged import Ragged
from bpe.tokenizer import AllowedSpecial, Tokenizer
from convert.encode.marked_text import MarkedText, MarkedTokens
from convert.errors import BadInput
from flat_tokens.format import Bools
from tokenmill.inputs.batch import Batch, Marks


class MovedMask:
    """Encodes texts with the tokenizer `new`. Their ids by the tokenizer `old`, and the mask of these, are known."""

    def __init__(self, old: Tokenizer, new: Tokenizer) -> None:
        self._old, self._new = MarkedText(old), MarkedText(new)

    def encode(
        self,
        documents: Ragged,
        trained: Bools,
        texts: Sequence[str],
        allowed: tuple[AllowedSpecial, AllowedSpecial],
        names: Sequence[str],
    ) -> MarkedTokens:
        """The texts by the new tokenizer. documents, trained: their ids by the old one, and of each whether it is to be
        learned. allowed: special tokens of both that are recognised. names: of the documents, for BadInput, where a
        tokenizer changes the text so that the places of its tokens are not known."""
        batch = Batch.of([text.encode() for text in texts])
        places = self._old.places_of(documents, batch, allowed[0], batch.offsets[:-1])
        self._check(places.changed, names, "the old tokenizer")
        offsets = documents.offsets.astype(np.int64)
        of = np.repeat(np.arange(len(documents)), np.diff(offsets))
        begins = batch.offsets.astype(np.int64)[of]
        kept = trained & (places.starts < places.stops)
        stretches = np.stack([of, places.starts - begins, places.stops - begins], axis=1)[kept]
        marks = Marks(stretches, np.zeros((0, 2), np.int64), np.zeros(len(batch), np.bool_), of_chats=False)
        found = self._new.encode(replace(batch, marks=marks), allowed[1])
        self._check(found.changed, names, "the new tokenizer")
        return found

    def _check(self, changed: NDArray[np.int64], names: Sequence[str], which: str) -> None:
        if len(changed):
            raise BadInput(
                f"{names[int(changed[0])]}: {which} changes its text, so its loss mask cannot be mapped. Convert the "
                "original sources with the new tokenizer instead."
            )
