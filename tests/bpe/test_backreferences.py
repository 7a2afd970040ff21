"""Backreferences: read in both dialects, never compiled, cut by the `regex` package as tiktoken and tokenizers cut."""

from __future__ import annotations

import random

import pytest
from peer_pieces import tiktoken_pieces, tokenizers_pieces

from bpe.errors import BadTokenizer, InvalidText, UnsupportedPattern
from bpe.normalizers import Lowercase, Normalizer
from bpe.pretokenization import read_oniguruma, read_rust
from bpe.pretokenization.by_regex import RegexCutter
from bpe.pretokenization.stages import Cut, Phase, Phases
from bpe.pretokenization.write_pattern import to_oniguruma, to_rust
from bpe.pretokenizer import Pretokenizer
from bpe.tokenizer import AddedToken, Tokenizer
from bpe.training import train

READ = {"rust": read_rust.read, "oniguruma": read_oniguruma.read}
WRITE = {"rust": to_rust, "oniguruma": to_oniguruma}


class _Generator:
    """Expressions of a few letters with capturing groups and references to those that ended."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._named = rng.random() < 0.3
        self._begun = 0
        self._ended: list[str] = []

    def expression(self) -> str:
        return "".join(self._item(2) for _ in range(self._rng.choice([2, 3, 4])))

    def _item(self, depth: int) -> str:
        pick = self._rng.choice
        kind = self._rng.random()
        if kind < 0.3 or depth == 0:
            return pick("abc1 ")
        if kind < 0.5 and self._ended:
            group = pick(self._ended)
            return (rf"\k<{group}>" if self._named else rf"\{group}") + pick(["", "", "?", "+", "{2}"])
        if kind < 0.6:
            return pick([r"\w", "[ab]", "[^a]", ".", r"\s"]) + pick(["", "+", "*", "?", "{1,2}", "+?"])
        if kind < 0.7:
            return f"(?:{self._options(depth)})" + pick(["", "?", "{1,2}"])
        if kind < 0.75:
            return pick(["(?=", "(?!", "(?>"]) + self._item(depth - 1) + ")"
        self._begun += 1
        name = f"n{self._begun}" if self._named else str(self._begun)
        group = (f"(?<{name}>" if self._named else "(") + self._options(depth) + ")"
        self._ended.append(name)
        return group + pick(["", "", "", "?", "{1,2}"])

    def _options(self, depth: int) -> str:
        count = self._rng.choice([1, 1, 2])
        return "|".join(
            self._item(depth - 1) + self._rng.choice(["", self._item(depth - 1)]) for _ in range(count)
        )


@pytest.mark.parametrize("dialect", ["rust", "oniguruma"])
def test_random_references_cut_as_theirs(dialect: str) -> None:
    compared = 0
    for seed in range(400):
        rng = random.Random(seed)
        expression = _Generator(rng).expression() + r"|[\s\S]"
        if "\\k" not in expression and not any(f"\\{digit}" in expression for digit in range(1, 10)):
            continue
        texts = ["".join(rng.choices("aabbcc1 \n", k=12)) for _ in range(3)]
        try:
            tree = READ[dialect](expression)
        except (BadTokenizer, UnsupportedPattern):
            continue
        theirs = (tiktoken_pieces if dialect == "rust" else lambda e, _: tokenizers_pieces(e))(
            expression, texts
        )
        cutter = RegexCutter(Phases((Phase((), (Cut(tree),)),), False), "")
        again = RegexCutter(Phases((Phase((), (Cut(READ[dialect](WRITE[dialect](tree))),)),), False), "")
        for text in texts:
            expected = [piece for piece in theirs(text) if piece]
            if "".join(expected) != text:  # tiktoken drops what an empty match stands before
                continue
            assert [piece.decode() for piece in cutter.cut(text)] == expected, (expression, text)
            assert [piece.decode() for piece in again.cut(text)] == expected, (expression, text)
            compared += 1
    assert compared > 60


def test_a_pattern_with_one_is_slow_and_says_why() -> None:
    pretokenizer = Pretokenizer.from_pattern(r"""(["'])[^"']*\1|(.)\2+|[\s\S]""")
    assert pretokenizer.pretokens("""say "no" aaab""") == ["s", "a", "y", " ", '"no"', " ", "aaa", "b"]
    assert "backreference" in str(pretokenizer.slow_note)


@pytest.mark.parametrize(
    ("dialect", "expression", "what"),
    [
        ("rust", r"(a)?\1", "pattern, character 0: "),
        ("rust", r"(?:(a)|b)\1", "pattern, character 0: "),
        ("oniguruma", r"(?:(a)){1,2}\1", "pattern, character 0: "),
        ("rust", r"\1(a)", "pattern, character 0: "),
        ("rust", r"(a\1)", "pattern, character 2: "),
        ("rust", r"(a)\10", "pattern, character 3: "),
        ("oniguruma", r"(?<n>a)(?<n>b)\k<n>", "pattern, character 14: "),
        ("oniguruma", r"(?<n>a)\k<n>(?<n>b)", "pattern, character 12: "),
        ("rust", r"(?<n>a)\1", "pattern, character 7: "),
        ("rust", r"(a)\1(?<n>b)", "pattern, character 12: "),
        ("rust", r"(a)(?<=\1)b", "pattern, character 7: "),
        ("rust", r"(a)(?i:\1)", "pattern, character 7: "),
        ("oniguruma", r"(a)\k<-1>", "pattern, character 3: "),
    ],
)
def test_references_that_are_refused(dialect: str, expression: str, what: str) -> None:
    with pytest.raises((BadTokenizer, UnsupportedPattern)) as caught:
        READ[dialect](expression)
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("lowercase", [False, True])
def test_a_tokenizer_whose_texts_are_cut_in_python(lowercase: bool) -> None:
    made = train([b"aabb abab bbaa"], 262)
    components = (Lowercase(),) if lowercase else ()
    tokenizer = Tokenizer(
        made.ordinary_entries,
        made.merges,
        pattern=r"(.)\1|(?s:.)",
        special_tokens=[AddedToken("<s>", 999)],
        normalizer=Normalizer(components) if components else None,
    )
    text, shown = "AAbb<s>aab B\u00e9", "aabb<s>aab b\u00e9" if lowercase else "AAbb<s>aab B\u00e9"
    ids = tokenizer.encode(text)
    assert ids == tokenizer.encode_batch([text]).tolist()[0] == tokenizer.encode(shown)
    assert tokenizer.decode(ids) == shown
    assert ids.count(999) == 1
    with pytest.raises(InvalidText):
        tokenizer.encode("a\ud800")
    with pytest.raises(TypeError, match="must be a str"):
        tokenizer.encode(3)  # type: ignore[arg-type]
