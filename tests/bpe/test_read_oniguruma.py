"""The reader of the Oniguruma dialect matches like tokenizers."""

from __future__ import annotations

import random
import re

import pytest
from family_patterns import FAMILY_PATTERNS
from pattern_matcher import pieces
from peer_pieces import tokenizers_pieces
from random_patterns import random_pattern, random_text

from bpe.errors import BadTokenizer, UnsupportedPattern
from bpe.pretokenization.read_oniguruma import read

CONSTRUCTS = [
    r"\d+|\D",
    r"\w+",
    r"\W+",
    r"[\w]+",
    r"[^\w]+",
    r"\s+|\S",
    r"\h+|\H",
    r"[\h_-]+|[^\H]",
    r".+",
    r"(?m).+",
    r"(?m:.)x|.(?-m:.)",
    r"\O+",
    r"\N+",
    r"\R|.",
    r"^a|b$|^.",
    r"^|$",
    r"^.",
    r".$",
    r"^\n|\n^",
    r"\A.|.\z|.\Z",
    r"\bs|\Bs",
    r"\b",
    r"\B",
    r"(?i)ss",
    r"(?i)ß|k|\x{130}",
    r"(?i)ẞ",
    r"(?i:s)s|(?i:s)(?i:s)",
    r"(?i:s(?:s))|(?i:(?:s)s)",
    r"(?i:s\x73)|(?i:s\u0053)",
    r"(?i:ass+)",
    r"(?i:a(?:ss)+)",
    r"(?i:ß+)",
    r"(?i:sß)|(?i:ßs)",
    r"(?i:ffi)|(?i:ff)",
    r"(?i:ﬃ)|(?i:ﬀi)|(?i:ﬁ)",
    r"(?i:[ﬃﬀ])",
    r"(?i:ffl?)",
    r"(?i:[ß])x|(?i:[^ß])",
    r"(?i:[s-ß])",
    r"(?i:st)|(?i:ŉ)|(?i:ʼn)",
    r"(?i:ΐ)|(?i:ΐ)|(?i:\u1fd3)",
    r"(?i:ᾳ)|(?i:αι)|(?i:ΑΙ)",
    r"(?i)[ᾀ-ῼ]",
    r"(?i:[ᾳ])|(?i:[^ᾳ])",
    r"(?i:İ)|(?i:i̇)",
    r"(?i:և)|(?i:եւ)",
    r"(?<=(?i:ss))a|(?<=(?i:ß))b",
    r"(?<!(?i:ss))a|(?i:(?<=s)t)",
    r"(?i)(?<=ß)a",
    r"a(?i)b|c",
    r"(?:a(?i)b|c)d",
    r"(?i-m:s)|(?-i:s)",
    r"(?i)\p{Lu}|[\p{Lu}]|\P{Lu}",
    r"(?i)\p{Lu}",
    r"(?i)[\p{Lu}]",
    r"(?i)[^\p{Lu}]",
    r"(?i)[[^a]]",
    r"(?i)[^[^a]]",
    r"(?i)[a&&[A]]",
    r"(?i)[a-z&&[^S]]|[\w]",
    r"(?i)\w|[[:upper:]]",
    r"(?x) a b # what a b is" + "\n" + r" | [ ] \  (?# nothing ) c",
    r"a(?#b)c|(?#)b",
    r"a{2}{3}|b{,2}|a{,}b|c{|a{x}",
    r"a{2}?b|a{2}+|a{1,2}+",
    r"a{3,1}a|a{1,3}?b",
    r"s++s|s*+|s?+s",
    r"(?:a|b){2}+",
    r"a+?b|a*?|a??b",
    r"(?:a+?)+|(?:a*)?b|(?:a?)+?c",
    r"a+?+|a**b|a?*",
    r"(?:a??)+b|(?:a+){2,3}",
    r"(?>a|ab)c|(?>a+)b",
    r"(?=a)a|(?!a).|(?<=a)b|(?<!a)c",
    r"(?<=\n)a|(?<!^)b",
    r"(?<=a|bc)d|(?<!a|bc)e",
    r"(?:|a)*b",
    r"[]a]+|[^]a]",
    r"[-a]|[a-]|[^-]",
    r"[a-c-e]|[a\-c]|[a-c-]",
    r"[+--]|[!--x]",
    r"[a-c&&b-d]",
    r"[a&&]|b",
    r"[\p{L}&&\p{Lu}&&[^B]]",
    r"[a-z&&bc]|[a-z&&^b]",
    r"[[a-c][^a-z]]|[^[^a]]",
    r"[A-[b]]|x",
    r"[A[b]-z]",
    r"[[:alpha:]]+|[[:^alpha:]]",
    r"[[:word:]&&[:upper:]]",
    r"[[:alpha]]|[[:a]]|[:b]",
    r"[\x41-\x{5A}\u0061-\x7A]+",
    r"\xE4\xBD\xA0|\303\251|[\xE4\xBD\xA0-\xE5\xA5\xBD]",
    r"[\b\A\z\Z]|\a\e\f\v",
    r"\pL+|\PL|[\pN]",
    r"\Q\E\j\q|\k\g",
    r"\0|\01|\cA|\C-a|\x|[\0]",
    r"\o{101}|\x{41}",
    r"\x{|\x{,3}|\o{|[\x{}]|\x",
    r"\p{^L}|\P{^Lu}",
    r"\p{Letter}|\p{uppercase_letter}|\p{ L u }",
    r"\p{Han}|\p{Cyrillic}|\p{Emoji}|\p{Ideographic}|\p{XID_Start}",
    r"\p{alnum}+|\p{blank}|\p{cntrl}|\p{graph}|\p{print}|\p{any}|\p{ascii}",
    r"\p{word}",
    r"[\p{word}]",
    r"\p{punct}|\p{PosixPunct}",
    r"[[:punct:]]",
    r"]a",
    "",
    "|a",
    "a||b",
    r"(?:)|a",
]
BAD = [
    ("a)", "pattern, character 1: "),
    ("(a", "pattern, character 0: "),
    ("[a", "pattern, character 0: "),
    ("[]", "pattern, character 0: "),
    ("[z-a]", "pattern, character 0: "),
    (r"[\d-z]", "pattern, character 4: "),
    (r"[a-\d]", "pattern, character 5: "),
    ("*", "pattern, character 0: "),
    ("{2}", "pattern, character 0: "),
    ("(?=a)*", "pattern, character 5: "),
    ("^*", "pattern, character 1: "),
    (r"\b+", "pattern, character 2: "),
    ("a{100001}", "pattern, character 1: "),
    ("\\", "pattern, character 0: "),
    (r"\u12", "pattern, character 0: "),
    (r"\x{110000}", "pattern, character 0: "),
    (r"\xE4", "pattern, character 0: "),
    (r"\xFF\xFF\xFF\xFF", "pattern, character 0: "),
    (r"\p{L", "pattern, character 0: "),
    ("[[:foo:]]", "pattern, character 1: "),
    ("(?s)a", "pattern, character 0: "),
    ("(?)a", "pattern, character 0: "),
    ("(?P<n>a)", "pattern, character 0: "),
    ("(?#a", "pattern, character 0: "),
    ("(?:" * 6000, "pattern, character 192: "),
    ("[" * 5000, "pattern, character 64: "),
    ("(?:a{1000}){1000}", "pattern: "),
    ("a{20}{20}{20}{20}", "pattern: "),
    ("a" + "{0,1}?" * 500, "pattern: "),
]
UNSUPPORTED = [
    (r"a\g<1>", "pattern, character 1: "),
    (r"(?(1)a|b)", "pattern, character 0: "),
    (r"(?~ab)", "pattern, character 0: "),
    (r"a(?{b})", "pattern, character 1: "),
    (r"a(*FAIL)", "pattern, character 1: "),
    (r"a\Kb", "pattern, character 1: "),
    (r"\Ga", "pattern, character 0: "),
    (r"\X", "pattern, character 0: "),
    (r"\y", "pattern, character 0: "),
    (r"(?W:\w)", "pattern, character 0: "),
    (r"(?y{g})a", "pattern, character 0: "),
    (r"\p{In_Basic_Latin}", "pattern, character 0: "),
    (r"\x{61 62}", "pattern, character 0: "),
    (r"b(a)", "pattern, character 1: "),
    (r"(?<n>a)", "pattern, character 0: "),
    (r"(?'n'a)", "pattern, character 0: "),
    (r"a\1", "pattern, character 1: "),
    (r"\k<n>", "pattern, character 0: "),
]


def some_texts(seed: int, count: int = 40) -> list[str]:
    generator = random.Random(seed)
    alphabet = (
        "aBcsSßẞſkKİı'tTreEvV12²½٣ \n\r\t\u00a0\u3000.,!?/#ǅʰªא\u0301々漢字かナ한글😀é-_()[]{}|^&\x07\x1b"
    )
    return ["", *("".join(generator.choices(alphabet, k=generator.randint(1, 20))) for _ in range(count))]


def assert_equal(expression: str, texts: list[str]) -> None:
    node = read(expression)
    theirs = tokenizers_pieces(expression)
    for text in texts:
        assert pieces(node, text) == theirs(text), (expression, text)


@pytest.mark.parametrize("name", FAMILY_PATTERNS)
def test_patterns_of_published_tokenizers(name: str) -> None:
    assert_equal(FAMILY_PATTERNS[name], some_texts(1, 40))


@pytest.mark.parametrize("expression", CONSTRUCTS)
def test_each_construct(expression: str) -> None:
    generator = random.Random(2)
    near = [each for each in expression if each.isalpha() or each > "\x7f"] + list("a bsSßſAB\n")
    texts = ["".join(generator.choices(near, k=generator.randint(1, 12))) for _ in range(40)]
    folds = "ffi FFI ﬃ ﬀi ﬁ ﬅ st ŉ ʼN ΐ Ϊ́ ᾳ ΑΙ ᾼ αι İ i̇ և ԵՒ ass aß ßs sß ẞ a\n\n"
    assert_equal(expression, [*texts, *some_texts(3, 15), folds, "a\n", "\na", "a\r\n", "你é好jqkg\0\x01A"])


def test_random_patterns() -> None:
    generator = random.Random(4)
    for _ in range(80):
        expression = random_pattern(generator, "oniguruma")
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
