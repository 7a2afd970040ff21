"""Tokens before and after a document, by text and by ID."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bpe.end_tokens import EndToken, EndTokens, end_tokens, usual_end
from bpe.errors import BadArgument
from bpe.tokenizer import Tokenizer

END = "<|endoftext|>"
Listed = Callable[..., Tokenizer]


def test_an_entry_is_named_by_its_text_or_its_id(listed: Listed) -> None:
    tokenizer = listed(special_tokens=[END, "<s>", "7"])
    special = tokenizer.special_tokens
    assert end_tokens(tokenizer, "<s>", END) == EndTokens(
        (EndToken(special["<s>"], "<s>"),), (EndToken(special[END], END),)
    )
    by_id = end_tokens(tokenizer, None, special[END])
    assert by_id == end_tokens(tokenizer, None, str(special[END])) == end_tokens(tokenizer, None, END)
    assert end_tokens(tokenizer, "7", None).front_ids == [
        special["7"]
    ]  # the text of a special token takes precedence
    assert tokenizer.token_to_id(b"1") not in (1, None)
    assert end_tokens(tokenizer, "1", None).front_ids == [1]  # entries are named by ID
    assert end_tokens(tokenizer, "a", None).front_ids == [tokenizer.token_to_id(b"a")]
    ordinary = next(id_ for id_, entry in tokenizer.ordinary_entries.items() if entry == b"a")
    assert end_tokens(tokenizer, "a", ordinary) == EndTokens(
        (EndToken(ordinary, "a"),), (EndToken(ordinary, "a"),)
    )


@pytest.mark.parametrize("token", ["<eos>", "", "-1", "9" * 5000, 10**9, -1, "１"])
def test_missing_tokens_are_refused(token: str | int, listed: Listed) -> None:
    tokenizer = listed(special_tokens=[END])
    with pytest.raises(BadArgument, match="--append-token"):
        end_tokens(tokenizer, None, token)


def test_the_usual_end_is_a_special_token_by_its_name(listed: Listed) -> None:
    assert usual_end(listed(special_tokens=["</s>", END, "x"])) == END
    assert usual_end(listed(special_tokens=["<s>", "</s>"])) == "</s>"
    assert usual_end(listed(special_tokens=["<s>"])) is None


def test_a_document_without_ids_gets_none() -> None:
    ends = EndTokens((EndToken(1, "<s>"),), (EndToken(2, "</s>"),))
    assert list(ends.around([])) == list(ends.around([[], []])) == []
    assert [id_ for ids in ends.around([[], [5], [], [6, 7]]) for id_ in ids] == [1, 5, 6, 7, 2]
