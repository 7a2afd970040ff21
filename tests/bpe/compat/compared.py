"""Encodings of this package beside those of tokenizers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

COLUMNS = (
    "ids tokens offsets word_ids attention_mask type_ids special_tokens_mask sequence_ids n_sequences".split()
)
PIECES = [
    *(
        "the",
        "The mill",
        " river",
        "\n",
        " ",
        "  ",
        "   \n",
        "\t",
        "é",
        "e\u0301",
        "日本語",
        "\u0301",
        "\u0323\u0301",
    ),
    *(
        "\U0001f44d",
        "\U0001f469\u200d\U0001f467",
        "'s",
        "'LL",
        "1234",
        "!!",
        "\x85",
        "\r\n",
        "한국어",
        "\u1112\u1161\u11ab",
    ),
    *(
        "ﬁ",
        "\u212b",
        "\u0958",
        "Ǆ",
        "İ",
        "ß",
        "\u00a0",
        "\u200b",
        "\u3000",
        "①",
        "㍿",
        "\u0344",
        "a\u0315\u0300\u05aeb",
    ),
    *(
        "\u1e9b\u0323",
        "\x00",
        "\ufeff",
        "Ġ",
        "▁",
        "<s>",
        "</s>",
        " <mask> ",
        "[END]  ",
        "Mill",
        "wörd",
        "Wörds",
        "கி",
        "\U0001d15e",
    ),
]


def texts(count: int, seed: int, most: int = 8) -> list[str]:
    """Random texts of what goes wrong."""
    drawn = random.Random(seed)
    return ["", *("".join(drawn.choices(PIECES, k=drawn.randint(0, most))) for _ in range(count))]


def assert_same(ours: Any, theirs: Any, *where: Any) -> None:
    """Every column, and those of the overflowing parts."""
    for column in COLUMNS:
        assert getattr(ours, column) == getattr(theirs, column), (where, column)
    assert len(ours) == len(theirs)
    assert ours.ids == theirs.ids  # once more: now all of it has been made
    for part, (mine, other) in enumerate(zip(ours.overflowing, theirs.overflowing, strict=True)):
        assert_same(mine, other, *where, "overflowing", part)


def answer(question: Callable[[Any], Any], asked: Any) -> Any:
    """What is answered, or the error raised."""
    try:
        return question(asked)
    except BaseException as error:  # a panic is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return error
