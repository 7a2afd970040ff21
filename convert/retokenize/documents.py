"""Documents from the ids of one tokenizer to those of another, where their text says what they were.

The text of a document is what its ids decode to, as UTF-8, and it must encode to the same ids again: with the special
tokens in it recognised, or with none, as the dataset was made. Else the text was another one (a normalizer changed it,
it was cut within a character, the ids were chosen in another way), and the document is told.

A loss mask goes along (convert/retokenize/moved_mask.py). What is put around a document is to be learned as before;
where nothing was there, the token behind is, and the one in front is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpe.end_tokens import EndTokens, put_around
from bpe.ragged import Ragged
from bpe.tokenizer import Tokenizer
from convert.errors import BadInput
from convert.retokenize.moved_mask import MovedMask
from flat_tokens.exchange.blocks import Block
from flat_tokens.format import Bools

_ENCODE_TEXT = "Encode the original text instead."
BATCH_TOKENS = 1 << 20  # of documents that are encoded at once: each thread has some


class Masked(NamedTuple):
    """trained: bool[tokens of the documents], whether each is to be learned; None for all."""

    documents: Ragged
    trained: Bools | None


def whole_documents(blocks: Iterator[Block], batch_tokens: int) -> Iterator[Masked]:
    """The documents of blocks, so many tokens at a time and the last document whole."""
    parts: list[NDArray[np.uint32]] = []
    masks: list[Bools] = []
    lengths: list[NDArray[np.int64]] = []
    waiting, is_open = 0, 0  # tokens in parts; of those, in a document that has not ended
    for ids, ends, trained in blocks:
        assert ends is not None
        taken = 0
        if len(ends):
            taken = int(ends[-1])
            found = np.diff(ends, prepend=0)
            found[0] += is_open
            lengths.append(found)
            is_open = 0
            parts.append(ids[:taken])
            if trained is not None:
                masks.append(trained[:taken])
            waiting += taken
            if waiting >= batch_tokens:
                yield _masked(parts, masks, lengths)
                parts, masks, lengths, waiting = [], [], [], 0
        parts.append(ids[taken:])
        if trained is not None:
            masks.append(trained[taken:])
        is_open += len(ids) - taken
        waiting += len(ids) - taken
    if lengths:
        yield _masked(parts, masks, lengths)


def _masked(parts: list[NDArray[np.uint32]], masks: list[Bools], lengths: list[NDArray[np.int64]]) -> Masked:
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.uint64)
    return Masked(Ragged(np.concatenate(parts), offsets), np.concatenate(masks) if masks else None)


class Retokenizer:
    """Ids of `old` to ids of `new`. old_ends, new_ends: the tokens that each puts around a document."""

    def __init__(
        self, old: Tokenizer, new: Tokenizer, old_ends: EndTokens, new_ends: EndTokens, threads: int
    ) -> None:
        self._old, self._new, self._threads = old, new, threads
        self._old_ends, self._new_ends = old_ends, new_ends
        # A text that only the new one takes for a special token was ordinary text.
        self._plain_tokens = new.non_special_added_tokens
        shared = frozenset(old.special_tokens) & frozenset(new.special_tokens)
        self._known_tokens = shared | self._plain_tokens
        self._moved_mask = MovedMask(old, new)

    def encode(self, batch: Masked, first: int, split: str) -> Block:
        """The same documents by the new tokenizer. first: the number of the first one, for errors. BadInput names the
        document whose ids are not those of a text."""
        documents, trained = batch
        is_content = self._is_content(documents, first, split)
        kept_before = np.concatenate([[0], np.cumsum(is_content)])
        content = Ragged(documents.tokens[is_content], kept_before[documents.offsets].astype(np.uint64))
        texts = self._texts(content, first, split)
        as_text = self._encoded_as_text(content, texts, first, split)
        if trained is None:
            return _with_ends(self._rows(texts, as_text), self._new_ends)
        rows, bits = self._masked_rows(content, trained[is_content], texts, as_text, first, split)
        offsets = documents.offsets.astype(np.int64)
        front = trained[offsets[:-1]] if self._old_ends.front else np.zeros(len(documents), np.bool_)
        back = trained[offsets[1:] - 1] if self._old_ends.back else np.ones(len(documents), np.bool_)
        return _with_ends(rows, self._new_ends, bits, (front, back))

    def _is_content(self, documents: Ragged, first: int, split: str) -> Bools:
        """Which tokens were not put around a document."""
        offsets = documents.offsets.astype(np.int64)
        is_content = np.ones(len(documents.tokens), np.bool_)
        front, back = self._old_ends.front_ids, self._old_ends.back_ids
        own = [(id_, offsets[:-1] + place) for place, id_ in enumerate(front)]
        own += [(id_, offsets[1:] - len(back) + place) for place, id_ in enumerate(back)]
        is_short = np.flatnonzero(np.diff(offsets) < len(own))
        for id_, places in own:
            wrong = is_short if len(is_short) else np.flatnonzero(documents.tokens[places] != id_)
            if len(wrong):
                raise BadInput(
                    f"{split}[{first + int(wrong[0])}]: lacks token {id_}, which the dataset adds to each document. "
                    f"{_ENCODE_TEXT}"
                )
            is_content[places] = False
        return is_content

    def _masked_rows(
        self, documents: Ragged, trained: Bools, texts: list[str], as_text: set[int], first: int, split: str
    ) -> tuple[Ragged, Bools]:
        """The rows, and of each token whether it is to be learned."""
        offsets = documents.offsets.astype(np.int64)
        rows, masks = [], []
        for is_as_text, group in groupby(range(len(texts)), as_text.__contains__):
            start, *others = group
            stop = start + 1 + len(others)
            own = slice(*offsets[[start, stop]])
            found = self._moved_mask.encode(
                Ragged(documents.tokens[own], documents.offsets[start : stop + 1] - documents.offsets[start]),
                trained[own],
                texts[start:stop],
                (self._old.non_special_added_tokens if is_as_text else "all", self._allowed(is_as_text)),
                [f"{split}[{first + at}]" for at in range(start, stop)],
            )
            rows.append(Ragged(found.tokens, found.offsets))
            masks.append(found.is_trained)
        return Ragged.concatenate(rows), np.concatenate(masks)

    def _rows(self, texts: list[str], as_text: set[int]) -> Ragged:
        if not as_text:
            return self._new.encode_batch(texts, self._threads, self._known_tokens)
        return Ragged.from_rows(  # special tokens as ordinary text are rare: one by one
            [
                np.array(self._new.encode(text, self._allowed(at in as_text)), np.uint32)
                for at, text in enumerate(texts)
            ]
        )

    def _allowed(self, is_as_text: bool) -> frozenset[str]:
        return self._plain_tokens if is_as_text else self._known_tokens

    def _texts(self, content: Ragged, first: int, split: str) -> list[str]:
        try:
            return self._old.decode_batch(content, errors="strict")
        except UnicodeDecodeError:
            for at, ids in enumerate(content):
                try:
                    self._old.decode(ids, errors="strict")
                except UnicodeDecodeError:
                    raise BadInput(
                        f"{split}[{first + at}]: its tokens do not decode to valid UTF-8. {_ENCODE_TEXT}"
                    ) from None
            raise

    def _encoded_as_text(self, content: Ragged, texts: list[str], first: int, split: str) -> set[int]:
        """Which documents hold the texts of special tokens as ordinary text. BadInput for one whose text does not
        encode to its ids."""
        again = self._old.encode_batch(texts, self._threads)
        if np.array_equal(again.offsets, content.offsets) and np.array_equal(again.tokens, content.tokens):
            return set()
        as_text = set()
        for at, (ids, found) in enumerate(zip(content, again, strict=True)):
            if np.array_equal(ids, found):
                continue
            found = np.array(self._old.encode(texts[at], self._old.non_special_added_tokens), np.uint32)
            if not np.array_equal(ids, found):
                place = _first_difference(ids, found)
                raise BadInput(
                    f"{split}[{first + at}]: its text encodes to other tokens ({_shown(found, place)} instead of "
                    f"{_shown(ids, place)} at token {place}). {_ENCODE_TEXT}"
                )
            as_text.add(at)
        return as_text


def _with_ends(
    rows: Ragged, ends: EndTokens, trained: Bools | None = None, ends_trained: tuple[Bools, ...] = ()
) -> Block:
    """The rows as a block, with the tokens around each that has some. trained: of the tokens, with a mask;
    ends_trained: bool[rows], of what is put in front of each, and behind."""
    tokens, offsets, is_of_row = put_around(rows.tokens, rows.offsets, ends.front_ids, ends.back_ids)
    if trained is not None:
        found = np.empty(len(tokens), np.bool_)
        found[is_of_row] = trained
        front, back = (each[rows.lengths > 0] for each in ends_trained)
        if sides := [front] * len(ends.front) + [back] * len(ends.back):
            found[~is_of_row] = np.stack(sides, axis=1).ravel()
        trained = found
    return Block(tokens, offsets.astype(np.int64)[1:], trained)


def _first_difference(ids: NDArray[np.uint32], found: NDArray[np.uint32]) -> int:
    length = min(len(ids), len(found))
    differ = np.flatnonzero(ids[:length] != found[:length])
    return int(differ[0]) if len(differ) else length


def _shown(ids: NDArray[np.uint32], place: int) -> str:
    return str(ids[place]) if place < len(ids) else "none"
