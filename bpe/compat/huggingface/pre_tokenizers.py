"""The pre-tokenizers of `tokenizers.pre_tokenizers`."""

from __future__ import annotations

from typing import Any

from bpe.compat.huggingface.alignment import AlignedText, pretokens
from bpe.compat.huggingface.component import BYTE_LEVEL, METASPACE, Component, SequenceOf, define
from bpe.formats.byte_alphabet import BYTE_TO_CHARACTER
from bpe.formats.huggingface_components import PRETOKENIZERS, components_from_json, fields_of


class PreTokenizer(Component):
    """Cuts text into pretokens."""

    types = fields_of(PRETOKENIZERS)

    def pre_tokenize_str(self, sequence: str) -> list[tuple[str, tuple[int, int]]]:
        """Return (pretoken, [start, stop) in characters). Raise BadTokenizer for invalid fields."""
        components = [component for component, _ in components_from_json(self.to_json())]
        if not components:
            return [(sequence, (0, len(sequence)))]  # even for an empty text
        return [
            (piece.text, (piece.starts[0], piece.stops[-1]))
            for piece in pretokens(AlignedText.original(sequence), components)
        ]


class _WithAlphabet(PreTokenizer):
    @staticmethod
    def alphabet() -> list[str]:
        """Return the 256 characters of the byte alphabet."""
        return list(BYTE_TO_CHARACTER.values())


ByteLevel: Any = define(
    _WithAlphabet,
    "ByteLevel",
    "Cuts like GPT-2 (use_regex), then spells bytes in the byte alphabet.",
    True,
    **BYTE_LEVEL,
)
Split: Any = define(
    PreTokenizer,
    "Split",
    "Cuts at a str or the matches of a `Regex`.",
    pattern=...,
    behavior=...,
    invert=False,
)
Digits: Any = define(PreTokenizer, "Digits", "Isolates digits, each or as runs.", individual_digits=False)
Punctuation: Any = define(PreTokenizer, "Punctuation", "Cuts at punctuation.", behavior="isolated")
Whitespace: Any = define(PreTokenizer, "Whitespace", r"Keeps the matches of `\w+|[^\w\s]+`.")
WhitespaceSplit: Any = define(PreTokenizer, "WhitespaceSplit", "Cuts at white space and drops it.")
BertPreTokenizer: Any = define(
    PreTokenizer, "BertPreTokenizer", "Drops white space and isolates punctuation."
)
UnicodeScripts: Any = define(
    PreTokenizer, "UnicodeScripts", "Only stored: cutting raises UnsupportedTokenizer."
)
FixedLength: Any = define(PreTokenizer, "FixedLength", "Cuts after every `length` characters.", length=5)
CharDelimiterSplit: Any = define(PreTokenizer, "CharDelimiterSplit", "Drops a character.", delimiter=...)
Metaspace: Any = define(PreTokenizer, "Metaspace", "Turns a space into the start of a piece.", **METASPACE)


class Sequence(SequenceOf, PreTokenizer):
    """Pre-tokenizers that are applied in order."""

    list_key = "pretokenizers"
