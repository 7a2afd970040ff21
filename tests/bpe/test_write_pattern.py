"""What is written of a syntax tree means to the engines, and to the readers, what the tree says."""

from __future__ import annotations

import random

import pytest
from family_patterns import FAMILY_PATTERNS
from pattern_matcher import matched, pieces
from peer_pieces import tiktoken_pieces, tokenizers_pieces
from random_patterns import random_pattern, random_text

from bpe.pretokenization import read_oniguruma, read_rust
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.syntax import Characters, Choice, Look, Node, Repeat, Sequence, TextEnd
from bpe.pretokenization.write_pattern import to_oniguruma, to_rust

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
    Repeat(Sequence((A, Choice((A, TextEnd())))), 0, None, "possessive"),
    Repeat(Repeat(A, 1, None, "lazy"), 1, None),
    Repeat(Repeat(A, 2, 3), 2, 3, "possessive"),
    Repeat(A, 2, 2, "lazy"),
    Sequence((Repeat(A, 0, 1), Repeat(Characters(CodePoints.of("]^-&~[\\")), 1, None))),
    Sequence((Choice((A, Sequence(()))), Characters(CodePoints.of("{")), Characters(CodePoints.of("}")))),
]


def assert_equal(node: Node, texts: list[str]) -> None:
    rust, oniguruma = to_rust(node), to_oniguruma(node)
    cut_by_tiktoken, cut_by_tokenizers = tiktoken_pieces(rust, texts), tokenizers_pieces(oniguruma)
    from_rust, from_oniguruma = read_rust.read(rust), read_oniguruma.read(oniguruma)
    for text in texts:
        expected = pieces(node, text)
        assert from_rust == node or pieces(from_rust, text) == expected, (rust, text)
        assert from_oniguruma == node or pieces(from_oniguruma, text) == expected, (oniguruma, text)
        assert cut_by_tokenizers(text) == expected, (oniguruma, text)
        assert cut_by_tiktoken(text) == matched(node, text), (rust, text)


@pytest.mark.parametrize("name", FAMILY_PATTERNS)
def test_patterns_of_published_tokenizers(name: str) -> None:
    generator = random.Random(7)
    assert_equal(read_rust.read(FAMILY_PATTERNS[name]), [random_text(generator, 16) for _ in range(4)])


@pytest.mark.parametrize(("name", "written"), WRITTEN)
def test_sets_are_written_as_properties(name: str, written: str) -> None:
    node = read_rust.read(FAMILY_PATTERNS[name])
    assert to_rust(node) == to_oniguruma(node) == written
    assert read_rust.read(written) == read_oniguruma.read(written) == node


@pytest.mark.parametrize("node", ODD)
def test_odd_trees(node: Node) -> None:
    generator = random.Random(8)
    texts = ["", "a", "aaaaaa", *("".join(generator.choices("aab[]^-&~{}\\", k=8)) for _ in range(10))]
    assert_equal(node, texts)


def test_random_trees() -> None:
    generator = random.Random(9)
    for _ in range(20):
        node = read_rust.read(random_pattern(generator, "rust", depth=2))
        assert_equal(node, [random_text(generator, generator.randint(1, 15)) for _ in range(5)])
