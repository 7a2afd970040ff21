"""Tokens in front of and behind a document: without one behind, a model trained on documents never learns to stop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from bpe.errors import BadArgument, shown

if TYPE_CHECKING:
    from bpe.tokenizer import Tokenizer

# What tokenizers call the token that ends a document, the most specific first.
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
    """What stands in front of and behind each document that has ids, None for nothing."""

    front: EndToken | None = None
    back: EndToken | None = None

    @property
    def front_id(self) -> int | None:
        """The id in front."""
        return None if self.front is None else self.front.id

    @property
    def back_id(self) -> int | None:
        """The id behind."""
        return None if self.back is None else self.back.id

    @property
    def per_document(self) -> int:
        """How many a document with ids has."""
        return sum(token is not None for token in self)

    def recorded(self) -> dict[str, dict[str, object] | None]:
        """Both as JSON-able facts: {"prepend_token": None, "append_token": {"id": 50256, "text": "<|endoftext|>"}}."""
        named = zip(("prepend_token", "append_token"), self, strict=True)
        return {name: None if token is None else token._asdict() for name, token in named}

    def around(self, id_lists: Iterable[list[int]]) -> Iterator[list[int]]:
        """The ids of one document, some at a time, with its end tokens; a document without ids gets none."""
        is_begun = False
        for ids in filter(None, id_lists):
            if not is_begun and self.front is not None:
                yield [self.front.id]
            is_begun = True
            yield ids
        if is_begun and self.back is not None:
            yield [self.back.id]


NO_ENDS: Final = EndTokens()
_DIGITS: Final = re.compile(r"[0-9]{1,10}")


def end_tokens(tokenizer: Tokenizer, front: str | int | None, back: str | int | None) -> EndTokens:
    """Those of a tokenizer, each by its text or its id; BadArgument where it has no such entry.

    end_tokens(gpt2, None, "<|endoftext|>") -> EndTokens(None, EndToken(50256, "<|endoftext|>"))
    """
    return EndTokens(
        None if front is None else _entry(tokenizer, front, "--prepend-token"),
        None if back is None else _entry(tokenizer, back, "--append-token"),
    )


def usual_end(tokenizer: Tokenizer) -> str | None:
    """The special token that by its name ends a document, if the tokenizer has one."""
    special_tokens = tokenizer.special_tokens
    return next((name for name in END_NAMES if name in special_tokens), None)


def _entry(tokenizer: Tokenizer, token: str | int, option: str) -> EndToken:
    """A special token of this text, else the entry with this id, else an entry of this text.

    Vocabularies have entries for most short numbers, and nobody ends documents with the text 2 where id 2 is </s>."""
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
            f"{option} {shown(token)}: the tokenizer has no entry of this text or id; its special tokens are "
            f"{known}{more}"
        )
    return EndToken(number, entry.decode("utf-8", "replace"))
