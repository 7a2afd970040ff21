"""Added tokens with flags match like Hugging Face's at every entry point."""

from __future__ import annotations

import json
import pickle
import random
import time
from typing import Any

import numpy as np
import pytest
import tokenizers

from bpe.added_tokens import AddedToken
from bpe.errors import BadTokenizer, UnsupportedTokenizer
from bpe.formats import huggingface
from bpe.tokenizer import Tokenizer
from tokenmill.inputs import _core

# Whitespace, word characters and other characters of all kinds, and letters that NFC changes.
ATOMS = [
    *("a", "b", "ab", "<", ">", "<s>", "s>", "<s", "</s>", "[M]", "M", "-", "'", "_", "²", "Ⅷ", "ⓐ", "٣"),
    *("é", "e\u0301", "\u0301", "ﬁ", "日", "日本", "\u200b", "\u200d"),
    *(" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u3000", "\u0085"),
]

FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


def random_tokens(rng: random.Random, first_id: int, flags: bool = True) -> list[AddedToken]:
    texts = {"".join(rng.choices(ATOMS, k=rng.randint(1, 3))) for _ in range(rng.randint(1, 9))}
    normalized = rng.random()
    return [
        AddedToken(
            text,
            first_id + place,
            special=rng.random() < 0.5,
            lstrip=flags and rng.random() < 0.3,
            rstrip=flags and rng.random() < 0.3,
            single_word=flags and rng.random() < 0.3,
            normalized=rng.random() < normalized,
        )
        for place, text in enumerate(sorted(texts))
    ]


def random_text(rng: random.Random, tokens: list[AddedToken]) -> str:
    return "".join(rng.choice([*ATOMS, *(token.text for token in tokens)]) for _ in range(rng.randint(0, 25)))


def document_of(
    tokenizer: Tokenizer, tokens: list[AddedToken], normalizer: dict[str, Any] | None
) -> dict[str, Any]:
    root: dict[str, Any] = json.loads(tokenizer.canonical_json)
    root["normalizer"] = normalizer
    root["added_tokens"] = [
        {"id": token.id, "content": token.text} | {name: getattr(token, name) for name in FLAGS}
        for token in tokens
    ]
    return root


def both(root: dict[str, Any]) -> tuple[Tokenizer, tokenizers.Tokenizer] | None:
    """Return our tokenizer and theirs, or None if the tokens are invalid: equal after normalization, or entries."""
    data = json.dumps(root)
    try:
        return Tokenizer.from_parts(huggingface.read(data.encode())), tokenizers.Tokenizer.from_str(data)
    except (BadTokenizer, UnsupportedTokenizer):
        return None


def theirs_of(theirs: tokenizers.Tokenizer, text: str) -> list[int] | None:
    """Return None if they panic because two tokens strip the same whitespace."""
    try:
        return theirs.encode(text, add_special_tokens=False).ids
    except BaseException as error:  # pyo3's PanicException does not derive from Exception
        if "bad split" not in str(error):
            raise
        return None


NORMALIZERS: list[dict[str, Any] | None] = [
    None,
    {"type": "NFC"},
    {"type": "NFKC"},
    {"type": "Lowercase"},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]},
    {"type": "Strip", "strip_left": True, "strip_right": True},
    {"type": "Prepend", "prepend": "a "},
    {"type": "Replace", "pattern": {"String": " "}, "content": "<"},
    {"type": "Replace", "pattern": {"Regex": "[ \\t]+"}, "content": "_"},
]


@pytest.mark.slow
@pytest.mark.promise("token-ids")
@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=lambda value: value and value["type"])
def test_ids_are_theirs_for_random_tokens_and_texts(normalizer: dict[str, Any] | None, listed: Any) -> None:
    rng = random.Random(5)
    tokenizer = listed(special_tokens=[])
    compared = 0
    for _ in range(150):
        tokens = random_tokens(rng, tokenizer.vocab_size)
        pair = both(document_of(tokenizer, tokens, normalizer))
        if pair is None:
            continue
        ours, theirs = pair
        assert ours.added_tokens == pickle.loads(pickle.dumps(ours)).added_tokens == tuple(tokens)
        assert ours.non_special_added_tokens == {token.text for token in tokens if not token.special}
        for _ in range(12):
            text = random_text(rng, tokens)
            expected = theirs_of(theirs, text)
            if expected is None:
                continue
            compared += 1
            assert ours.encode(text) == expected, (text, tokens)
            assert ours.encode_batch([text])[0].tolist() == expected
            assert list(ours.encode_iterable([text[:3], text[3:]])) == expected
            assert ours.encode_documents(text.encode(), "\ue000")[0].tolist() == expected
    assert compared > 800


@pytest.mark.parametrize("flags", [{"lstrip": True}, {"rstrip": True}, {"single_word": True}, {}], ids=str)
@pytest.mark.parametrize(
    "unit", ["w<s> the", "w <s>w", "the\n\n<s>\n\nw", "1<s> a<s>w", " w <s", "w  <s>  \n\n"]
)
def test_pieces_of_threads_respect_flags(unit: str, flags: dict[str, bool], listed: Any) -> None:
    """Long documents are cut into pieces of 256 KiB, but never inside the context of a token."""
    tokenizer = listed(special_tokens=[])
    for normalized in (False, True):
        token = AddedToken("<s>", tokenizer.vocab_size, normalized=normalized, **flags)
        ours = Tokenizer(tokenizer.ordinary_entries, tokenizer.merges, [token])
        # Insert some distinct words, so that there are offsets to cut at.
        text = "".join(
            unit * 3 + " then" * (place % 7 == 0) for place in range(900_000 // len(unit) // 3)
        ).encode()
        alone = ours.encode_documents(text, "\ue000", threads=1)
        assert np.array_equal(alone.tokens, ours.encode_documents(text, "\ue000", threads=2).tokens)


def test_word_characters_and_whitespace_are_theirs(listed: Any) -> None:
    """Check code points next to a single_word token and next to one that strips."""
    tokenizer = listed(special_tokens=[])
    first = tokenizer.vocab_size
    tokens = [
        AddedToken("@@", first, single_word=True),
        AddedToken("@=", first + 1, lstrip=True, rstrip=True),
    ]
    pair = both(document_of(tokenizer, tokens, None))
    assert pair is not None
    points = [chr(c) for c in range(0x110000) if (c < 0x3200 or c % 19 == 0) and not 0xD800 <= c < 0xE000]
    texts = [
        "".join(f"=@@{c}=#{c}@@#{c}@={c}" for c in points[start : start + 64])
        for start in range(0, len(points), 64)
    ]
    theirs = pair[1].encode_batch_fast(texts, add_special_tokens=False)
    for text, ours, their in zip(texts, pair[0].encode_batch(texts), theirs, strict=True):
        assert ours.tolist() == their.ids, hex(ord(text[3]))


@pytest.mark.parametrize("kind", ["NFC", "Lowercase"])
def test_tokens_are_found_in_normalized_text_of_many_blocks(kind: str, listed: Any) -> None:
    """Long texts are normalized in blocks, but tokens are found across block boundaries."""
    tokenizer = listed(special_tokens=[])
    first = tokenizer.vocab_size
    tokens = [
        AddedToken(text, first + i, normalized=True) for i, text in enumerate((" " * 7, "éé", "the end"))
    ]
    pair = both(document_of(tokenizer, tokens, {"type": kind}))
    assert pair is not None
    ours, theirs = pair
    plain, changed = "a fox  jumps. " * 7_000, "e\u0301e\u0301 The END "
    for text in (
        plain,
        plain + changed + plain,
        changed * 9_000 + plain,
        " " * 200_001,
        " " * 100_000 + changed,
        "e\u0301" * 70_000,
    ):
        assert ours.encode(text) == theirs_of(theirs, text), text[:20]


def test_tokens_that_are_one_text_once_normalized_are_refused(listed: Any) -> None:
    first = listed(special_tokens=[]).vocab_size
    tokens = [AddedToken("<é>", first, normalized=True), AddedToken("<e\u0301>", first + 1, normalized=True)]
    root = document_of(listed(special_tokens=[]), tokens, {"type": "NFC"})
    with pytest.raises(UnsupportedTokenizer):
        Tokenizer.from_parts(huggingface.read(json.dumps(root).encode()))


@pytest.mark.parametrize("length", [50, 3000])
def test_time_does_not_grow_with_the_tokens(length: int) -> None:
    """Tokens that start everywhere and never end: time depends on the length of the text, not of the tokens."""
    tokens = [b"a" * count + b"b" for count in range(1, length, 7)] + [b"a" * length, b"\na", b"ba"]
    text = b"a" * (1 << 20)
    started = time.perf_counter()
    starts, _ = _core.find_special_tokens(text, tokens)
    assert time.perf_counter() - started < 5  # quadratic: 100 s and more
    assert starts.tolist() == list(range(0, len(text) - length + 1, length))
