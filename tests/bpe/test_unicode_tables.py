"""The tables equal the classes of tiktoken and tokenizers: some sets over all scalars, others at their edges."""

from __future__ import annotations

import pytest

from bpe.pretokenization import read_oniguruma, read_rust, unicode_tables
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.syntax import Characters, Node
from bpe.pretokenization.unicode_tables import case_classes, named, several_for_one

SCALARS = "".join(chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000)
SCALARS_BY_POINT = SCALARS[:0xD800] + "-" * 0x800 + SCALARS[0xD800:]
_GENERAL = "L M N P S Z C Lu Ll Lt Lm Lo Mn Nd No Pc Sc Sk Cf Cn Co"
_SCRIPTS = "Han Latin Greek Cyrillic Hiragana Katakana Hangul Arabic Thai Common"
_BINARY = "Alphabetic White_Space Uppercase Lowercase Emoji Ideographic XID_Start Extended_Pictographic Cased"
_POSIX = "alnum blank cntrl print graph word"
SETS = [
    *(rf"\p{{{name}}}" for name in f"{_GENERAL} {_SCRIPTS} {_BINARY} {_POSIX}".split()),
    *r"\P{L} \p{^Nd} \w \W \d \s \S \h . [^\s\p{L}\p{N}] [\w] [[:alpha:][:digit:]] [[:punct:]]".split(),
    *r"(?i:[a-zß]) (?i:[^\p{Lu}])".split(),
]
RUST_SETS = r"\p{scx=Han} \p{scx=Deva} \p{sc=Inherited} \p{gc!=L} (?i:\p{Lu}) \pL".split()
ONIGURUMA_SETS = r"[[:graph:]] [[:print:]] [[:word:]] [\W] \p{Punct} (?i:\p{Lu}) (?m:.)".split()


def tiktoken_members(expression: str, text: str) -> str:
    import tiktoken

    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding("set", pat_str=expression, mergeable_ranks=ranks, special_tokens={})
    return bytes(encoding.encode_ordinary(text)).decode()


def tokenizers_members(expression: str, text: str) -> str:
    """Return the characters that disappear when all matches are removed."""
    from tokenizers import Regex, normalizers

    left = set(normalizers.Replace(Regex(expression), "").normalize_str(text))
    return "".join(character for character in text if character not in left)


def members(node: Node) -> CodePoints:
    points = node.points if isinstance(node, Characters) else node.options[0].points  # type: ignore[union-attr]
    assert isinstance(points, CodePoints)
    return points


@pytest.fixture(scope="module")
def edges() -> str:
    """Return the scalars on both sides of every set boundary of the tables, and some others."""
    around = {
        point
        for index in range(len(unicode_tables._tables()["sets"]))
        for span in unicode_tables._points(index).ranges
        for edge in span
        for point in (edge - 1, edge)
    }
    around |= set(range(0, 0x110000, 499))
    return "".join(
        chr(each) for each in sorted(around) if 0 <= each < 0x110000 and not 0xD800 <= each < 0xE000
    )


@pytest.mark.parametrize("expression", [*SETS, *RUST_SETS])
def test_sets_equal_tiktoken(expression: str, edges: str) -> None:
    points = members(read_rust.read(expression))
    assert tiktoken_members(f"(?:{expression})+", edges) == "".join(
        each for each in edges if ord(each) in points
    )


@pytest.mark.parametrize("expression", [*SETS, *ONIGURUMA_SETS])
def test_sets_equal_tokenizers(expression: str, edges: str) -> None:
    points = members(read_oniguruma.read(expression))
    assert tokenizers_members(f"(?:{expression})+", edges) == "".join(
        each for each in edges if ord(each) in points
    )


@pytest.mark.slow
@pytest.mark.parametrize("expression", [r"\w", r"\s", r"\p{L}", r"\p{N}"])
def test_some_sets_over_all_scalars(expression: str) -> None:
    for read, found in ((read_rust.read, tiktoken_members), (read_oniguruma.read, tokenizers_members)):
        ranges = members(read(expression)).ranges
        assert found(f"{expression}+", SCALARS) == "".join(SCALARS_BY_POINT[slice(*span)] for span in ranges)


def test_case_folds_as_in_tiktoken() -> None:
    cased = "".join(map(chr, sorted(case_classes())))
    for character in cased[::9]:
        expected = "".join(map(chr, case_classes()[ord(character)]))
        assert tiktoken_members(f"(?i:{character})", cased) == expected
    every = "".join(rf"\x{{{ord(character):x}}}" for character in cased)
    assert tiktoken_members(f"(?i:[{every}])+", SCALARS) == cased


def test_case_folds_as_in_tokenizers() -> None:
    cased = "".join(map(chr, sorted(case_classes())))
    apart = "\n".join(cased)
    for character in cased[::9]:
        expected = "".join(map(chr, case_classes()[ord(character)]))
        assert tokenizers_members(f"(?i:{character})", apart) == expected
    for folded, ones in several_for_one().items():
        for one in ones:
            assert tokenizers_members(f"(?i:{folded})", chr(one)) == chr(one)
            assert tokenizers_members(f"(?i:{chr(one)})", folded) == folded


def test_unicode_is_16() -> None:
    """Garay is new in 16.0; U+1CCFA and the script Sidetic were added in 17.0."""
    letters, assigned = named("rust", "l"), named("rust", "assigned")
    assert letters is not None
    assert assigned is not None
    assert 0x10D4A in letters
    assert 0x1CCFA not in assigned
    assert named("rust", "sidetic") is None
