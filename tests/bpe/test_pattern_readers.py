r"""Both pattern dialects are read as their libraries read them, and written for the other library without a change.

Each expression is read, compiled and run by the core, or by the `regex` package if it cannot be compiled. Its pieces
equal those of tiktoken (Rust) or tokenizers (Oniguruma).
"""

from __future__ import annotations

import random

import pytest
from family_patterns import FAMILY_PATTERNS
from peer_pieces import tiktoken_pieces, tokenizers_pieces
from random_patterns import Dialect, random_pattern, random_text

from bpe.errors import BadTokenizer, UnsupportedPattern
from bpe.pretokenization.components import Split
from bpe.pretokenization.write_pattern import to_oniguruma
from bpe.pretokenizer import Pretokenizer

DIALECTS: list[Dialect] = ["oniguruma", "rust"]
CONSTRUCTS = {"oniguruma": [
    r"\d+|\D", r"\w+", r"\W+", r"[\w]+", r"[^\w]+", r"\s+|\S", r"\h+|\H", r"[\h_-]+|[^\H]", ".+", "(?m).+",
    "(?m:.)x|.(?-m:.)", r"\O+", r"\N+", r"\R|.", "^a|b$|^.", "^|$", "^.", ".$", r"^\n|\n^", r"\A.|.\z|.\Z",
    r"\bs|\Bs", r"\b", r"\B", "(?i)ss", r"(?i)ß|k|\x{130}", "(?i)ẞ", "(?i:s)s|(?i:s)(?i:s)",
    "(?i:s(?:s))|(?i:(?:s)s)", r"(?i:s\x73)|(?i:s\u0053)", "(?i:ass+)", "(?i:a(?:ss)+)", "(?i:ß+)",
    "(?i:sß)|(?i:ßs)", "(?i:ffi)|(?i:ff)", "(?i:ﬃ)|(?i:ﬀi)|(?i:ﬁ)", "(?i:[ﬃﬀ])", "(?i:ffl?)",
    "(?i:[ß])x|(?i:[^ß])", "(?i:[s-ß])", "(?i:st)|(?i:ŉ)|(?i:ʼn)", r"(?i:ΐ)|(?i:ΐ)|(?i:\u1fd3)",
    "(?i:ᾳ)|(?i:αι)|(?i:ΑΙ)", "(?i)[ᾀ-ῼ]", "(?i:[ᾳ])|(?i:[^ᾳ])", "(?i:İ)|(?i:i̇)", "(?i:և)|(?i:եւ)",
    "(?<=(?i:ss))a|(?<=(?i:ß))b", "(?<!(?i:ss))a|(?i:(?<=s)t)", "(?i)(?<=ß)a", "a(?i)b|c", "(?:a(?i)b|c)d",
    "(?i-m:s)|(?-i:s)", r"(?i)\p{Lu}|[\p{Lu}]|\P{Lu}", r"(?i)\p{Lu}", r"(?i)[\p{Lu}]", r"(?i)[^\p{Lu}]",
    "(?i)[[^a]]", "(?i)[^[^a]]", "(?i)[a&&[A]]", r"(?i)[a-z&&[^S]]|[\w]", r"(?i)\w|[[:upper:]]",
    "(?x) a b # what a b is\n | [ ] \\  (?# nothing ) c", "a(?#b)c|(?#)b", "a{2}{3}|b{,2}|a{,}b|c{|a{x}",
    "a{2}?b|a{2}+|a{1,2}+", "a{3,1}a|a{1,3}?b", "s++s|s*+|s?+s", "(?:a|b){2}+", "a+?b|a*?|a??b",
    "(?:a+?)+|(?:a*)?b|(?:a?)+?c", "a+?+|a**b|a?*", "(?:a??)+b|(?:a+){2,3}", "(?>a|ab)c|(?>a+)b",
    "(?=a)a|(?!a).|(?<=a)b|(?<!a)c", r"(?<=\n)a|(?<!^)b", "(?<=a|bc)d|(?<!a|bc)e", "(?:|a)*b", "[]a]+|[^]a]",
    "[-a]|[a-]|[^-]", r"[a-c-e]|[a\-c]|[a-c-]", "[+--]|[!--x]", "[a-c&&b-d]", "[a&&]|b",
    r"[\p{L}&&\p{Lu}&&[^B]]", "[a-z&&bc]|[a-z&&^b]", "[[a-c][^a-z]]|[^[^a]]", "[A-[b]]|x", "[A[b]-z]",
    "[[:alpha:]]+|[[:^alpha:]]", "[[:word:]&&[:upper:]]", "[[:alpha]]|[[:a]]|[:b]",
    r"[\x41-\x{5A}\u0061-\x7A]+", r"[\b\A\z\Z]|\a\e\f\v",
    r"\pL+|\PL|[\pN]", r"\Q\E\j\q|\k\g", r"\x{41}", r"\p{^L}|\P{^Lu}", r"\p{Letter}|\p{uppercase_letter}|\p{ L u }",
    r"\p{Han}|\p{Cyrillic}|\p{Emoji}|\p{Ideographic}|\p{XID_Start}",
    r"\p{alnum}+|\p{blank}|\p{cntrl}|\p{graph}|\p{print}|\p{any}|\p{ascii}", r"\p{word}", r"[\p{word}]",
    r"\p{punct}|\p{PosixPunct}", "[[:punct:]]", "]a", "", "|a", "a||b", "(?:)|a", "[a[bc]]+", "[^a[bc]]+",
    "[a-c&&[^b]]+", "[^a-c&&[^b]]+", "[a-z&&bc]+", "[a-z&&^b]+", "[a-c&&[^b]d]+", "[x[a-c&&[^b]]]+",
    "[a-z&&[^b]&&[^c]]+", "[^[^a-c]]+", r"[]\]a[b]]+", r"(?:[a&&[^\]]]|\[)+", r"[\p{L}&&\p{Han}a]+",
], "rust": [
    r"\d+|\D", r"\w+|\W", r"\s+|\S", r"\h+|\H", r"[\h_-]+|[^\H]", ".+", "(?s).+", "(?s:.)x|.(?-s:.)", r"\O+",
    r"\N+", r"\R|.", "^a|b$|^.", "(?m)^.|.$", r"\A.|.\z|.\Z", r"\bs|\Bs|\b",
    r"(?i)ss|ß|k|\x{130}", "(?i:s)s", "(?:a(?i)b)C",
    "(?=a(?i)b)AB|.", r"(?i)\'S|\é", "(?i)[s-z]+|[^S]", r"(?i)\p{Lu}|[\p{Lu}]|\P{Lu}",
    r"(?i)[a-z&&[^S]]|[\w--s]", "(?x) a b # what a b is\n | [ ] \\  (?# nothing ) c",
    "(?x)( ?:a b)c|( # d\n ?:a)", "a(?#b)c|(?#)b", "(?U)a+|b+?", "(?U:s*)t", "a{2}{3}|a{,2}|a{,}b|a{|a{x}|{2}",
    "s++s|s*+|s?+s", "a{1,2}+a|(?:a|b){2}+", "a+?b|a*?|a??b", "(?>a|ab)c|(?>a+)b",
    "(?=a)a|(?!a).|(?<=a)b|(?<!a)c", r"(?<=\n)a|(?<!^)b", "(?:|a)*b", "[]a]+|[^]a]", "[-a]|[a-]|[--a]|[^-]",
    "[a-c&&b-d]|[a-z--m]|[a-m~~c-z]", r"[a&&]|[&&a]|[\p{L}&&\p{Lu}&&[^B]]", "[[a-c][^a-z]]|[^[^a]]",
    "[[:alpha:]]+|[[:^alpha:]]|[[:word:]&&[:upper:]]", "(?i)[[:upper:]]+", "[[:alpha]]|[[:foo:]]",
    r"[\x41-\x{5A}\u0061-\U0000007A]+", r"[\b\A\z]|\a\e\f\v", r"\pL+|\PL|[\pN\PN]", r"\p{^L}|\P{^Lu}",
    r"\p{Letter}|\p{uppercase_letter}|\p{Is_Lu}", r"\p{gc=Lu}|\p{General_Category:Nd}|\p{gc!=L}",
    r"\p{sc=Han}|\p{Script=Greek}|\p{scx=Hira}|\p{Script_Extensions=Kana}",
    r"\p{Han}|\p{isCyrillic}|\p{Emoji}|\p{Ideographic}|\p{XID_Start}",
    r"\p{alnum}+|\p{blank}|\p{cntrl}|\p{word}|\p{graph}|\p{print}|\p{any}|\p{ascii}",
    r"[\p{alnum}_]+|[\P{word}]", r"\p{cs}|\p{cf}|\p{sc}|\p{lc}", "", "|a", "a||b", "(?:)|a",
    "[^[^a-c]]+|[^a-c]", r"[a[b-d]]+|[\s\S]",
]}  # fmt: skip
# Expressions with the offset that the error names.
BAD = {"oniguruma": [
    ("a)", 1), ("(a", 0), ("[a", 0), ("[]", 0), ("[z-a]", 0), (r"[\d-z]", 4), (r"[a-\d]", 5), ("*", 0),
    ("{2}", 0), ("(?=a)*", 5), ("^*", 1), (r"\b+", 2), ("a{100001}", 1), ("\\", 0), (r"\u12", 0),
    (r"\x{110000}", 0), (r"\p{L", 0), ("[[:foo:]]", 1), ("(?s)a", 0),
    ("(?)a", 0), ("(?P<n>a)", 0), ("(?#a", 0), ("(?:" * 6000, 192), ("[" * 5000, 64),
    ("(?:a{1000}){1000}", None), ("a{20}{20}{20}{20}", None), ("a" + "{0,1}?" * 500, None),
], "rust": [
    ("a)", 1), ("(a", 0), ("[a", 0), ("[z-a]", 1), (r"[\d-z]", 1), ("a**", 2), ("*", 0), ("(?=a)*", 5),
    ("a{3,2}", 1), ("\\", 0), (r"\q", 0), (r"\xZZ", 0), (r"\x{110000}", 0), (r"\ud800", 0), (r"\p{L", 0),
    ("(?z)a", 0), ("(?#a", 0), ("(?:" * 65 + ")" * 65, 192), ("(?:" * 6000, 192), ("[" * 5000, 64),
    ("(?:a{1000}){1000}", None), ("(?:(?:(?:(?:a{99}){99}){99}){99}){99999999999999999999999}", None),
    ("a" * 2001, None),
]}  # fmt: skip
UNSUPPORTED = {"oniguruma": [
    (r"a\g<1>", 1), ("(?(1)a|b)", 0), ("(?~ab)", 0), ("a(?{b})", 1), ("a(*FAIL)", 1), (r"a\Kb", 1),
    (r"\Ga", 0), (r"\X", 0), (r"\y", 0), (r"(?W:\w)", 0), ("(?y{g})a", 0), (r"\p{In_Basic_Latin}", 0),
    (r"\x{61 62}", 0), ("b(a)", 1), ("(?<n>a)", 0), ("(?'n'a)", 0), (r"a\1", 1), (r"\k<n>", 0),
    (r"a\xE4\xBD\xA0", 1), (r"\303\251", 0), (r"[\0]", 1), (r"\cA", 0), (r"\C-a", 0), (r"\o{101}", 0), (r"\x{", 0),
], "rust": [
    (r"a\g<1>", 1), ("a(?P>n)", 1), ("(?(1)a|b)", 0), ("(?~ab)", 0), ("a(*FAIL)", 1), (r"a\Kb", 1),
    (r"\Ga", 0), ("(?R)a", 0), ("b(a)", 1), ("(?<n>a)", 0), ("(?P<n>a)", 0), ("(?'n'a)", 0), (r"a\1", 1),
    (r"\k<n>", 0), ("(?P=n)", 0), (r"\p{Block=Basic_Latin}", 0), (r"\b{start}", 0), (r"\<", 0), (r"[^\p{graph}]", 2),
]}  # fmt: skip
FOLDS = "ffi FFI ﬃ ﬀi ﬁ ﬅ st ŉ ʼN ΐ Ϊ́ ᾳ ΑΙ ᾼ αι İ i̇ և ԵՒ ass aß ßs sß ẞ a\n\n"
ALPHABET = (
    "aBcsSßẞſkKİı'tTreEvV12²½٣ \n\r\t\u00a0\u3000.,!?/#ǅʰªא\u0301々漢字かナ한글😀é-_()[]{}|^&\x07\x1b\x0b"
)


def draw(rng: random.Random, alphabet: str | list[str], count: int) -> list[str]:
    return ["".join(rng.choices(alphabet, k=rng.randint(1, 20))) for _ in range(count)]


def check(dialect: Dialect, expression: str, texts: list[str]) -> None:
    if dialect == "rust":  # tiktoken drops the text between matches
        theirs = tiktoken_pieces(expression, texts)
        ours = Pretokenizer((Split(expression, "rust", "Removed", invert=True),))
    else:
        theirs = tokenizers_pieces(expression)
        ours = Pretokenizer((Split(expression, "oniguruma"),))
    for text in texts:
        assert ours.pretokens(text) == [piece for piece in theirs(text) if piece], (expression, text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dialect", "expression"), [(dialect, each) for dialect in DIALECTS for each in CONSTRUCTS[dialect]]
)
def test_each_construct(dialect: Dialect, expression: str) -> None:
    rng = random.Random(2)
    near = [each for each in expression if each.isalpha() or each > "\x7f"] + list("a bsSßſAB\n")
    texts = [*draw(rng, near, 20), *draw(rng, ALPHABET, 10), "", "a\n", "\na", "a\n\n", "a\r\n"]
    if dialect == "oniguruma":
        texts += [FOLDS, "你é好jqkg\0\x01A"]
    check(dialect, expression, texts)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_random_patterns(dialect: Dialect) -> None:
    rng = random.Random(4)
    for _ in range(25):
        expression = random_pattern(rng, dialect)
        check(dialect, expression, [random_text(rng, rng.randint(1, 20)) for _ in range(8)])


@pytest.mark.parametrize("family", FAMILY_PATTERNS)
def test_patterns_of_published_tokenizers(family: str) -> None:
    rng = random.Random(family)
    for dialect in DIALECTS:
        check(dialect, FAMILY_PATTERNS[family], ["", *draw(rng, ALPHABET, 20)])


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("table", "error"), [(BAD, BadTokenizer), (UNSUPPORTED, UnsupportedPattern)])
def test_errors_name_the_offset(
    dialect: Dialect, table: dict[str, list[tuple[str, int | None]]], error: type[Exception]
) -> None:
    for expression, offset in table[dialect]:
        with pytest.raises(error) as raised:
            Pretokenizer((Split(expression, dialect),)).checked()
        where = "pattern: " if offset is None else f"pattern, character {offset}: "
        assert str(raised.value).startswith(where), expression
        assert "\n" not in str(raised.value)
        assert len(str(raised.value)) < 300


@pytest.mark.slow
@pytest.mark.parametrize("expression", [*FAMILY_PATTERNS.values(), None])
def test_patterns_are_written_for_tokenizers(expression: str | None) -> None:
    """None: random expressions. `$` has different meanings, so an expression with `$` is written from its tree."""
    rng = random.Random(9)
    drawn = [expression or random_pattern(rng, "rust", depth=2) for _ in range(1 if expression else 15)]
    for each in [*drawn, *(each + "|\x02$" for each in drawn)]:
        theirs = tokenizers_pieces(to_oniguruma(each))
        ours = Pretokenizer((Split(each, "rust"),))
        for text in draw(rng, ALPHABET, 6):
            assert ours.pretokens(text) == [piece for piece in theirs(text) if piece], (each, text)
