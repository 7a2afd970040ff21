"""The native pre-tokenizers against the expressions of bpe/patterns.py, run by `regex` and tiktoken, with any cuts.

`regex` may use a later Unicode version than tiktoken and this project, so text compared with `regex`
uses characters on which both agree. Every variant scans texts shorter than a block one character at a time, so most
texts here are long, or many short ones joined.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import regex
from pretoken_ends import pretoken_ends

from bpe import _core
from bpe.patterns import PATTERNS
from bpe.pretokenization.unicode_tables import required
from bpe.pretokenizer import Pretokenizer

ROOT = Path(__file__).resolve().parents[2]
# Character classes of the patterns, as `regex` and the project's tables name them.
CLASSES = {
    r"[\p{Lu}\p{Lt}]": ("lu", "lt"),
    r"\p{Ll}": ("ll",),
    r"[\p{Lm}\p{Lo}]": ("lm", "lo"),
    r"\p{M}": ("m",),
    r"\p{N}": ("n",),
    r"\s": (r"\s",),
}
COMPILED = {name: regex.compile(expression) for name, expression in PATTERNS.items()}

SPACES = "\t\n\v\f\r\x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000"
NOT_QUITE_SPACES = "\u180e\u200b\u200d\ufeff\x00\x1c"
CONTRACTIONS = "'sStTdDmMlLvVrReE\u017f\u212a\u2019"
NUMBERS = "019\u0663\u06f5\u0967\u2167\u00b2\u00bd\uff17\U0001d7d8"
LETTERS = "aZéÉßſǅʰªдДאبกกि\u0301中文かカ한\U00020000\U0001d400\ufb01"
MARKS = "\u0301\u0903\u064b\u0e34\u094d\ufe0f\u20dd"
OTHERS = '!.,-_/<>("·€—“”…。！😀🇦\ue000\U000f0000\u0378'
EVERYTHING = SPACES + NOT_QUITE_SPACES + CONTRACTIONS + NUMBERS + LETTERS + MARKS + OTHERS
# Each alphabet tests one interaction with few characters: word prefixes, line breaks, letter case, contractions,
# numbers.
ALPHABETS = {
    "everything": EVERYTHING,
    "spaces": " \n\r\t\u3000\xa0a!",
    "line breaks": "\n\r /!a  ",
    "contractions": "'stTlLrevA\u017f ",
    "case": "aBcD中\u0301ʰ'",
    "case and contractions": "aB中'sSlL\u0301",
    "marks": "a\u0301\u0903!! \n中B",
    "numbers": "12\u0663\uff17a ",
    "words": "abcdefg    .,'",
    "ideographs": "中文字漢。，a",
    "prefixes": "a!\u201c —1\t",
    "emoji": "😀\u200d\ufe0f❤ a",
}


def by_regex(text: str, pattern: str) -> list[int]:
    ends = itertools.accumulate(len(match.group().encode()) for match in COMPILED[pattern].finditer(text))
    return list(ends)


def check(text: str, pattern: str) -> None:
    found = pretoken_ends(text.encode(), pattern)
    assert found.dtype == np.uint64
    expected = by_regex(text, pattern)
    if found.tolist() != expected:
        first = next(i for i, (a, b) in enumerate(zip([*found, -1], [*expected, -1], strict=False)) if a != b)
        around = text.encode()[max(0, expected[max(0, first - 2)] - 4) : expected[first] + 80]
        pytest.fail(
            f"pretoken {first} ends at {found[first]}, by regex at {expected[first]}, near {around!r}"
        )


# -- against regex -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_random_text(variant: str, pattern: str, alphabet: str) -> None:
    rng = random.Random(f"{alphabet} 1")
    characters = ALPHABETS[alphabet]
    for _ in range(12):
        few = rng.choices(characters, k=rng.randint(2, len(characters)))
        check("".join(rng.choices(few, k=rng.choice([30, 100, 300, 1500]))), pattern)


RUNS = (
    *("a aB \n 1 ! 中 \u0301 \u3000 é ' / \xa0".split(" ")),
    *(" ", " \t", " \n\t\r\v\f", "\n\r", " \n\u3000", "0123", "01\u0663", "12²", "ABC", "ABʰ", "abc"),
    *("ab\u0301", "aB1"),
)
AROUND = [("", ""), (" ", "x"), ("x", " y"), ("!", "\nA"), ("\n", "'s"), ("B", "1"), ("1", "/")]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_runs_that_fill_blocks(variant: str, pattern: str) -> None:
    """Runs of one class, each between other characters."""
    rng = random.Random(3)
    for characters in RUNS:
        for size in [3, 4, 5, 61, 62, 63, 64, 65, 127, 128, 129, 193, 400]:
            start, end = rng.choice(AROUND)
            run = "".join(rng.choices(characters, k=size))
            check(start + run + end + characters[0] * 70 + end, pattern)


def short_strings(characters: str, longest: int) -> Iterator[str]:
    for size in range(1, longest + 1):
        yield from map("".join, itertools.product(characters, repeat=size))


@pytest.mark.slow
@pytest.mark.parametrize("separator", [" x ", "\n", "A", "0z"])
@pytest.mark.parametrize("characters", ["aB's \n1!中\u0301", "lL'\u017f/\n! \u3000ʰ"])
def test_all_strings_of_a_few_hard_characters(characters: str, separator: str) -> None:
    """All strings of up to length 4 between separators, and up to length 3 alone."""
    text = separator.join(short_strings(characters, 4))
    for pattern in PATTERNS:
        for name in _core.simd_variants():
            _core.set_simd_variant(name)
            check(text, pattern)
        for alone in short_strings(characters, 3):
            check(alone, pattern)
    _core.set_simd_variant(_core.simd_variants()[0])


# -- Unicode classes ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def classes() -> bytes:
    """Return the class of each code point, 0 for none of CLASSES."""
    table = bytearray(0x110000)
    for number, names in enumerate(CLASSES.values(), 1):
        for start, stop in (span for name in names for span in required("rust", name).ranges):
            table[start:stop] = bytes([number]) * (stop - start)
    return bytes(table)


@pytest.mark.slow
@pytest.mark.parametrize("context", ["a{0}B{0}{0} {0}1{0}\n", "!{0}a{0}'s {0}{0}b\n"])
def test_every_character(classes: bytes, context: str) -> None:
    """All characters of one class and size are cut alike: as `regex` cuts the first of them."""
    special = set("\n\r '/")
    groups: dict[tuple[int, int], list[str]] = {}
    for code_point, number in enumerate(classes):
        if not 0xD800 <= code_point < 0xE000 and (character := chr(code_point)) not in special:
            groups.setdefault((number, len(character.encode())), []).append(character)
    for (number, _), characters in groups.items():
        characters = [c for c in characters if c not in "sSdDmMtTlLvVrReE\u017f"]
        period = len(context.format(characters[0]).encode())
        buffer = "".join([*map(context.format, characters), context[0]]).encode()  # ends in another context
        example = next(c for c in characters if c not in "\u0295")
        for pattern in PATTERNS:
            row = np.array(by_regex(context.format(example) * 2, pattern), np.int64)
            row = row[row <= period]
            assert row[-1] == period  # each context is pre-tokenized independently
            for name in _core.simd_variants():
                _core.set_simd_variant(name)
                ends = pretoken_ends(buffer, pattern)[:-1].astype(np.int64)
                assert len(ends) == len(row) * len(characters), (number, pattern, name)
                rows = ends.reshape(len(characters), len(row)) - period * np.arange(len(characters))[:, None]
                wrong = np.flatnonzero((rows != row).any(axis=1))
                assert not len(wrong), (pattern, name, [hex(ord(characters[i])) for i in wrong[:9]])
    _core.set_simd_variant(_core.simd_variants()[0])


# -- the shape of calls ------------------------------------------------------------------------------------------


def test_many_batches_and_long_pretokens(variant: str) -> None:
    text = ("ab " * 5000 + "c" * 100_000 + " " * 70_000 + "12345" * 3000 + "!\n" * 9000) * 2
    for pattern in PATTERNS:
        check(text, pattern)


def test_the_environment_chooses_the_variant() -> None:
    assert _core.simd_variants()[-1] == "portable"
    command = [
        sys.executable,
        "-c",
        "from bpe.pretokenizer import named; print(len(named('gpt2').pretokens('a b' * 99)))",
    ]
    for name, expected in [("portable", "100"), ("sse9", "")]:
        done = subprocess.run(
            command,
            env={**os.environ, "BPE_SIMD": name},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.strip() == expected
        assert ("SIMD variant 'sse9'" in done.stderr) == (name == "sse9")


# -- safe cuts ---------------------------------------------------------------------------------------------------


SLOW = r"a(?=[ab]{9}b)b?|(?s:.)"  # its lookahead needs too many states


def test_a_slow_pattern_is_split_by_the_regex_package() -> None:
    pretokenizer = Pretokenizer.from_pattern(SLOW)
    assert "cannot be compiled" in str(pretokenizer.slow_note)
    generator = random.Random(3)
    for _ in range(200):
        text = "".join(generator.choices("aab b\né", k=30))
        assert pretokenizer.pretokens(text) == regex.findall(SLOW, text)
