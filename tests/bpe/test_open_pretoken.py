"""What the core says of the pretoken at the end of a text holds for everything that may follow."""

from __future__ import annotations

import itertools
import random

import pytest

from bpe import _core
from bpe.patterns import PATTERNS

# A character of each class and what the patterns name: lower, upper, caseless, title, modifier, mark, number, others,
# whitespace, line breaks.
CHARACTERS = ["a", "s", "B", "字", "ǅ", "ʰ", "\u0301", "1", "!", "'", "/", " ", "\t", "\u3000", "\n", "\r"]
MORE = [
    "",
    *("".join(more) for n in (1, 2) for more in itertools.product(CHARACTERS, repeat=n)),
    "'ll",
    "BBa",
]


def ends(text: str, pattern: str) -> list[int]:
    found: list[int] = _core.pretokenize(text.encode(), pattern).tolist()
    return found


def check(text: str, pattern: str, continuations: list[str]) -> bool:
    """Whether the pretoken that is open reaches behind its first character for certain."""
    data = text.encode()
    start, settled, head = _core.open_pretoken(data, pattern)
    assert 0 <= start <= settled <= len(data)
    now = ends(text, pattern)
    certain = [end for end in now if end <= start]
    assert not start or certain[-1] == start
    p = max(settled - 1, start)
    while p > start and data[p] & 0xC0 == 0x80:
        p -= 1
    stand_in = head + data[p:]
    for more in continuations:
        whole = ends(text + more, pattern)
        assert whole[: len(certain)] == certain, (text, more)
        rest = [end for end in whole[len(certain) :] if end > start]
        assert len(rest) + len(certain) == len(whole)
        assert not rest or rest[0] >= settled, (text, more)
        if p > start:
            shorter = _core.pretokenize(stand_in + more.encode(), pattern).tolist()
            assert [end - len(head) + p for end in shorter] == rest, (text, more, stand_in)
    return p > start


@pytest.mark.parametrize("pattern", PATTERNS)
def test_short_texts_and_all_that_may_follow(pattern: str) -> None:
    texts = ["".join(text) for n in (1, 2, 3) for text in itertools.product(CHARACTERS, repeat=n)]
    rng = random.Random(pattern)
    long = sum(check(text, pattern, [*rng.sample(MORE, 12), "", "a", "Ba", "\n", "'s"]) for text in texts)
    assert long > 100


@pytest.mark.parametrize("pattern", PATTERNS)
def test_runs_and_all_that_may_follow(pattern: str) -> None:
    rng = random.Random(f"{pattern} runs")
    long = 0
    for _ in range(400):
        kinds = [rng.sample(CHARACTERS, rng.choice([1, 1, 2, 3])) for _ in range(rng.choice([1, 1, 2, 3]))]
        text = "".join("".join(rng.choices(kind, k=rng.choice([1, 2, 9, 20]))) for kind in kinds)
        long += check(
            text, pattern, [*rng.sample(MORE, 20), "", "a", "Ba", "\n", "'s", "".join(kinds[-1] * 9)]
        )
    assert long > 100


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("character", ["a", "B", "字", "\u0301", "!", "\0", " ", "\n", "\u3000"])
def test_of_a_run_all_is_settled_but_its_last_character(pattern: str, character: str) -> None:
    data = (character * 500).encode()
    start, settled, _ = _core.open_pretoken(data, pattern)
    assert start == 0
    assert settled >= len(data) - len(character.encode())


@pytest.mark.parametrize("pattern", PATTERNS)
def test_ordinary_text_is_certain_up_to_its_last_word(pattern: str) -> None:
    data = ("It's what the others don't see, isn't it? 12345 " * 9).encode()
    start, _, _ = _core.open_pretoken(data, pattern)
    assert len(data) - 20 < start < len(data)


def test_nothing_is_open_in_no_text() -> None:
    assert _core.open_pretoken(b"", "gpt2") == (0, 0, b"")
    with pytest.raises(ValueError, match="gpt3"):
        _core.open_pretoken(b"a", "gpt3")
