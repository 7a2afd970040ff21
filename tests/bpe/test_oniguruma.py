"""Expressions cut alike here and in Hugging Face's readers, or are refused by name."""

from __future__ import annotations

import re

import pytest

from bpe.errors import UnsupportedTokenizer
from bpe.formats.oniguruma import from_oniguruma, to_oniguruma
from bpe.pretokenizer import Pretokenizer
from tests.bpe.splits import split

SAME = [
    r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+",
    r"[^\r\n\p{L}\p{N}]?\p{L}+",
    r"(?i:'s|'t|'re)|\s+(?!\S)|\S+",
    r"\d+|\D+",
    r"[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|\s*[\r\n]+",
    r"[]a]+|[^]a]+",
    r"(?>\p{N}{1,3})|\s++|.",
    r"\p{^L}+|\p{L}|[\p{^N}x]",
    r"(?i)'s|a+|[^\r\n]",
    r"(?i:'s|(?-i:\p{Lu}+))|\p{L}",
    r"(?i:[st]+|x)",
]
REWRITTEN = [
    r"(?i:ki+|It)|.",
    r"(?i)'s|ki|(?-i:i)",
    r"a$|.",
    r"^a|.",
    r"\w+",
    r"\W+",
    r"[\w-]+",
    r"[^\w-]+",
    r"x\Z|.",
    r"\A.|.",
]


def onig_pieces(expression, text):
    """What Hugging Face's Split keeps of the text when it removes all but the matches."""
    from tokenizers import Regex, pre_tokenizers

    split = pre_tokenizers.Split(Regex(expression), "removed", invert=True)
    return [piece for piece, _ in split.pre_tokenize_str(text)]


def texts(nasty_texts):
    return [
        *nasty_texts.values(),
        "a",
        "a\n",
        "xa\na\n",
        "x\n",
        "x",
        "a²b ½c\u200dd",
        "]a[^]b",
        "foo_bar-baz 12",
        "kI Ki KİI kı Itıİt 's 'ſ",
    ]


@pytest.mark.parametrize("expression", SAME)
def test_what_is_the_same_stays_as_it_is(expression, nasty_texts):
    assert to_oniguruma(expression) == expression == from_oniguruma(expression)
    for text in texts(nasty_texts):
        assert Pretokenizer((split(expression, "drop"),)).pretokens(text) == onig_pieces(expression, text), (
            repr(text)
        )


@pytest.mark.parametrize("expression", REWRITTEN)
def test_what_differs_is_rewritten(expression, nasty_texts):
    for text in texts(nasty_texts):
        ours = Pretokenizer((split(expression, "drop"),)).pretokens(text)
        assert ours == onig_pieces(to_oniguruma(expression), text), repr(text)
        read = Pretokenizer((split(from_oniguruma(expression), "drop"),)).pretokens(text)
        assert read == onig_pieces(expression, text), repr(text)


def test_a_dash_behind_word_characters_makes_no_range(nasty_texts):
    """To Oniguruma `[\\w-é]` is an error."""
    expression = r"[\w-é]+"
    for text in texts(nasty_texts):
        ours = Pretokenizer((split(expression, "drop"),)).pretokens(text)
        assert ours == onig_pieces(to_oniguruma(expression), text), repr(text)


@pytest.mark.parametrize("expression", [*SAME, *REWRITTEN])
def test_there_and_back_cuts_alike(expression, nasty_texts):
    once = to_oniguruma(expression)
    again = from_oniguruma(once)
    assert to_oniguruma(again) == once
    for text in texts(nasty_texts):
        pretokens = Pretokenizer((split(expression, "drop"),)).pretokens(text)
        assert Pretokenizer((split(again, "drop"),)).pretokens(text) == pretokens, repr(text)


def test_word_characters_over_all_of_unicode():
    """Every 7th assigned character of the older blocks: both libraries' tables know them."""
    text = "".join(map(chr, [*range(0, 0x3000), *range(0x3000, 0xA000, 7), 0x200C, 0x200D]))
    import unicodedata

    text = "".join(character for character in text if unicodedata.category(character) != "Cn")
    ours = Pretokenizer((split(from_oniguruma(r"\w"), "drop"),)).pretokens(text)
    assert ours == onig_pieces(r"\w", text)
    assert Pretokenizer((split(r"\w", "drop"),)).pretokens(text) == onig_pieces(to_oniguruma(r"\w"), text)


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        (r"\p{N}{1,3}+|\s", "{n,m}+ does not mean the same"),
        (r"a{2}+", "{n,m}+"),
        (r"\bword\b", r"\b does not"),
        (r"\h+", r"\h does not"),
        (r"(?m)a", "(?m)"),
        (r"a|(?i)b|c", "(?i)"),
        (r"(?i)a|\p{Lu}", r"\p{Lu} under (?i)"),
        (r"(?i:[^\p{L}])", r"\p{L} under (?i)"),
        (r"(?i:a(?:b|\w))", r"\w under (?i)"),
        (r"(?i:first)", "fi under (?i)"),
        (r"(?i)ß|a", "ß under (?i)"),
        (r"(?i:[a-z]+)", "a-z under (?i)"),
        (r"(?i:[xi])", "i under (?i)"),
        (r"(?i:[g-i])", "g-i under (?i)"),
        (r"(?i:ı)", "ı under (?i)"),
        (r"(?s:.)", "(?s:"),
        (r"(?x) a", "(?x)"),
        (r"(?P<name>a)", "(?P<"),
        (r"[a--b]", "--"),
        (r"[\W]", r"[\W]"),
    ],
)
def test_what_can_not_be_said_is_refused_by_name(expression, named):
    for translate in (to_oniguruma, from_oniguruma):
        with pytest.raises(UnsupportedTokenizer, match=re.escape(named)):
            translate(expression)


def test_a_property_of_one_letter_gets_braces(nasty_texts):
    """To Hugging Face's readers they are the letters pL."""
    expression = r"\pL+|\PL|[^\pL\s]"
    assert to_oniguruma(expression) == r"\p{L}+|\P{L}|[^\p{L}\s]"
    for text in texts(nasty_texts):
        ours = Pretokenizer((split(expression, "drop"),)).pretokens(text)
        assert ours == onig_pieces(to_oniguruma(expression), text), repr(text)
    with pytest.raises(UnsupportedTokenizer, match=r"\\pL does not mean the same .* write \\p{L}"):
        from_oniguruma(expression)


@pytest.mark.parametrize(
    "expression", [r"[0-9]*|[a-z]+", r"(?=[A-Z])|b+", r"\s*?|a", r"x*|(?<=a)b", r"\z|$|a?"]
)
def test_empty_matches_cut_alike(expression, nasty_texts):
    """Behind one the search goes on a character further, whatever else would match there."""
    from tokenizers import Regex, pre_tokenizers

    split = pre_tokenizers.Split(Regex(expression), "isolated")
    ours = Pretokenizer((split(from_oniguruma(expression), "keep"),))
    for text in [*texts(nasty_texts), "12ab3", "aBbbC", "xxabab", ""]:
        assert ours.pretokens(text) == [piece for piece, _ in split.pre_tokenize_str(text)], repr(text)
