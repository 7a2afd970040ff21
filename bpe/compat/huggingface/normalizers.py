"""Normalizers, by the names and arguments of `tokenizers.normalizers`."""

from __future__ import annotations

import base64
from typing import Any

from bpe.compat.huggingface import arguments
from bpe.compat.huggingface.component import Component, Field, SequenceOf
from bpe.compat.huggingface.regex import pattern, pattern_from_json, pattern_to_json
from bpe.formats.huggingface_components import normalizer_from_json


class Normalizer(Component):
    """What is done to a text before it is cut."""

    def normalize_str(self, sequence: str) -> str:
        """The text after it. BadTokenizer for fields that can't be."""
        normalizer = normalizer_from_json(self.to_json())
        return sequence if normalizer is None else normalizer.apply(sequence.encode()).decode()


class NFC(Normalizer):
    """A normal form of Unicode."""


class NFD(Normalizer):
    """A normal form of Unicode."""


class NFKC(Normalizer):
    """A normal form of Unicode."""


class NFKD(Normalizer):
    """A normal form of Unicode."""


class Lowercase(Normalizer):
    """Lower case."""


class StripAccents(Normalizer):
    """Combining marks go."""


class Nmt(Normalizer):
    """Control characters go, others become spaces."""


class ByteLevel(Normalizer):
    """Bytes in the byte alphabet."""


class Strip(Normalizer, left=Field(True, "strip_left"), right=Field(True, "strip_right")):
    """White space at the ends goes."""


class Prepend(Normalizer, prepend=Field("\u2581")):
    """A text is put before one that is not empty."""


class Replace(
    Normalizer,
    pattern=Field(to_json=pattern_to_json, from_json=pattern_from_json, hidden=True, check=pattern),
    content=Field(check=arguments.text),
):
    """Matches of a text or `Regex` become a text."""


def _flag_or_none(name: str, value: Any) -> bool | None:
    return None if value is None else arguments.flag(name, value)


class BertNormalizer(
    Normalizer,
    clean_text=Field(True),
    handle_chinese_chars=Field(True),
    strip_accents=Field(None, check=_flag_or_none),
    lowercase=Field(True),
):
    """BERT's cleaning."""


def _to_base64(charsmap: Any) -> str:
    return base64.b64encode(bytes(charsmap)).decode()


class Precompiled(
    Normalizer, precompiled_charsmap=Field(to_json=_to_base64, from_json=base64.b64decode, hidden=True)
):
    """SentencePiece's charsmap, as bytes."""


class Sequence(SequenceOf, Normalizer):
    """Normalizers, one after the other."""

    list_key = "normalizers"
