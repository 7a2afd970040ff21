"""Encoding normalizes text: IDs equal Hugging Face's for any threads, cuts and memory."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from normalizer_texts import build_charsmap, nasty_texts

from bpe import _core
from bpe.normalizers import (
    Bert,
    ByteLevel,
    Form,
    Lowercase,
    Normalizer,
    Precompiled,
    Prefix,
    Prepend,
    Replace,
    Strip,
)
from bpe.reference import cut_at_special_tokens
from bpe.tokenizer import Tokenizer

END = "<|endoftext|>"
SPECIAL = [END, "<s>", "<toK>", "e\u0301e"]
NORMALIZERS = {
    "NFC": Normalizer((Form("NFC"),)),
    "NFD": Normalizer((Form("NFD"),)),
    "NFKC": Normalizer((Form("NFKC"),)),
    "NFKD": Normalizer((Form("NFKD"),)),
    "Lowercase": Normalizer((Lowercase(),)),
    "Bert": Normalizer((Bert(),)),
    "Llama": Normalizer((Prepend("▁"), Replace(" ", "▁"))),
    "Replace": Normalizer((Replace("e\u0301", "the "), Replace("aa", ""))),
    "expression": Normalizer((Form("NFC"), Replace(r"\s{2,}", " ", True), Lowercase())),
    "Strip": Normalizer((Form("NFKC"), Strip(), Prepend(" "))),
    "ByteLevel": Normalizer((ByteLevel(),)),
    "Precompiled": Normalizer(
        (Precompiled(build_charsmap({"\t": " ", "é": "e", "e\u0301": "E", "ﬁ": "fi", "\r\n": "\n", "\u0301": ""})),)
    ),
}  # fmt: skip


@pytest.fixture(params=NORMALIZERS)
def normalizer(request: pytest.FixtureRequest) -> Normalizer:
    return NORMALIZERS[request.param]


def words(seed: int, count: int) -> str:
    """Return words, marks, capitals, spaces of all kinds, and occasional special tokens."""
    drawn = random.Random(seed)
    kinds = [
        "the", " quick", " fox", "e\u0301", "é", " A\u030a", "\u0301", "  ", "\n", "\t", "\r\n", "İ", " Σας",
        "ﬁ", "½", "가", "\u1100\u1161",
        "你好", "aa", "'s", " 12", "\u00a0", "ß", "\u212a", "\u0600", "x\u0323\u0301",
        "<s>", " <to\u212a>", "<toK>", "e\u0301e",
    ]  # fmt: skip
    return "".join(drawn.choices(kinds, k=count))


@pytest.mark.parametrize("size", [1, 1_000, 1_024, 1_025, 1_300, 5_000])
@pytest.mark.parametrize("body", ["the fox jumps. ", "é" * 600 + " ", "a"])
def test_a_text_that_only_gets_a_prefix(body: str, size: int, listed: Any) -> None:
    text = (body * size)[:size]
    prefixed = listed("gpt2", normalizer=Normalizer((Prefix("~ "),)))
    assert prefixed.encode(text) == listed("gpt2").encode("~ " + text)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["gpt2", "o200k"])
def test_any_threads_and_any_cut(normalizer: Normalizer, pattern: str, listed: Any) -> None:
    """Documents of several pieces and blocks, with and without text that is hard to cut."""
    tokenizer: Tokenizer = listed(pattern, special_tokens=SPECIAL, normalizer=normalizer)
    plain = "the quick brown fox jumps. " * 4_000
    documents = [
        words(1, 30_000), plain + "e\u0301" + plain * 6, "", "x", "\u0301" * 70_000, "a" * 300_000 + "é",
        words(2, 100_000),
    ]  # fmt: skip
    buffer = END.join(documents).encode()
    one = tokenizer.encode_documents(buffer, threads=1)
    assert one.offsets.tolist() == tokenizer.encode_documents(buffer, threads=3).offsets.tolist()
    assert np.array_equal(one.tokens, tokenizer.encode_documents(buffer, threads=3).tokens)
    normalized = normalizer_of(tokenizer)
    for row, document in enumerate(documents):
        assert one[row].tolist() == normalized(document), row
    for text in ["", " ", "<s> <s>", *nasty_texts(40, seed=4), *(words(i, i) for i in range(0, 120, 3))]:
        assert tokenizer.encode(text) == list(tokenizer.encode_iterable(text)) == normalized(text), ascii(
            text
        )


def normalizer_of(tokenizer: Tokenizer) -> Any:
    """Encode by hand: cut at special tokens, normalize each part whole, and encode it without a normalizer."""
    bare = Tokenizer(tokenizer.vocab, tokenizer.merges, tokenizer.special_tokens, tokenizer.pretokenizer)
    normalizer = tokenizer.parts.normalizer
    assert normalizer is not None

    def encode(text: str) -> list[int]:
        ids = []
        for part, is_special in cut_at_special_tokens(text, [*tokenizer.special_tokens]):
            if is_special:
                ids.append(tokenizer.special_tokens[part])
            else:
                ids += bare.encode(normalizer.apply(part.encode()).decode(), allowed_special=())
        return ids

    return encode


def test_text_that_grows_does_not_fit_into_lent_memory(listed: Any) -> None:
    tokenizer: Tokenizer = listed("gpt2", normalizer=Normalizer((Replace("a", "xyzzy" * 4),)))
    for buffer in (b"a" * 10_000, b"a b" * 200_000):
        out = np.zeros(_core.TokenizerCore.out_tokens(len(buffer)), np.uint32)
        expected = np.array(tokenizer.encode(buffer.decode()))
        assert len(expected) > len(out)
        for threads in (1, 2):
            found = tokenizer.encode_documents(buffer, threads=threads, out=out)
            assert np.array_equal(found.tokens, expected)
    small = tokenizer.encode_documents(b"bcd", out=out)
    assert np.shares_memory(small.tokens, out)


@pytest.mark.promise("linear-time")
def test_hostile_text_takes_linear_time(listed: Any, normalizer: Normalizer) -> None:
    """No boundary, no safe cut, or only boundaries: each takes a moment."""
    tokenizer: Tokenizer = listed("o200k", normalizer=normalizer)
    for text in (
        "a" + "\u0301\u0323" * 100_000,
        "x" * 400_000,
        "é" * 200_000,
        " " * 400_000,
        "\u1100" * 100_000,
    ):
        ids = tokenizer.encode_documents(text.encode(), "|")[0]
        assert tokenizer.decode_bytes(ids) == normalizer.apply(text.encode())


@pytest.mark.parametrize("count", [8, 16, 17])
def test_growth_beyond_64_bits_overran_a_buffer(listed: Any, count: int) -> None:
    """16 steps that each grow text by 16 overflowed to a growth of 0, and the threads wrote past their buffers."""
    steps = Normalizer((Replace("é", "é" * 16),) * count)
    tokenizer: Tokenizer = listed("gpt2", normalizer=steps)
    text = words(5, 200_000).replace("é", "e")
    expected = tokenizer.encode(text)
    for out in (None, np.empty(_core.TokenizerCore.out_tokens(len(text.encode())), np.uint32)):
        found = tokenizer.encode_documents(text.encode(), "\ue000", threads=2, out=out)
        assert found.tolist() == [expected]
