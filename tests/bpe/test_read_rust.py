"""The reader of the Rust dialect matches like tiktoken."""

from __future__ import annotations

import random
import re

import pytest
from family_patterns import FAMILY_PATTERNS
from pattern_matcher import matched
from peer_pieces import tiktoken_pieces
from random_patterns import random_pattern, random_text

from bpe.errors import BadTokenizer, UnsupportedPattern
from bpe.pretokenization.read_rust import read

CONSTRUCTS = [
    r"\d+|\D",
    r"\w+|\W",
    r"\s+|\S",
    r"\h+|\H",
    r"[\h_-]+|[^\H]",
    r".+",
    r"(?s).+",
    r"(?s:.)x|.(?-s:.)",
    r"\O+",
    r"\N+",
    r"\R|.",
    r"^a|b$|^.",
    r"(?m)^.|.$",
    r"\A.|.\z|.\Z",
    r"\bs|\Bs|\b",
    r"\<.|.\>",
    r"\b{start}.|.\b{end}|\b{start-half}|\b{end-half}\n",
    r"(?i)ss|ß|k|\x{130}",
    r"(?i:s)s",
    r"(?:a(?i)b)C",
    r"(?=a(?i)b)AB|.",
    r"(?i)\'S|\é",
    r"(?i)[s-z]+|[^S]",
    r"(?i)\p{Lu}|[\p{Lu}]|\P{Lu}",
    r"(?i)[a-z&&[^S]]|[\w--s]",
    r"(?x) a b # what a b is" + "\n" + r" | [ ] \  (?# nothing ) c",
    r"(?x)( ?:a b)c|( # d" + "\n" + r" ?:a)",
    r"a(?#b)c|(?#)b",
    r"(?U)a+|b+?",
    r"(?U:s*)t",
    r"a{2}{3}|a{,2}|a{,}b|a{|a{x}|{2}",
    r"s++s|s*+|s?+s",
    r"a{1,2}+a|(?:a|b){2}+",
    r"a+?b|a*?|a??b",
    r"(?>a|ab)c|(?>a+)b",
    r"(?=a)a|(?!a).|(?<=a)b|(?<!a)c",
    r"(?<=\n)a|(?<!^)b",
    r"(?:|a)*b",
    r"[]a]+|[^]a]",
    r"[-a]|[a-]|[--a]|[^-]",
    r"[a-c&&b-d]|[a-z--m]|[a-m~~c-z]",
    r"[a&&]|[&&a]|[\p{L}&&\p{Lu}&&[^B]]",
    r"[[a-c][^a-z]]|[^[^a]]",
    r"[[:alpha:]]+|[[:^alpha:]]|[[:word:]&&[:upper:]]",
    r"(?i)[[:upper:]]+",
    r"[[:alpha]]|[[:foo:]]",
    r"[\x41-\x{5A}\u0061-\U0000007A]+",
    r"[\b\A\z]|\a\e\f\v",
    r"\pL+|\PL|[\pN\PN]",
    r"\p{^L}|\P{^Lu}",
    r"\p{Letter}|\p{uppercase_letter}|\p{Is_Lu}",
    r"\p{gc=Lu}|\p{General_Category:Nd}|\p{gc!=L}",
    r"\p{sc=Han}|\p{Script=Greek}|\p{scx=Hira}|\p{Script_Extensions=Kana}",
    r"\p{Han}|\p{isCyrillic}|\p{Emoji}|\p{Ideographic}|\p{XID_Start}",
    r"\p{alnum}+|\p{blank}|\p{cntrl}|\p{word}|\p{graph}|\p{print}|\p{any}|\p{ascii}",
    r"[\p{alnum}_]+|[\P{word}]|[^\p{graph}]",
    r"\p{cs}|\p{cf}|\p{sc}|\p{lc}",
    "",
    "|a",
    "a||b",
    r"(?:)|a",
]
BAD = [
    ("a)", "pattern, character 1: "),
    ("(a", "pattern, character 0: "),
    ("[a", "pattern, character 0: "),
    ("[z-a]", "pattern, character 1: "),
    (r"[\d-z]", "pattern, character 1: "),
    ("a**", "pattern, character 2: "),
    ("*", "pattern, character 0: "),
    ("(?=a)*", "pattern, character 5: "),
    ("a{3,2}", "pattern, character 1: "),
    ("\\", "pattern, character 0: "),
    (r"\q", "pattern, character 0: "),
    (r"\xZZ", "pattern, character 0: "),
    (r"\x{110000}", "pattern, character 0: "),
    (r"\ud800", "pattern, character 0: "),
    (r"\p{L", "pattern, character 0: "),
    ("(?z)a", "pattern, character 0: "),
    ("(?#a", "pattern, character 0: "),
    ("(?:" * 65 + ")" * 65, "pattern, character 192: "),
    ("(?:" * 6000, "pattern, character 192: "),
    ("[" * 5000, "pattern, character 64: "),
    ("(?:a{1000}){1000}", "pattern: "),
    ("(?:(?:(?:(?:a{99}){99}){99}){99}){99999999999999999999999}", "pattern: "),
    ("a" * 2001, "pattern: "),
]
UNSUPPORTED = [
    (r"a\g<1>", "pattern, character 1: "),
    (r"a(?P>n)", "pattern, character 1: "),
    (r"(?(1)a|b)", "pattern, character 0: "),
    (r"(?~ab)", "pattern, character 0: "),
    (r"a(*FAIL)", "pattern, character 1: "),
    (r"a\Kb", "pattern, character 1: "),
    (r"\Ga", "pattern, character 0: "),
    (r"(?R)a", "pattern, character 0: "),
    (r"b(a)", "pattern, character 1: "),
    (r"(?<n>a)", "pattern, character 0: "),
    (r"(?P<n>a)", "pattern, character 0: "),
    (r"(?'n'a)", "pattern, character 0: "),
    (r"a\1", "pattern, character 1: "),
    (r"\k<n>", "pattern, character 0: "),
    (r"(?P=n)", "pattern, character 0: "),
    (r"\p{Block=Basic_Latin}", "pattern, character 0: "),
]


def some_texts(seed: int, count: int = 40) -> list[str]:
    generator = random.Random(seed)
    alphabet = (
        "aBcsSßẞſkKİı'tTreEvV12٣ \n\r\t\u00a0\u3000.,!?/#ǅʰªא\u0301々漢字かナ한글😀é-_()[]{}|^&\x07\x1b\x0b"
    )
    return ["", *("".join(generator.choices(alphabet, k=generator.randint(1, 20))) for _ in range(count))]


def assert_equal(expression: str, texts: list[str]) -> None:
    node = read(expression)
    theirs = tiktoken_pieces(expression, texts)
    for text in texts:
        assert matched(node, text) == theirs(text), (expression, text)


@pytest.mark.parametrize("name", FAMILY_PATTERNS)
def test_patterns_of_published_tokenizers(name: str) -> None:
    assert_equal(FAMILY_PATTERNS[name], some_texts(1, 30))


@pytest.mark.parametrize("expression", CONSTRUCTS)
def test_each_construct(expression: str) -> None:
    generator = random.Random(2)
    near = [each for each in expression if each.isalnum()] + list("a bsSßAB\n")
    texts = ["".join(generator.choices(near, k=generator.randint(1, 12))) for _ in range(30)]
    assert_equal(expression, [*texts, *some_texts(3, 15), "a\n", "a\n\n", "\na", "a\r\n"])


def test_random_patterns() -> None:
    generator = random.Random(4)
    for _ in range(60):
        expression = random_pattern(generator, "rust")
        assert_equal(expression, [random_text(generator, generator.randint(1, 20)) for _ in range(8)])


@pytest.mark.parametrize(("expression", "named"), BAD)
def test_wrong_syntax_is_named(expression: str, named: str) -> None:
    with pytest.raises(BadTokenizer, match=re.escape(named)) as raised:
        read(expression)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(("expression", "named"), UNSUPPORTED)
def test_unsupported_syntax_is_named(expression: str, named: str) -> None:
    with pytest.raises(UnsupportedPattern, match=re.escape(named) + ".* is not supported"):
        read(expression)
