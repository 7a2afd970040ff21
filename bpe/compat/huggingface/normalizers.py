"""The normalizers of `tokenizers.normalizers`."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from bpe.compat.huggingface.component import Charsmap, Component, Pattern, SequenceOf
from bpe.formats.huggingface_components import normalizer_from_json


class Normalizer(Component):
    """Changes the text before it is pre-tokenized."""

    def normalize_str(self, sequence: str) -> str:
        """Return the normalized text. Raise BadTokenizer for invalid fields."""
        normalizer = normalizer_from_json(self.to_json())
        return sequence if normalizer is None else normalizer.apply_to_text(sequence)


@dataclass(eq=False, repr=False)
class NFC(Normalizer):
    """A normal form of Unicode."""


@dataclass(eq=False, repr=False)
class NFD(Normalizer):
    """A normal form of Unicode."""


@dataclass(eq=False, repr=False)
class NFKC(Normalizer):
    """A normal form of Unicode."""


@dataclass(eq=False, repr=False)
class NFKD(Normalizer):
    """A normal form of Unicode."""


@dataclass(eq=False, repr=False)
class Lowercase(Normalizer):
    """Converts to lower case."""


@dataclass(eq=False, repr=False)
class StripAccents(Normalizer):
    """Removes combining marks."""


@dataclass(eq=False, repr=False)
class Nmt(Normalizer):
    """Removes control characters and replaces some characters by spaces."""


@dataclass(eq=False, repr=False)
class ByteLevel(Normalizer):
    """Spells bytes in the byte alphabet."""


@dataclass(eq=False, repr=False)
class Strip(Normalizer):
    """Removes white space at the ends."""

    keys = MappingProxyType({"left": "strip_left", "right": "strip_right"})
    left: bool = True
    right: bool = True


@dataclass(eq=False, repr=False)
class Prepend(Normalizer):
    """Puts a text before a non-empty one."""

    prepend: str = "\u2581"


@dataclass(eq=False, repr=False)
class Replace(Normalizer):
    """Replaces the matches of a str or `Regex`."""

    pattern: Pattern
    content: str


@dataclass(eq=False, repr=False)
class BertNormalizer(Normalizer):
    """The cleaning of BERT. strip_accents: None means the value of lowercase."""

    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    lowercase: bool = True


@dataclass(eq=False, repr=False)
class Precompiled(Normalizer):
    """SentencePiece's charsmap, as bytes."""

    precompiled_charsmap: Charsmap


class Sequence(SequenceOf, Normalizer):
    """Normalizers that are applied in order."""

    list_key = "normalizers"
