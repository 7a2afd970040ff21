"""Random text of Chinese, kana and the characters between them."""

from __future__ import annotations

import random

# Letters that often appear together, other letters, and three-byte characters that are not letters: symbols,
# whitespace, numbers, cased letters, a mark, and a character of a script with lead byte E0.
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
    """Return runs of about 16 characters, the size of a block, and characters that end them."""
    parts = []
    while size > 0:
        run = rng.choice([1, 2, 3, 7, 14, 15, 16, 17, 18, 31, 32, 33])
        letters = rng.choice([WORDS, LETTERS, LETTERS, LETTERS + "，。", LETTERS + OTHERS])
        parts += rng.choices(letters, k=run)
        parts += rng.choices(BETWEEN, k=rng.choice([0, 1, 1, 1, 2]))
        size -= run
    return "".join(parts)
