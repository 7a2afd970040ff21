"""Separators are found as bytes.split finds them, special tokens leftmost first and then longest."""

from __future__ import annotations

import random

import pytest

from bpe.reference import cut_at_special_tokens
from tokenmill.inputs import _core


def split_starts(data: bytes, separator: bytes) -> list[int]:
    starts: list[int] = []
    position = 0
    for part in data.split(separator)[:-1]:
        position += len(part)
        starts.append(position)
        position += len(separator)
    return starts


@pytest.mark.parametrize("separator", [b"a", b"ab", b"aa", b"aba", b"\n\n", b"abcdefgh" * 9])
def test_separators_as_bytes_split_finds_them(separator: bytes) -> None:
    rng = random.Random(1)
    for size in [0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 500]:
        for alphabet in [b"a", b"ab", b"a\n", b"abcdefgh"]:
            data = bytes(rng.choices(alphabet, k=size))
            for text in [data, separator + data, data + separator, data + separator[:-1]]:
                assert _core.find_separators(text, separator).tolist() == split_starts(text, separator)


@pytest.mark.parametrize("offset", [0, 1, 47, 48, 62, 63, 64, 65])
def test_a_separator_at_every_place_of_a_block(offset: int) -> None:
    text = b"." * offset + b"<sep>" + b"." * (130 - offset)
    assert _core.find_separators(text, b"<sep>").tolist() == [offset]


def test_an_empty_separator_is_refused() -> None:
    with pytest.raises(ValueError, match="separator"):
        _core.find_separators(b"ab", b"")


@pytest.mark.parametrize(
    "tokens",
    [
        pytest.param(["<s>"], id="one"),
        pytest.param(["<s>", "</s>"], id="two"),
        pytest.param(["a", "ab", "abc", "b"], id="prefixes of each other"),
        pytest.param(["aa", "aaa", "aab"], id="overlapping"),
        pytest.param(["é", "é<", "<é"], id="not ASCII"),
        pytest.param(["x", "<"], id="single bytes"),
        pytest.param(["<s>", "</s>", "ab", "ss", "s<"], id="more first pairs"),
        pytest.param([f"{first}{second}" for first in "<>[]|é中" for second in "abA"], id="8 first bytes"),
        pytest.param([f"{first}b" for first in "0123456789<>[]|/"], id="16 first bytes"),
        pytest.param(["\0", "a\0b", "<\0\0"], id="zero bytes"),
    ],
)
def test_special_tokens_as_the_reference_finds_them(variant: str, tokens: list[str]) -> None:
    rng = random.Random(2)
    pieces = [*tokens, *"<s>/abc é\0012345[]|", *(token[0] for token in tokens)]
    for count in [0, 1, 2, 3, 10, 100, 400]:
        text = "".join(rng.choices(pieces, k=count))
        want: list[tuple[int, int]] = []
        position = 0
        for part, is_special in cut_at_special_tokens(text, tokens):
            if is_special:
                want.append((position, tokens.index(part)))
            position += len(part.encode())
        starts, which = _core.find_special_tokens(text.encode(), [token.encode() for token in tokens])
        assert list(zip(starts.tolist(), which.tolist(), strict=True)) == want


@pytest.mark.parametrize(
    "tokens",
    [[b"<|a|>", b"<|ab|>"], [b"<|a|>", b"</a>", b"xy", b"zy"], [b"%d" % number for number in range(10, 90)]],
    ids=["one", "four", "eighty"],
)
def test_a_special_token_at_every_place_of_a_block(variant: str, tokens: list[bytes]) -> None:
    for offset in range(70):
        for behind in [0, 1, 2, 60, 70]:
            for which, token in list(enumerate(tokens))[:4]:
                text = b"<x|" * (offset // 3) + b"." * (offset % 3) + token + b"<" * behind
                found = _core.find_special_tokens(text, tokens)
                assert [part.tolist() for part in found] == [[offset], [which]]
                assert _core.find_special_tokens(text[: offset + len(token) - 1], tokens)[0].tolist() == []


@pytest.mark.parametrize("count", [8, 128, 129, 300])
def test_a_token_that_goes_on_behind_the_text_is_none(count: int) -> None:
    token = b"<" + b"-" * count + b">"
    text = memoryview(b".." + token + b"...")
    for missing in (1, 2, count):
        assert _core.find_special_tokens(text[: 2 + len(token) - missing], [token])[0].tolist() == []
    assert _core.find_special_tokens(text[: 2 + len(token)], [token])[0].tolist() == [2]


def test_no_special_tokens_find_nothing() -> None:
    starts, which = _core.find_special_tokens(b"abc", [])
    assert (len(starts), len(which)) == (0, 0)


@pytest.mark.parametrize(
    ("tokens", "message"), [([b"a", b""], "is empty"), ([b"a", b"b", b"a"], "'a' is given twice")]
)
def test_bad_special_tokens_are_refused(tokens: list[bytes], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.find_special_tokens(b"abc", tokens)
