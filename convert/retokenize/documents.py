"""Documents from the ids of one tokenizer to those of another, where their text says what they were.

The text of a document is what its ids decode to, as UTF-8, and it must encode to the same ids again: with the special
tokens in it recognised, or with none, as the dataset was made. Else the text was another one (a normalizer changed it,
it was cut within a character, the ids were chosen in another way), and the document is told.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bpe.end_tokens import EndTokens
from bpe.ragged import Ragged
from bpe.tokenizer import Tokenizer
from convert.errors import BadInput
from flat_tokens.exchange.blocks import Block

BATCH_TOKENS = 1 << 20  # of documents that are encoded at once: each thread has some


def whole_documents(blocks: Iterator[Block], batch_tokens: int) -> Iterator[Ragged]:
    """The documents of blocks, so many tokens at a time and the last document whole."""
    parts: list[NDArray[np.uint32]] = []
    lengths: list[NDArray[np.int64]] = []
    waiting, is_open = 0, 0  # tokens in parts; of those, in a document that has not ended
    for ids, ends, _ in blocks:
        assert ends is not None
        taken = 0
        if len(ends):
            taken = int(ends[-1])
            found = np.diff(ends, prepend=0)
            found[0] += is_open
            lengths.append(found)
            is_open = 0
            parts.append(ids[:taken])
            waiting += taken
            if waiting >= batch_tokens:
                yield _ragged(parts, lengths)
                parts, lengths, waiting = [], [], 0
        parts.append(ids[taken:])
        is_open += len(ids) - taken
        waiting += len(ids) - taken
    if lengths:
        yield _ragged(parts, lengths)


def _ragged(parts: list[NDArray[np.uint32]], lengths: list[NDArray[np.int64]]) -> Ragged:
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.uint64)
    return Ragged(np.concatenate(parts), offsets)


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

    def encode(self, documents: Ragged, first: int, split: str) -> Block:
        """The same documents by the new tokenizer. first: the number of the first one, for errors. BadInput names the
        document whose ids are not those of a text."""
        content = self._without_ends(documents, first, split)
        texts = self._texts(content, first, split)
        as_text = self._encoded_as_text(content, texts, first, split)
        if not as_text:
            rows = self._new.encode_batch(texts, self._threads, self._known_tokens)
        else:  # some documents hold the texts of special tokens as ordinary text: rare, one by one
            rows = Ragged.from_rows(
                [
                    np.array(
                        self._new.encode(text, self._plain_tokens if at in as_text else self._known_tokens),
                        np.uint32,
                    )
                    for at, text in enumerate(texts)
                ]
            )
        return _with_ends(rows, self._new_ends)

    def _without_ends(self, documents: Ragged, first: int, split: str) -> Ragged:
        """The documents without the tokens that were put around them."""
        offsets = documents.offsets.astype(np.int64)
        dropped = np.zeros(len(documents.tokens), np.bool_)
        for token, places in ((self._old_ends.front, offsets[:-1]), (self._old_ends.back, offsets[1:] - 1)):
            if token is None:
                continue
            wrong = np.flatnonzero(documents.tokens[places] != token.id)
            if len(wrong):
                raise BadInput(
                    f"{split}[{first + int(wrong[0])}]: lacks the token {token.id} that its dataset puts around each "
                    f"document; encode the text anew"
                )
            dropped[places] = True
        if not dropped.any():
            return documents
        kept_before = np.concatenate([[0], np.cumsum(~dropped)])
        return Ragged(documents.tokens[~dropped], kept_before[offsets].astype(np.uint64))

    def _texts(self, content: Ragged, first: int, split: str) -> list[str]:
        try:
            return self._old.decode_batch(content, errors="strict")
        except UnicodeDecodeError:
            for at, ids in enumerate(content):
                try:
                    self._old.decode(ids, errors="strict")
                except UnicodeDecodeError:
                    raise BadInput(
                        f"{split}[{first + at}]: its ids are no UTF-8, so they say no text; encode the text anew"
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
                    f"{split}[{first + at}]: its text does not encode to its ids: token {place} is "
                    f"{_shown(ids, place)}, encoded anew {_shown(found, place)}; encode the text that it was made from"
                )
            as_text.add(at)
        return as_text


def _with_ends(rows: Ragged, ends: EndTokens) -> Block:
    """The rows as a block, with the tokens around each that has some."""
    tokens, offsets = rows.tokens, rows.offsets.astype(np.int64)
    has_tokens = offsets[1:] > offsets[:-1]
    more = np.concatenate([[0], np.cumsum(has_tokens)])
    if ends.front is not None:
        tokens = np.insert(tokens, offsets[:-1][has_tokens], ends.front.id)
        offsets = offsets + more
    if ends.back is not None:
        tokens = np.insert(tokens, offsets[1:][has_tokens], ends.back.id)
        offsets = offsets + more
    return Block(tokens, offsets[1:])


def _first_difference(ids: NDArray[np.uint32], found: NDArray[np.uint32]) -> int:
    length = min(len(ids), len(found))
    differ = np.flatnonzero(ids[:length] != found[:length])
    return int(differ[0]) if len(differ) else length


def _shown(ids: NDArray[np.uint32], place: int) -> str:
    return str(ids[place]) if place < len(ids) else "none"
