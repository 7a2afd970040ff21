"""The normalizers of `tokenizers.normalizers`."""

from __future__ import annotations

from typing import Any

from bpe.compat.huggingface.component import Component, SequenceOf, define
from bpe.formats.huggingface_components import NORMALIZERS, fields_of, normalizer_from_json


class Normalizer(Component):
    """Changes the text before it is pre-tokenized."""

    types = fields_of(NORMALIZERS)

    def normalize_str(self, sequence: str) -> str:
        """Return the normalized text. Raise BadTokenizer for invalid fields."""
        normalizer = normalizer_from_json(self.to_json())
        return sequence if normalizer is None else normalizer.apply_to_text(sequence)


NFC, NFD, NFKC, NFKD = (
    define(Normalizer, name, "A normal form of Unicode.") for name in ("NFC", "NFD", "NFKC", "NFKD")
)
Lowercase: Any = define(Normalizer, "Lowercase", "Converts to lower case.")
StripAccents: Any = define(Normalizer, "StripAccents", "Removes combining marks.")
Nmt: Any = define(Normalizer, "Nmt", "Removes control characters and replaces some characters by spaces.")
ByteLevel: Any = define(Normalizer, "ByteLevel", "Spells bytes in the byte alphabet.")
Strip: Any = define(Normalizer, "Strip", "Removes white space at the ends.", left=True, right=True)
Prepend: Any = define(Normalizer, "Prepend", "Puts a text before a non-empty one.", prepend="\u2581")
Replace: Any = define(
    Normalizer, "Replace", "Replaces a str or the matches of a `Regex`.", pattern=..., content=...
)
BertNormalizer: Any = define(
    Normalizer,
    "BertNormalizer",
    "The cleaning of BERT. strip_accents: None means the value of lowercase.",
    clean_text=True,
    handle_chinese_chars=True,
    strip_accents=None,
    lowercase=True,
)
Precompiled: Any = define(Normalizer, "Precompiled", "SentencePiece's charsmap.", precompiled_charsmap=...)


class Sequence(SequenceOf, Normalizer):
    """Normalizers that are applied in order."""

    list_key = "normalizers"
