"""The tokens of documents with a loss mask, each with whether it is trained.

A document is encoded as a whole, so its IDs are the usual ones. A token is trained if one of its bytes is. The bytes of
a token follow from the texts of the entries: end to end they are the document, except for spaces that a tokenizer adds
or removes next to added tokens; such documents are matched token by token. If a normalizer changes a text in another
way, the offsets come from the slower encoder with offsets.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe.errors import UnsupportedTokenizer
from bpe.ragged import Ragged
from bpe.tokenizer import AllowedSpecial, Tokenizer
from convert.shards.shard import NOT_TRAINED
from tokenmill.inputs.batch import Batch
from tokenmill.stores.system import cached_property

if TYPE_CHECKING:
    from bpe.compat.huggingface import Tokenizer as WithOffsets

_BYTE_ENTRY = re.compile(rb"<0x([0-9A-F]{2})>")
_SPACE = "\u2581".encode()
Spans = tuple[NDArray[np.int64], NDArray[np.int64]]  # starts, stops


class MarkedText:
    """Encodes batches with marks."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def encode(
        self, batch: Batch, allowed: AllowedSpecial, out: NDArray[np.uint32] | None = None
    ) -> tuple[Ragged, Batch, NDArray[np.int64]]:
        """Return the tokens of the documents in which tokens can be located, these documents, and the other rows.

        Tokens that are not trained have the mark NOT_TRAINED. out: memory for the IDs, as for `encode_ragged`.
        """
        assert batch.marks is not None
        trained, cuts = batch.marks.trained, batch.marks.cuts
        bounds = batch.offsets.astype(np.int64)
        starts = np.sort(np.concatenate([bounds[:-1], bounds[cuts[:, 0]] + cuts[:, 1]])).astype(np.uint64)
        rows = self._tokenizer.encode_ragged(
            batch.text, np.append(starts, batch.offsets[-1]), allowed_special=allowed, checked=True, out=out
        )
        first_rows = np.searchsorted(starts, batch.offsets[:-1], side="left")
        documents = Ragged(rows.tokens, rows.offsets[np.append(first_rows, len(starts))])
        (first_bytes, stops), changed = self._spans(documents, batch, allowed, starts)
        if len(changed):
            return *self.encode(batch.without(changed), allowed, out)[:2], changed
        begin, end = bounds[trained[:, 0]] + trained[:, 1], bounds[trained[:, 0]] + trained[:, 2]
        # For each token, the first trained span that ends after its start.
        span = np.searchsorted(end, first_bytes, side="right")
        documents.tokens[np.append(begin, np.iinfo(np.int64).max)[span] >= stops] |= NOT_TRAINED
        return documents, batch, changed

    def _spans(
        self, documents: Ragged, batch: Batch, allowed: AllowedSpecial, row_starts: NDArray[np.uint64]
    ) -> tuple[Spans, NDArray[np.int64]]:
        """Return the spans of tokens in the text of a batch, and documents with tokens that could not be located.

        row_starts: offsets of documents and cuts.
        """
        bounds, firsts = batch.offsets.astype(np.int64), documents.offsets.astype(np.int64)
        tokens = documents.tokens
        ends = np.concatenate([[0], np.cumsum(self._lengths[tokens])])
        # Right for every document that has the same length as its entries, whatever precedes it.
        moved = np.repeat(bounds[:-1] - ends[firsts[:-1]], np.diff(firsts))
        starts, stops = ends[:-1] + moved, ends[1:] + moved
        changed = []
        # A normalizer may change a text to another one of the same length.
        is_doubtful = (np.diff(ends[firsts]) != np.diff(bounds)) | self._may_change_text
        for document in np.flatnonzero(is_doubtful).tolist():
            own, (begin, end) = slice(*firsts[document : document + 2]), bounds[document : document + 2]
            text, ids = bytes(memoryview(batch.text)[begin:end]), tokens[own].tolist()
            if b"".join(map(self._texts.__getitem__, ids)) == text:
                continue
            spans = self._match(text, ids)
            if spans is None:
                cuts = row_starts[(row_starts > begin) & (row_starts < end)].astype(np.int64) - begin
                with suppress(UnsupportedTokenizer):
                    spans = self._spans_with_offsets(text, cuts.tolist(), ids, allowed)
            if spans is None:
                changed.append(document)
            else:
                starts[own], stops[own] = begin + spans[0], begin + spans[1]
        return (starts, stops), np.array(changed, dtype=np.int64)

    def _match(self, text: bytes, ids: list[int]) -> Spans | None:
        """Locate tokens in a text that differs in white space only, else return None."""
        starts, stops, offset = [], [], 0
        for id_ in ids:
            own = self._texts[id_]
            if own[:1] == b" " and not text.startswith(own, offset) and text.startswith(own[1:], offset):
                own = own[1:]  # an added space
            while not text.startswith(own, offset) and text[offset : offset + 1].isspace():
                offset += 1  # removed white space
            if not text.startswith(own, offset):
                return None
            starts.append(offset)
            offset += len(own)
            stops.append(offset)
        return None if text[offset:].strip() else (np.array(starts), np.array(stops))

    def _spans_with_offsets(
        self, text: bytes, cuts: list[int], ids: list[int], allowed: AllowedSpecial
    ) -> Spans | None:
        """Locate tokens with the encoder that returns offsets, or return None if its IDs differ."""
        self._with_offsets.encode_special_tokens = allowed != "all"
        found: list[int] = []
        spans: list[NDArray[np.int64]] = []
        for begin, end in pairwise([0, *cuts, len(text)]):
            part = text[begin:end].decode()
            encoding = self._with_offsets.encode(part, add_special_tokens=False)
            found += encoding.ids
            byte_of = np.cumsum([0, *(len(char.encode()) for char in part)]) + begin
            spans.append(byte_of[np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)])
        if found != ids:
            return None
        starts, stops = np.concatenate(spans).T
        return starts, stops

    @cached_property
    def _may_change_text(self) -> bool:
        tokenizer = self._tokenizer
        has_rules = tokenizer.normalizer is not None or tokenizer.text_rules is not None
        return has_rules or tokenizer.pretokenizer.changes_text

    @cached_property
    def _with_offsets(self) -> WithOffsets:
        from bpe.compat.huggingface import Tokenizer as WithOffsets

        return WithOffsets.from_tokenizer(self._tokenizer)

    @cached_property
    def _texts(self) -> dict[int, bytes]:
        """The text of each entry, as it occurs in documents."""
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

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        """The length of each entry by ID."""
        lengths = np.zeros(self._tokenizer.max_token_id + 1, np.int64)  # takes memory only where it is used
        lengths[[*self._texts]] = [*map(len, self._texts.values())]
        return lengths
