"""Small SentencePiece models, trained by that library, and difficult texts for them."""

from __future__ import annotations

import io
import random
from typing import Any

import sentencepiece

SYMBOLS = ["<x>", "\u2581\u2581", "\n", "the", "<x><x>", "oo"]
_BYTES = {"byte_fallback": True, "normalization_rule_name": "identity"}
_SPACES = {**_BYTES, "remove_extra_whitespaces": False}
# Each setting adds one feature: byte fallback, a dummy prefix, whitespace removal, a charsmap, symbols.
SETTINGS: dict[str, dict[str, Any]] = {
    "like llama": _SPACES,
    "unknown": {"normalization_rule_name": "identity", "remove_extra_whitespaces": False},
    "no white space": _BYTES,
    "no prefix": {**_BYTES, "add_dummy_prefix": False},
    "nmt_nfkc": {},
    "nfkc": {**_BYTES, "normalization_rule_name": "nfkc", "add_dummy_prefix": False},
    "nmt_nfkc_cf": {**_SPACES, "normalization_rule_name": "nmt_nfkc_cf"},
    "like gemma": {
        **_SPACES,
        "add_dummy_prefix": False,
        "user_defined_symbols": SYMBOLS,
        "control_symbols": ["<c>"],
    },
    "like mistral": {**_SPACES, "user_defined_symbols": SYMBOLS},
    "across words": {
        **_SPACES,
        "split_by_whitespace": False,
        "split_by_number": False,
        "allow_whitespace_only_pieces": True,
    },
}
_PARTS = "the in er tion a o st xyx \u0430\u0432 \u0435\u0438 \u65e5\u672c e\u0301 12 --".split()
_PIECES = [
    *"  abosthe\t\n\u2581\u2581xyxyx<>.é\uff21\ufdfa\u200b\u3000\ud55c\ufb01\u00bd\u00a8\x00",
    *"e\u0301,e\u0323\u0301,\u1112\u1161\u11ab,\U0001f44d\U0001f3fd,\u65e5\u672c,\r\n,>\u0338".split(","),
    *"<x>,<c>,<s>,<unk>,<0x41>,the ,tion,  ,\u0430\u0432,12".split(","),
]


def corpus(seed: int, lines: int = 400) -> list[str]:
    """Return lines of made-up words with skewed frequencies, in several scripts."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(_PARTS, k=rng.randint(1, 4))) for _ in range(150)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    return [" ".join(rng.choices(words, weights, k=rng.randint(1, 12))) for _ in range(lines)]


def train(model_type: str = "bpe", **settings: Any) -> bytes:
    """Train a model of a few hundred pieces and return its bytes."""
    written = io.BytesIO()
    options = {"vocab_size": 460 if settings.get("byte_fallback") else 160, **settings}
    if model_type != "bpe":
        options["hard_vocab_limit"] = False
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus(1)),
        model_writer=written,
        model_type=model_type,
        minloglevel=2,
        **options,
    )
    return written.getvalue()


def texts(seed: int, count: int) -> list[str]:
    """Return texts of the corpus, and texts that trip normalizers and merges."""
    rng = random.Random(seed)
    nasty = ["".join(rng.choices(_PIECES, k=rng.randint(1, 25))) for _ in range(count)]
    edges = ["", " ", "   ", "\u2581", " \u2581 ", "\u200b", " \u200b ", "xyxyxyx", "xyxyx" * 30, "\x00"]
    return [*edges, "\ufdfa" * 3, *corpus(seed + 1, 60), "\n".join(corpus(seed + 2, 60)), *nasty]
