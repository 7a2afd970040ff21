"""Pretokens new to an encoder are collected over several documents and merged later; the order of IDs is kept."""

from __future__ import annotations

import random

import numpy as np
import pytest
from small_encoder import RULES, SEPARATOR, core, reference

from bpe import _core


def new_words(rng: random.Random, count: int, least: int, most: int) -> list[str]:
    return ["".join(rng.choices("abcdefghijnortqu", k=rng.randint(least, most))) for _ in range(count)]


LARGE = new_words(random.Random(3), 1, 8192, 8192)[0]
MISSES = {
    "one": [["word"]],
    "short, as many as are merged at once": [[word] for word in new_words(random.Random(1), 129, 1, 15)],
    "short, as many as are gathered": [[word] for word in new_words(random.Random(1), 1100, 5, 15)],
    "the same again and again": [["again and again"] * 40] * 40,
    "long": [new_words(random.Random(2), 9, 16, 80) for _ in range(16)],
    "around the longest that are gathered": [["x" * size, "y" * size] for size in (511, 512, 513, 600)],
    "around the longest that are kept": [
        ["x" * size, "new", "y" * size] for size in (4094, 4095, 8192, 8193)
    ],
    "more empty documents than are noted": [["new"], *[[]] * 1300, ["newer"], [], ["newest"]],
    "large hits": [[LARGE], ["fresh"], [LARGE], ["fresher", LARGE], [LARGE, LARGE]],
    "one in many hits": [["a b c d"] * 9000, ["fresh"], ["a b c d"] * 9000, ["fresher", "a b c d"]],
    "of all kinds": [
        [
            word
            for least, most in ((1, 9), (10, 30), (1, 90))
            for word in new_words(random.Random(seed), 9, least, most)
        ]
        for seed in range(60)
    ],
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", MISSES)
def test_pretokens_that_are_new_come_in_their_places(name: str, rule: str) -> None:
    """Encode each document alone, then all together: new pretokens are merged at other times, but the IDs are
    equal.
    """
    documents = [" ".join(words) for words in MISSES[name]]
    want = [core(rule).encode(document) for document in documents]
    text = SEPARATOR.join(document.encode() for document in documents)
    out = np.empty(_core.TokenizerCore.out_tokens(len(text)), np.uint32)
    encoder = core(rule)
    for lent in (None, out, None):
        tokens, offsets = encoder.encode_documents(text, SEPARATOR, 1, out=lent)
        rows = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        assert [tokens[start:stop].tolist() for start, stop in rows] == want
    assert [encoder.decode(ids).decode() for ids in want] == documents
    if len(text) < 20_000:
        assert want == [reference(document, rule) for document in documents]
