"""Python decoders return the texts of tokenizers' decoders, and the core replaces them where it is equivalent."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import tokenizers

from bpe.formats.huggingface_components import decoder_from_json

TOKENS = "\u2581the \u2581 mill <0xE6> <0x97> <0xA5> <0xC3> a_b _ \u0120x \u00e9".split()
DECODERS: list[dict[str, Any]] = [
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "ByteFallback"},
    {"type": "Fuse"},
    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
    {"type": "Replace", "pattern": {"Regex": "_+"}, "content": ""},
    {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
    {"type": "BPEDecoder", "suffix": "_"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0},
]


def theirs(value: dict[str, Any]) -> Any:
    model = {"type": "BPE", "vocab": {}, "merges": []}
    return tokenizers.Tokenizer.from_str(json.dumps({"model": model, "decoder": value})).decoder


@pytest.mark.parametrize("seed", range(12))
def test_texts_equal_tokenizers(seed: int) -> None:
    rng = random.Random(seed)
    value = {"type": "Sequence", "decoders": rng.sample(DECODERS, rng.randint(1, 4))}
    ours = decoder_from_json(value)
    for _ in range(60):
        tokens = rng.choices(TOKENS, k=rng.randint(1, 6))
        assert ours.apply(tokens) == theirs(value).decode(tokens), (value, tokens)
