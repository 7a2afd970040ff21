"""The components of a pre-tokenizer as stages: what `tokenizers` does, said by patterns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bpe.errors import UnsupportedTokenizer
from bpe.pretokenization import read_oniguruma, read_rust
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.components import (
    BertPreTokenizer,
    ByteLevel,
    CharDelimiterSplit,
    Component,
    Digits,
    FixedLength,
    Punctuation,
    Split,
    Whitespace,
    WhitespaceSplit,
)
from bpe.pretokenization.stage import Stage
from bpe.pretokenization.syntax import Characters, Node, Repeat, Sequence
from bpe.pretokenization.unicode_tables import required

BYTE_LEVEL: Final = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_ASCII_PUNCTUATION: Final = CodePoints.of((0x21, 0x30), (0x3A, 0x41), (0x5B, 0x61), (0x7B, 0x7F))
_ANY: Final = Characters(~CodePoints())


def stages_of(components: Iterable[Component]) -> list[Stage]:
    """The stages that cut as the components do; UnsupportedTokenizer names what can't be said by them.

    Without components a text is one piece.
    """
    stages: list[Stage] = []
    in_bytes = False
    for component in components:
        found = _stages(component)
        if found and in_bytes:
            raise UnsupportedTokenizer(
                f"{type(component).__name__} behind ByteLevel sees bytes, not characters; put it before ByteLevel"
            )
        stages += found
        in_bytes |= isinstance(component, ByteLevel)
    return stages or [Stage(Repeat(_ANY, 1, None))]


def _stages(component: Component) -> list[Stage]:
    match component:
        case Split():
            tree = tree_of(component)
            behavior, invert, gaps = component.behavior, component.invert, component.gaps_are_errors
            return [Stage(tree, behavior, invert=invert, gaps_are_errors=gaps)]
        case ByteLevel():
            return [Stage(read_rust.read(BYTE_LEVEL))] if component.use_regex else []
        case Digits():
            behavior = "Isolated" if component.individual_digits else "Contiguous"
            return [Stage(Characters(required("rust", "n")), behavior)]
        case Punctuation():
            return [Stage(Characters(_punctuation()), component.behavior)]
        case Whitespace():
            return [Stage(read_rust.read(r"\w+|[^\w\s]+"), "Removed", invert=True)]
        case WhitespaceSplit():
            return [Stage(_space(), "Removed")]
        case BertPreTokenizer():
            return [Stage(_space(), "Removed"), Stage(Characters(_punctuation()))]
        case CharDelimiterSplit():
            return [Stage(Characters(CodePoints.of(component.delimiter)), "Removed")]
        case FixedLength():
            return [Stage(Repeat(_ANY, 1, component.length))]
    raise UnsupportedTokenizer(f"{type(component).__name__} is not supported for entries that are bytes")


def tree_of(split: Split) -> Node:
    """The syntax tree of a split's expression, read as its dialect says."""
    match split.dialect:
        case "rust":
            return read_rust.read(split.expression)
        case "oniguruma":
            return read_oniguruma.read(split.expression)
        case "text":
            return Sequence(tuple(Characters(CodePoints.of(character)) for character in split.expression))


def _space() -> Node:
    return Characters(required("rust", r"\s"))


def _punctuation() -> CodePoints:
    return _ASCII_PUNCTUATION | required("rust", "p")
