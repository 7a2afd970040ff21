"""Small SentencePiece models, trained by that library, and difficult texts for them."""

from __future__ import annotations

import io
import random

import sentencepiece

SYMBOLS = ["<x>", "\u2581\u2581", "\n", "the", "<x><x>", "oo"]

# Each setting adds one feature: byte fallback, a dummy prefix, whitespace removal, a charsmap, symbols.
SETTINGS = {
    "like llama": {
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
    },
    "unknown": {"normalization_rule_name": "identity", "remove_extra_whitespaces": False},
    "no white space": {"normalization_rule_name": "identity", "byte_fallback": True},
    "no prefix": {"normalization_rule_name": "identity", "byte_fallback": True, "add_dummy_prefix": False},
    "nmt_nfkc": {},
    "nfkc": {"normalization_rule_name": "nfkc", "byte_fallback": True, "add_dummy_prefix": False},
    "nmt_nfkc_cf": {
        "normalization_rule_name": "nmt_nfkc_cf",
        "byte_fallback": True,
        "remove_extra_whitespaces": False,
    },
    "like gemma": {
        "normalization_rule_name": "identity",
        "byte_fallback": True,
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": False,
        "user_defined_symbols": SYMBOLS,
        "control_symbols": ["<c>"],
    },
    "like mistral": {
        "normalization_rule_name": "identity",
        "byte_fallback": True,
        "remove_extra_whitespaces": False,
        "user_defined_symbols": SYMBOLS,
    },
    "across words": {
        "normalization_rule_name": "identity",
        "byte_fallback": True,
        "remove_extra_whitespaces": False,
        "split_by_whitespace": False,
        "split_by_number": False,
        "allow_whitespace_only_pieces": True,
    },
}


def corpus(seed: int, lines: int = 400) -> list[str]:
    """Return lines of made-up words with skewed frequencies, in several scripts."""
    rng = random.Random(seed)
    parts = [
        "the",
        "in",
        "er",
        "tion",
        "a",
        "o",
        "st",
        "xyx",
        "\u0430\u0432",
        "\u0435\u0438",
        "\u65e5\u672c",
        "e\u0301",
        "12",
        "--",
    ]
    words = ["".join(rng.choices(parts, k=rng.randint(1, 4))) for _ in range(150)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    return [" ".join(rng.choices(words, weights, k=rng.randint(1, 12))) for _ in range(lines)]


def train(model_type: str = "bpe", **settings) -> bytes:
    """Train a model of a few hundred pieces and return its bytes."""
    written = io.BytesIO()
    size = {"vocab_size": 460 if settings.get("byte_fallback") else 160, "hard_vocab_limit": False}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus(1)),
        model_writer=written,
        model_type=model_type,
        minloglevel=2,
        **({} if model_type == "bpe" else {"hard_vocab_limit": False}),
        **{"vocab_size": size["vocab_size"], **settings},
    )
    return written.getvalue()


_PIECES = [
    *"  abosthe\t\n\u2581\u2581xyxyx<>.é",
    "e\u0301",
    "e\u0323\u0301",
    "\uff21",
    "\ufdfa",
    "\u200b",
    "\u3000",
    "\ud55c",
]
_PIECES += [
    "\u1112\u1161\u11ab",
    "\U0001f44d\U0001f3fd",
    "\u65e5\u672c",
    "\ufb01",
    "\u00bd",
    "\r\n",
    "\u00a8",
    ">\u0338",
    "\x00",
]
_PIECES += ["<x>", "<c>", "<s>", "<unk>", "<0x41>", "the ", "tion", "  ", "\u0430\u0432", "12"]


def texts(seed: int, count: int) -> list[str]:
    """Return texts of the corpus, and texts that trip normalizers and merges."""
    rng = random.Random(seed)
    nasty = ["".join(rng.choices(_PIECES, k=rng.randint(1, 25))) for _ in range(count)]
    edges = [
        "",
        " ",
        "   ",
        "\u2581",
        " \u2581 ",
        "\u200b",
        " \u200b ",
        "xyxyxyx",
        "xyxyx" * 30,
        "\x00",
        "\ufdfa" * 3,
    ]
    return [*edges, *corpus(seed + 1, 60), "\n".join(corpus(seed + 2, 60)), *nasty]
