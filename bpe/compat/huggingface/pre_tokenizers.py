"""The pre-tokenizers of `tokenizers.pre_tokenizers`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bpe.compat.huggingface.alignment import AlignedText, pretokens
from bpe.compat.huggingface.component import Behavior, Character, Component, Pattern, Scheme, SequenceOf
from bpe.formats.byte_alphabet import BYTE_TO_CHARACTER
from bpe.formats.huggingface_components import components_from_json


class PreTokenizer(Component):
    """Cuts text into pretokens."""

    def pre_tokenize_str(self, sequence: str) -> list[tuple[str, tuple[int, int]]]:
        """Return (pretoken, [start, stop) in characters). Raise BadTokenizer for invalid fields."""
        components = [component for component, _ in components_from_json(self.to_json())]
        if not components:
            return [(sequence, (0, len(sequence)))]  # even for an empty text
        return [
            (piece.text, (piece.starts[0], piece.stops[-1]))
            for piece in pretokens(AlignedText.original(sequence), components)
        ]


@dataclass(eq=False, repr=False, init=False)
class ByteLevel(PreTokenizer):
    """Cuts with GPT-2's expression (use_regex), then spells bytes in the byte alphabet."""

    add_prefix_space: bool = True
    trim_offsets: bool = True
    use_regex: bool = True

    def __init__(
        self, add_prefix_space: bool = True, trim_offsets: bool = True, use_regex: bool = True, **_: Any
    ) -> None:
        self.add_prefix_space, self.trim_offsets, self.use_regex = add_prefix_space, trim_offsets, use_regex

    @staticmethod
    def alphabet() -> list[str]:
        """Return the 256 characters of the byte alphabet."""
        return list(BYTE_TO_CHARACTER.values())


@dataclass(eq=False, repr=False)
class Split(PreTokenizer):
    """Cuts at the matches of a str or `Regex`. behavior: removed, isolated, merged_with_previous, …"""

    pattern: Pattern
    behavior: Behavior
    invert: bool = False


@dataclass(eq=False, repr=False)
class Digits(PreTokenizer):
    """Isolates digits, individually or as runs."""

    individual_digits: bool = False


@dataclass(eq=False, repr=False)
class Punctuation(PreTokenizer):
    """Cuts at punctuation."""

    behavior: Behavior = "isolated"


@dataclass(eq=False, repr=False)
class Whitespace(PreTokenizer):
    r"""Keeps the matches of `\w+|[^\w\s]+`."""


@dataclass(eq=False, repr=False)
class WhitespaceSplit(PreTokenizer):
    """Cuts at white space and drops it."""


@dataclass(eq=False, repr=False)
class BertPreTokenizer(PreTokenizer):
    """Cuts at white space, drops it, and isolates punctuation."""


@dataclass(eq=False, repr=False)
class UnicodeScripts(PreTokenizer):
    """Cuts where the script changes. Only stored: cutting raises UnsupportedTokenizer."""


@dataclass(eq=False, repr=False)
class FixedLength(PreTokenizer):
    """Cuts after every `length` characters."""

    length: int = 5


@dataclass(eq=False, repr=False)
class CharDelimiterSplit(PreTokenizer):
    """Cuts at a character and drops it."""

    delimiter: Character


@dataclass(eq=False, repr=False)
class Metaspace(PreTokenizer):
    """Replaces spaces by a character that starts each piece."""

    replacement: Character = "\u2581"
    prepend_scheme: Scheme = "always"
    split: bool = True


class Sequence(SequenceOf, PreTokenizer):
    """Pre-tokenizers that are applied in order."""

    list_key = "pretokenizers"
