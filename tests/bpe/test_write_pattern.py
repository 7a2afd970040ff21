"""A pattern written for tokenizers matches like the original, in tokenizers and in our reader."""

from __future__ import annotations

import random

import pytest
from family_patterns import FAMILY_PATTERNS
from pattern_matcher import pieces
from peer_pieces import tokenizers_pieces
from random_patterns import random_pattern, random_text

from bpe.pretokenization import read_oniguruma, read_rust
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.syntax import Characters, Choice, Look, Node, Repeat, Sequence, TextEnd
from bpe.pretokenization.write_pattern import to_oniguruma, written

A = Characters(CodePoints.of("a"))
WRITTEN = [
    ("gpt2", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    ("clip", r"'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+"),
    ("bloom", r" ?[^\s!(),.?|\x{60C}\x{6D4}\x{964}\x{2026}\x{3001}\x{3002}\x{FF0C}]+"),
    ("deepseek v3, 2", r"[\x{3040}-\x{30FF}\x{4E00}-\x{9FA5}]+"),
]
ODD: list[Node] = [
    Choice(()),
    Characters(CodePoints()),
    Sequence(()),
    Characters(~CodePoints()),
    Repeat(Look(A), 0, None),
    Repeat(Choice((Look(A), Sequence(()))), 2, 3),
    Repeat(Choice((Look(A), A)), 1, 3),
    Repeat(Sequence((A, Choice((A, TextEnd())))), 0, None, "possessive"),
    Repeat(Repeat(A, 1, None, "lazy"), 1, None),
    Repeat(Repeat(A, 2, 3), 2, 3, "possessive"),
    Repeat(A, 2, 2, "lazy"),
    Sequence((Repeat(A, 0, 1), Repeat(Characters(CodePoints.of("]^-&~[\\")), 1, None))),
    Sequence((Choice((A, Sequence(()))), Characters(CodePoints.of("{")), Characters(CodePoints.of("}")))),
]


def assert_equal(node: Node, oniguruma: str, texts: list[str]) -> None:
    cut_by_tokenizers = tokenizers_pieces(oniguruma)
    again = read_oniguruma.read(oniguruma)
    for text in texts:
        expected = pieces(node, text)
        assert again == node or pieces(again, text) == expected, (oniguruma, text)
        assert cut_by_tokenizers(text) == expected, (oniguruma, text)


@pytest.mark.parametrize("name", FAMILY_PATTERNS)
def test_patterns_of_published_tokenizers(name: str) -> None:
    generator = random.Random(7)
    node, texts = read_rust.read(FAMILY_PATTERNS[name]), [random_text(generator, 16) for _ in range(4)]
    assert_equal(node, to_oniguruma(FAMILY_PATTERNS[name]), texts)
    assert_equal(node, written(node), texts)


@pytest.mark.parametrize(("name", "expected"), WRITTEN)
def test_sets_are_written_as_properties(name: str, expected: str) -> None:
    node = read_rust.read(FAMILY_PATTERNS[name])
    assert written(node) == expected
    assert read_rust.read(expected) == read_oniguruma.read(expected) == node


def test_expressions_of_the_same_meaning_are_kept() -> None:
    assert to_oniguruma(r"[a-f]+\p{L}?|\s+(?!\S)|(?i:'s)") == r"[a-f]+\p{L}?|\s+(?!\S)|(?i:'s)"
    assert to_oniguruma(r"a{1,2}+b$|\p{L}") == r"(?>a{1,2})b\z|\p{L}"


@pytest.mark.parametrize("node", ODD)
def test_odd_trees(node: Node) -> None:
    generator = random.Random(8)
    texts = ["", "a", "aaaaaa", *("".join(generator.choices("aab[]^-&~{}\\", k=8)) for _ in range(10))]
    assert_equal(node, written(node), texts)


def test_random_trees() -> None:
    generator = random.Random(9)
    for _ in range(20):
        expression = random_pattern(generator, "rust", depth=2)
        texts = [random_text(generator, generator.randint(1, 15)) for _ in range(5)]
        assert_equal(read_rust.read(expression), to_oniguruma(expression), texts)
