"""The ids of marked text, each with whether it is to be learned.

A text is encoded as a whole, so its ids are those of any encoder; a token is to be learned if one of its bytes is.
Where the bytes of a token lie follows from the texts of the entries, which end to end are the text, but for spaces that
a tokenizer puts in front or takes away beside added tokens: such documents are gone through token by token. For a text
that a normalizer changes in another way it is asked for the offsets of the tokens, which is slow, and rare.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpe.errors import UnsupportedTokenizer
from bpe.ragged import Ragged
from bpe.tokenizer import AllowedSpecial, Tokenizer
from tokenmill.inputs.batch import Batch
from tokenmill.stores.system import cached_property

if TYPE_CHECKING:
    from bpe.compat.huggingface import Tokenizer as WithOffsets

_BYTE_ENTRY = re.compile(rb"<0x([0-9A-F]{2})>")
_SPACE = "\u2581".encode()
LARGEST_TABLE = 2**22  # ids, of 8 bytes each; ids may be as large as 2^31 - 1


class MarkedTokens(NamedTuple):
    """tokens: uint32; is_trained: of each, whether it is to be learned; offsets: uint64[documents + 1].

    changed: documents for whose tokens no place in the text was found; if there are some, nothing else is of use.
    """

    tokens: NDArray[np.uint32]
    is_trained: NDArray[np.bool_]
    offsets: NDArray[np.uint64]
    changed: NDArray[np.int64]


class TokenPlaces(NamedTuple):
    """starts, stops: int64 of each token, bytes of the batch's text. changed: see MarkedTokens."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    changed: NDArray[np.int64]


class MarkedText:
    """Encodes batches with marks."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def encode(
        self, batch: Batch, allowed: AllowedSpecial, out: NDArray[np.uint32] | None = None
    ) -> MarkedTokens:
        """out: room for the ids, as encode_ragged takes it."""
        assert batch.marks is not None
        trained, cuts = batch.marks.trained, batch.marks.cuts
        bounds = batch.offsets.astype(np.int64)
        borders = np.sort(np.concatenate([bounds[:-1], bounds[cuts[:, 0]] + cuts[:, 1]])).astype(np.uint64)
        rows = self._tokenizer.encode_ragged(
            batch.text, np.append(borders, batch.offsets[-1]), allowed_special=allowed, checked=True, out=out
        )
        first_rows = np.searchsorted(borders, batch.offsets[:-1], side="left")
        offsets = rows.offsets[np.append(first_rows, len(borders))]
        places = self.places_of(Ragged(rows.tokens, offsets), batch, allowed, borders)
        is_trained = np.zeros(len(rows.tokens), np.bool_)
        if not len(places.changed):
            begin, end = bounds[trained[:, 0]] + trained[:, 1], bounds[trained[:, 0]] + trained[:, 2]
            at = np.searchsorted(
                end, places.starts, side="right"
            )  # the first stretch that ends behind a token's start
            is_trained = np.append(begin, np.iinfo(np.int64).max)[at] < places.stops
        return MarkedTokens(rows.tokens, is_trained, offsets, places.changed)

    def places_of(
        self, documents: Ragged, batch: Batch, allowed: AllowedSpecial, borders: NDArray[np.uint64]
    ) -> TokenPlaces:
        """Where the tokens of a batch's documents lie in its text. borders: the places in it, rising, at which the
        encoding began, those of the documents among them."""
        bounds, firsts = batch.offsets.astype(np.int64), documents.offsets.astype(np.int64)
        tokens = documents.tokens
        ends = np.concatenate([[0], np.cumsum(self._lengths_of(tokens))])
        # Where each document's tokens would begin if the texts of all before it were as long as they should be.
        moved = np.repeat(bounds[:-1] - ends[firsts[:-1]], np.diff(firsts))
        starts, stops = ends[:-1] + moved, ends[1:] + moved
        changed = []
        doubtful = np.diff(ends[firsts]) != np.diff(bounds)
        if self._may_change_text:  # to a text that may be as long
            doubtful[:] = True
        for document in np.flatnonzero(doubtful).tolist():
            own, (begin, end) = slice(*firsts[document : document + 2]), bounds[document : document + 2]
            text, ids = bytes(memoryview(batch.text)[begin:end]), tokens[own].tolist()
            if b"".join(map(self._texts.__getitem__, ids)) == text:
                continue
            places = self._places(text, ids)
            if places is None:
                within = borders[(borders > begin) & (borders < end)].astype(np.int64) - begin
                with suppress(UnsupportedTokenizer):  # of a component that the interface has not
                    places = self._told_places(text, within.tolist(), ids, allowed)
            if places is None:
                changed.append(document)
            else:
                starts[own], stops[own] = begin + places[0], begin + places[1]
        return TokenPlaces(starts, stops, np.array(changed, dtype=np.int64))

    def _places(self, text: bytes, ids: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Where each token begins and ends in a text whose white space may differ; None where more does."""
        starts, stops = [], []
        at = 0
        for id_ in ids:
            own = self._texts[id_]
            if not text.startswith(own, at):
                if own[:1] == b" " and text.startswith(own[1:], at):  # a space that was put in front
                    own = own[1:]
                else:  # white space that was taken away
                    while text[at : at + 1].isspace() and not text.startswith(own, at):
                        at += 1
                    if not text.startswith(own, at):
                        return None
            starts.append(at)
            at += len(own)
            stops.append(at)
        return None if text[at:].strip() else (np.array(starts), np.array(stops))

    def _told_places(
        self, text: bytes, cuts: list[int], ids: list[int], allowed: AllowedSpecial
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """The same as the interface of tokenizers tells it, cut by cut; None where its ids are others."""
        self._with_offsets.encode_special_tokens = allowed != "all"
        found: list[int] = []
        places: list[NDArray[np.int64]] = []
        for begin, end in pairwise([0, *cuts, len(text)]):
            piece = text[begin:end].decode()
            encoding = self._with_offsets.encode(piece, add_special_tokens=False)
            found += encoding.ids
            byte_of = np.cumsum([0, *(len(char.encode()) for char in piece)]) + begin
            places.append(byte_of[np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)])
        if found != ids:
            return None
        starts, stops = np.concatenate(places).T
        return starts, stops

    @cached_property
    def _may_change_text(self) -> bool:
        tokenizer = self._tokenizer
        return (
            tokenizer.normalizer is not None
            or tokenizer.text_rules is not None
            or tokenizer.pretokenizer.changes_text
        )

    @cached_property
    def _with_offsets(self) -> WithOffsets:
        from bpe.compat.huggingface import Tokenizer as WithOffsets

        return WithOffsets.from_tokenizer(self._tokenizer)

    @cached_property
    def _texts(self) -> dict[int, bytes]:
        """The text of each entry in a text."""
        texts = dict(self._tokenizer.vocab)
        texts |= {id_: text.encode() for text, id_ in self._tokenizer.special_tokens.items()}
        if self._tokenizer.text_rules is None:
            return texts
        return {
            id_: bytes([int(match[1], 16)])
            if (match := _BYTE_ENTRY.fullmatch(text))
            else text.replace(_SPACE, b" ")
            for id_, text in texts.items()
        }

    def _lengths_of(self, tokens: NDArray[np.uint32]) -> NDArray[np.int64]:
        ids, lengths = self._lengths
        return lengths[tokens if ids is None else np.searchsorted(ids, tokens)]

    @cached_property
    def _lengths(self) -> tuple[NDArray[np.uint32] | None, NDArray[np.int64]]:
        """(the ids, rising, None where a length of each number up to the largest id takes little memory; lengths)."""
        ids = np.array(sorted(self._texts), dtype=np.uint32)
        found = np.array([len(self._texts[id_]) for id_ in ids.tolist()], dtype=np.int64)
        if self._tokenizer.max_token_id > LARGEST_TABLE:
            return ids, found
        lengths = np.zeros(self._tokenizer.max_token_id + 1, dtype=np.int64)
        lengths[ids] = found
        return None, lengths
