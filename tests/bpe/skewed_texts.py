"""Texts of made-up words with skewed frequencies, so that counts tie."""

from __future__ import annotations

import random
from collections.abc import Sequence

# Scripts with characters of every length, marks, digits and punctuation.
PARTS = "the in er tion a ab ав еи 日本 語 e\u0301 o\u0308 ß 12 0 \u2581 \U0001f44d <x> - ., ' s".split()


def skewed_text(seed: int, words: int = 2000, between: Sequence[str] = (" ", " ", "  ", "\n", "\t")) -> str:
    """Return words of up to five parts, each followed by one of `between`."""
    rng = random.Random(seed)
    known = ["".join(rng.choices(PARTS, k=rng.randint(1, 5))) for _ in range(250)]
    weights = [1 / (rank + 1) for rank in range(len(known))]
    return "".join(word + rng.choice(between) for word in rng.choices(known, weights, k=words))
