"""Offsets point where those of tokenizers point, whatever the normalizer and the pre-tokenizer did to the text."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import regex
from compared import assert_same, texts
from normalizer_texts import build_charsmap, nasty_texts
from small_files import BYTE_LEVEL, both

from bpe.compat.huggingface.columns import WHITE_SPACE

CHARSMAP = build_charsmap(
    {
        "\ufb01": "fi",
        "①": "1",
        "\u0344": "\u0308\u0301",
        "\u00a0": " ",
        "\x00": "",
        "e\u0301": "é",
        "\u200b": "",
    }
)
REGEX = {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}
NORMALIZERS: dict[str, Any] = {
    **{name: {"type": name} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")},
    "Strip": {"type": "Strip", "strip_left": True, "strip_right": True},
    "strip left": {"type": "Strip", "strip_left": True, "strip_right": False},
    "Prepend": {"type": "Prepend", "prepend": "▁x"},
    "Replace": {"type": "Replace", "pattern": {"String": " "}, "content": "▁▁"},
    "Replace away": {"type": "Replace", "pattern": {"String": "e"}, "content": ""},
    "Replace by expression": REGEX,
    "Bert": {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    },
    "Precompiled": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(CHARSMAP).decode()},
    "several": {
        "type": "Sequence",
        "normalizers": [
            {"type": "NFKD"},
            {"type": "StripAccents"},
            {"type": "Lowercase"},
            REGEX,
            {"type": "NFC"},
        ],
    },
}


@pytest.mark.parametrize("name", NORMALIZERS)
def test_normalizers(name: str) -> None:
    ours, theirs = both(normalizer=NORMALIZERS[name])
    for text in [*texts(60, seed=1), *nasty_texts(80, seed=2)]:
        assert_same(ours.encode(text), theirs.encode(text), name, text)


def split(expression: str, behavior: str, invert: bool = False) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": behavior, "invert": invert}


BYTES_ONLY = BYTE_LEVEL | {"use_regex": False}
PRE_TOKENIZERS: dict[str, list[dict[str, Any]]] = {
    "space in front": [BYTE_LEVEL | {"add_prefix_space": True}],
    **{
        behavior: [split(r"[aeiou]+|\s", behavior), BYTES_ONLY]
        for behavior in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
    },
    "all but matches": [split(r"\w+|[^\w\s]+", "Removed", invert=True), BYTES_ONLY],
    "digits": [{"type": "Digits", "individual_digits": True}, BYTE_LEVEL],
    "punctuation": [{"type": "Punctuation", "behavior": "Contiguous"}, BYTE_LEVEL],
    "words": [{"type": "WhitespaceSplit"}, BYTE_LEVEL],
    "Metaspace": [
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
        BYTES_ONLY,
    ],
    "fixed": [{"type": "FixedLength", "length": 3}, BYTES_ONLY],
}


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_pre_tokenizers(name: str) -> None:
    ours, theirs = both(
        pre_tokenizer={"type": "Sequence", "pretokenizers": PRE_TOKENIZERS[name]}, normalizer={"type": "NFKC"}
    )
    for text in [*texts(60, seed=3), *nasty_texts(30, seed=4)]:
        assert_same(ours.encode(text), theirs.encode(text), name, text)


def test_a_long_text() -> None:
    ours, theirs = both(normalizer={"type": "NFC"})
    text = "".join(texts(400, seed=5))
    assert_same(ours.encode(text), theirs.encode(text))


def test_white_space_is_that_of_unicode() -> None:
    assert regex.findall(r"\p{White_Space}", "".join(map(chr, range(0xD800)))) == list(WHITE_SPACE)


def test_no_token_behind_the_last_has_characters() -> None:
    ours, theirs = (tokenizer.encode("a b") for tokenizer in both(pre_tokenizer=BYTE_LEVEL))
    for index in range(len(ours.ids) + 2):
        assert ours.token_to_chars(index) == theirs.token_to_chars(index)
