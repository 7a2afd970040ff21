"""BPE in plain Python has the tokens of the model of tokenizers, and counts its bytes, whatever its options."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import tokenizers

from bpe.compat.huggingface import Tokenizer
from bpe.compat.huggingface.plain_model import PlainModel
from bpe.errors import BadTokenizer

LETTERS = "abcé"
OPTIONS: list[dict[str, Any]] = [
    {},
    {"unk_token": "?"},
    {"unk_token": "?", "fuse_unk": True},
    {"byte_fallback": True},
    {"byte_fallback": True, "unk_token": "?"},
    {"byte_fallback": True, "unk_token": "?", "fuse_unk": True},
    {"ignore_merges": True, "unk_token": "?"},
    {"continuing_subword_prefix": "#", "unk_token": "?"},
    {"end_of_word_suffix": "$", "unk_token": "?"},
]


def random_model(rng: random.Random, options: dict[str, Any]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    prefix, suffix = (options.get(name, "") for name in ("continuing_subword_prefix", "end_of_word_suffix"))
    entries = ["?", *(f"<0x{byte:02X}>" for byte in "x\u00e8".encode())]
    for letter in rng.sample(LETTERS, 3):
        entries += dict.fromkeys([letter, prefix + letter, letter + suffix, prefix + letter + suffix])
    merges: list[tuple[str, str]] = []
    for _ in range(rng.randrange(8)):
        left, right = rng.choice(entries[3:]), rng.choice(entries[3:])
        if (left, right) not in merges and right.startswith(prefix):
            merges.append((left, right))
            entries.append(left + right[len(prefix) :])
    return {text: place for place, text in enumerate(dict.fromkeys(entries))}, merges


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_tokens_are_those_of_tokenizers(options: dict[str, Any]) -> None:
    rng = random.Random(str(options))
    for _ in range(150):
        vocab, merges = random_model(rng, options)
        ours, theirs = PlainModel(vocab, merges, options), tokenizers.models.BPE(vocab, merges, **options)
        for _ in range(8):
            word = "".join(rng.choices(LETTERS + "xè字", k=rng.randint(1, 9)))
            found = ours.tokens(word)
            wanted = theirs.tokenize(word)
            assert [(each.id, each.text) for each in found] == [(each.id, each.value) for each in wanted], (
                word
            )
            starts = [each.offsets[0] for each in wanted]
            stops = [each.offsets[1] for each in wanted]
            assert [each.size for each in found] == [b - a for a, b in zip(starts, stops, strict=True)], word


def test_what_is_no_entry() -> None:
    with pytest.raises(BadTokenizer, match="unk_token"):
        PlainModel({"a": 0}, [], {"unk_token": "?"}).tokens("ab")


def test_bytes_of_a_suffix_are_told_within_the_text() -> None:
    """tokenizers counts them on behind the text; the ids are its own."""
    model = {"type": "BPE", "vocab": {"<0x78>": 0, "a": 1}, "merges": [], "byte_fallback": True}
    text = json.dumps({"version": "1.0", "model": model | {"end_of_word_suffix": "xxxx", "fuse_unk": True}})
    found, wanted = Tokenizer.from_str(text).encode("xa"), tokenizers.Tokenizer.from_str(text).encode("xa")
    assert found.ids == wanted.ids
    assert all(0 <= start < stop <= 2 for start, stop in found.offsets)
