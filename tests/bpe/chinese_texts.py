"""Random texts of Chinese and kana and of what stands between them."""

from __future__ import annotations

import random

# Letters that often stand together, other letters, and what is no letter but has three bytes: others, whitespace,
# numbers, letters with case, a mark, a sign of a script whose lead byte is E0.
WORDS = "天地人和"
LETTERS = WORDS + "龍鳳麟書あいカー한雪"
OTHERS = "，。「」…\u3000\u20281２ａＡ\u3099ไ"
BETWEEN = [
    "\n",
    "\n\n",
    "\r\n",
    " ",
    "a",
    "A",
    "'s",
    "'",
    "/",
    "7",
    "é",
    "я",
    "😀",
    "。\n",
    "，\n/",
    "\n\u3000\u3000",
]


def text_of(rng: random.Random, size: int) -> str:
    """Runs of around the sixteen characters that a block has, and what ends them."""
    parts = []
    while size > 0:
        run = rng.choice([1, 2, 3, 7, 14, 15, 16, 17, 18, 31, 32, 33])
        letters = rng.choice([WORDS, LETTERS, LETTERS, LETTERS + "，。", LETTERS + OTHERS])
        parts += rng.choices(letters, k=run)
        parts += rng.choices(BETWEEN, k=rng.choice([0, 1, 1, 1, 2]))
        size -= run
    return "".join(parts)
