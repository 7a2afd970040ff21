"""Tokens before and after a document: without an end token, a model trained on documents never learns to stop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpe.errors import BadArgument, printable, shown
from bpe.ragged import Ragged

if TYPE_CHECKING:
    from bpe.tokenizer import Tokenizer

# Names of the token that ends a document, most specific first.
END_NAMES: Final = (
    "<|endoftext|>",
    "<|end_of_text|>",
    "<｜end▁of▁sentence｜>",
    "</s>",
    "<eos>",
    "<|eos|>",
    "[EOS]",
)


class EndToken(NamedTuple):
    """An entry of a tokenizer. text: as its file spells it, bytes that are not UTF-8 as U+FFFD."""

    id: int
    text: str


class EndTokens(NamedTuple):
    """The tokens added before and after each document. A document without tokens gets none."""

    front: tuple[EndToken, ...] = ()
    back: tuple[EndToken, ...] = ()

    @property
    def front_ids(self) -> list[int]:
        """The IDs before a document."""
        return [token.id for token in self.front]

    @property
    def back_ids(self) -> list[int]:
        """The IDs after a document."""
        return [token.id for token in self.back]

    @property
    def per_document(self) -> int:
        """The number of tokens that a document gets."""
        return len(self.front) + len(self.back)

    def __str__(self) -> str:
        """Complete the sentence "each document ...": "begins with <s> (1) and ends with </s> (2)"."""
        front, back = (
            " ".join(f"{printable(token.text)} ({token.id})" for token in tokens) for tokens in self
        )
        parts = [f"begins with {front}"] * bool(front) + [f"ends with {back}"] * bool(back)
        return " and ".join(parts) or "gets no token"

    def recorded(self) -> dict[str, dict[str, object] | None]:
        """Return the first and the last token as JSON-able facts, null for none:

        {"prepend_token": None, "append_token": {"id": 50256, "text": "<|endoftext|>"}}
        """
        return {
            "prepend_token": self.front[0]._asdict() if self.front else None,
            "append_token": self.back[-1]._asdict() if self.back else None,
        }

    def around(self, id_lists: Iterable[list[int]]) -> Iterator[list[int]]:
        """Yield the IDs of one document, in parts, with its end tokens; a document without IDs gets none."""
        is_begun = False
        for ids in filter(None, id_lists):
            if not is_begun and self.front:
                yield self.front_ids
            is_begun = True
            yield ids
        if is_begun and self.back:
            yield self.back_ids


NO_ENDS: Final = EndTokens()
_DIGITS: Final = re.compile(r"[0-9]{1,10}")


def put_around(
    tokens: NDArray[np.uint32],
    offsets: NDArray[np.uint64],
    front: Sequence[int] | NDArray[np.uint32],
    back: Sequence[int] | NDArray[np.uint32],
    skip_empty: bool = True,
) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.bool_]]:
    """Put IDs around each row. Return tokens, offsets, and whether each token is of a row.

    skip_empty: an empty row gets none.

    [5, 6], offsets [0, 1, 1, 2], front [1], back [2, 3] -> [1, 5, 2, 3, 1, 6, 2, 3], offsets [0, 4, 4, 8]
    """
    gets_tokens = (offsets[1:] > offsets[:-1]) | (not skip_empty)
    more = np.cumsum(np.where(gets_tokens, len(front) + len(back), 0), dtype=np.uint64)
    around = offsets.copy()
    around[1:] += more
    starts, stops = around[:-1][gets_tokens].astype(np.int64), around[1:][gets_tokens].astype(np.int64)
    out = np.empty(int(around[-1]), np.uint32)
    is_of_row = np.ones(len(out), np.bool_)
    for places, ids in ((starts, front), (stops - len(back), back)):
        for place, id_ in enumerate(ids):
            out[places + place] = id_
            is_of_row[places + place] = False
    out[is_of_row] = tokens
    return out, around, is_of_row


def end_tokens(tokenizer: Tokenizer, front: str | int | None, back: str | int | None) -> EndTokens:
    """Return the tokens of a tokenizer by text or ID. Raise BadArgument if it has no such entry.

    end_tokens(gpt2, None, "<|endoftext|>") -> EndTokens((), (EndToken(50256, "<|endoftext|>"),))
    """
    return EndTokens(
        () if front is None else (_entry(tokenizer, front, "--prepend-token"),),
        () if back is None else (_entry(tokenizer, back, "--append-token"),),
    )


def post_processor_ends(tokenizer: Tokenizer) -> EndTokens:
    """Return the tokens that the post-processor of a tokenizer.json puts around a text."""
    post_processor = tokenizer.post_processor
    if post_processor is None:
        return NO_ENDS
    front, back = (
        tuple(EndToken(id_, (tokenizer.id_to_token(id_) or b"").decode("utf-8", "replace")) for id_ in ids)
        for ids in (post_processor.front, post_processor.back)
    )
    return EndTokens(front, back)


def usual_end(tokenizer: Tokenizer) -> str | None:
    """Return the special token that usually ends a document, by its name; None if there is none."""
    special_tokens = tokenizer.special_tokens
    return next((name for name in END_NAMES if name in special_tokens), None)


def _entry(tokenizer: Tokenizer, token: str | int, option: str) -> EndToken:
    """Return the special token with this text, the entry with this ID, or the entry with this text.

    The ID comes before the text, since vocabularies have entries for most short numbers.
    """
    special_tokens = tokenizer.special_tokens
    if isinstance(token, str) and token in special_tokens:
        return EndToken(special_tokens[token], token)
    number = int(token) if isinstance(token, int) or _DIGITS.fullmatch(token) else -1
    entry = tokenizer.vocab.get(number)
    if entry is None and isinstance(token, str):
        spelled = token.encode("utf-8", "surrogateescape")
        found = next((id_ for id_, entry in tokenizer.vocab.items() if entry == spelled), None)
        if found is not None:
            return EndToken(found, token)
    if entry is None:
        known = ", ".join(shown(text) for text in list(special_tokens)[:8]) or "none"
        more = " and others" if len(special_tokens) > 8 else ""
        raise BadArgument(
            f"{option}: no entry of the tokenizer has this text or ID (got {shown(token)}). Its special "
            f"tokens: {known}{more}."
        )
    return EndToken(number, entry.decode("utf-8", "replace"))


# -- the post_processor of a tokenizer.json, which adds begin and end tokens on request ---------------------------


@dataclass(frozen=True)
class PostProcessor:
    """component: validated JSON of the file. front, back: IDs to add before and after a text."""

    component: dict[str, Any]
    front: tuple[int, ...] = ()
    back: tuple[int, ...] = ()

    def around(self, ids: list[int]) -> list[int]:
        """Return [*front, *ids, *back], even for an empty text."""
        return [*self.front, *ids, *self.back]

    def around_rows(self, rows: Ragged) -> Ragged:
        """Apply `around` to each row."""
        tokens, offsets, _ = put_around(rows.tokens, rows.offsets, self.front, self.back, skip_empty=False)
        return Ragged(tokens, offsets)
