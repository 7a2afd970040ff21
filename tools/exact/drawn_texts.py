"""Random texts for a tokenizer: from its vocabulary, from excerpts of real texts, and from difficult characters.

They contain entries that real texts lack, arbitrary sequences of entries, partial words, and edge cases of patterns.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bpe import Tokenizer

HARD = "aSſ1'.\u0301 \n\r\t\u3000\u00a0漢ÀßΣς९𝟏🙂\u200d"
DOCUMENTS = 40
EXCERPT_BYTES = 40_000


def documents(drawn: random.Random, tokenizer: Tokenizer, texts: list[Path], separator: str) -> list[str]:
    """Return DOCUMENTS texts without the separator, of up to tens of kilobytes, each of one kind."""
    kinds = [of_entries, of_common_entries, of_hard_characters] + [of_excerpts, of_words] * bool(texts)
    made = (drawn.choice(kinds)(drawn, tokenizer, texts) for _ in range(DOCUMENTS))
    return [document.replace(separator, " ") for document in made]


def of_entries(drawn: random.Random, tokenizer: Tokenizer, _: list[Path]) -> str:
    """Return a random sequence of entries of the vocabulary."""
    ids = ordinary_ids(tokenizer)
    chosen = np.random.default_rng(drawn.getrandbits(32)).integers(len(ids), size=drawn.randint(10, 10_000))
    return tokenizer.decode(ids[chosen], errors="replace")


def of_common_entries(drawn: random.Random, tokenizer: Tokenizer, _: list[Path]) -> str:
    """Repeat a few entries, mostly with low IDs: short pieces and their merges."""
    ids = ordinary_ids(tokenizer)
    few = [ids[int(len(ids) * drawn.random() ** 3)] for _ in range(drawn.choice([3, 30, 1000]))]
    return tokenizer.decode(drawn.choices(few, k=drawn.randint(10, 10_000)), errors="replace")


def of_hard_characters(drawn: random.Random, _: Tokenizer, __: list[Path]) -> str:
    """Return difficult characters in random order, with occasional runs."""
    runs = [character * drawn.choice([1, 1, 1, 1, 1, 1, 2, 3, 17]) for character in HARD]
    return "".join(drawn.choices(runs, k=drawn.randint(10, 5000)))


def of_excerpts(drawn: random.Random, _: Tokenizer, texts: list[Path]) -> str:
    """Return a random excerpt of a real text, cut at any byte."""
    path = drawn.choice(texts)
    with path.open("rb") as file:
        file.seek(drawn.randrange(path.stat().st_size))
        return file.read(drawn.randint(1, EXCERPT_BYTES)).decode(errors="replace")


def of_words(drawn: random.Random, tokenizer: Tokenizer, texts: list[Path]) -> str:
    """Return words of real texts, cut and joined at random, in original or changed case."""
    words = "".join(of_excerpts(drawn, tokenizer, texts) for _ in range(2)).split(" ")
    ends = drawn.choices(words, k=len(words) // 2)
    changes: list[Callable[[str], str]] = [str, str.upper, str.title, str.swapcase]
    change = drawn.choice(changes)
    joint = drawn.choice([" ", " ", "", "\n", "  ", "-", "1"])
    return joint.join(
        change(start[: drawn.randint(1, 12)] + end[drawn.randint(0, 6) :])
        for start, end in zip(drawn.choices(words, k=len(ends)), ends, strict=True)
    )


@functools.lru_cache(maxsize=4)
def ordinary_ids(tokenizer: Tokenizer) -> NDArray[np.uint32]:
    return np.fromiter(tokenizer.ordinary_entries, np.uint32)
