"""The interface of Hugging Face's tokenizers, for BPE: `Tokenizer`, `Encoding`, `AddedToken` and components.

    from bpe.compat.huggingface import Tokenizer
    Tokenizer.from_file("tokenizer.json").encode("Hello").ids

docs/reference/drop-in-apis.md lists the differences.
"""

from enum import Enum

from bpe.compat.huggingface import (
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from bpe.compat.huggingface.added_tokens import AddedToken
from bpe.compat.huggingface.arguments import unsupported
from bpe.compat.huggingface.component import Regex
from bpe.compat.huggingface.decoders import DecodeStream
from bpe.compat.huggingface.encoding import Encoding
from bpe.compat.huggingface.models import Token
from bpe.compat.huggingface.tokenizer import Tokenizer

__version__ = "0.23.3"

NormalizedString = unsupported("NormalizedString")
PreTokenizedString = unsupported("PreTokenizedString")

Offsets = tuple[int, int]
TextInputSequence = str
PreTokenizedInputSequence = list[str] | tuple[str]
TextEncodeInput = TextInputSequence | tuple[TextInputSequence, TextInputSequence] | list[TextInputSequence]
PreTokenizedEncodeInput = (
    PreTokenizedInputSequence
    | tuple[PreTokenizedInputSequence, PreTokenizedInputSequence]
    | list[PreTokenizedInputSequence]
)
InputSequence = TextInputSequence | PreTokenizedInputSequence
EncodeInput = TextEncodeInput | PreTokenizedEncodeInput


# The text that offsets refer to, and their unit.
OffsetReferential = Enum("OffsetReferential", {"ORIGINAL": "original", "NORMALIZED": "normalized"})
OffsetType = Enum("OffsetType", {"BYTE": "byte", "CHAR": "char"})


class SplitDelimiterBehavior(Enum):
    """The values of `behavior` of pre-tokenizers."""

    REMOVED = "removed"
    ISOLATED = "isolated"
    MERGED_WITH_PREVIOUS = "merged_with_previous"
    MERGED_WITH_NEXT = "merged_with_next"
    CONTIGUOUS = "contiguous"


__all__ = [
    "AddedToken",
    "DecodeStream",
    "EncodeInput",
    "Encoding",
    "InputSequence",
    "NormalizedString",
    "OffsetReferential",
    "OffsetType",
    "Offsets",
    "PreTokenizedEncodeInput",
    "PreTokenizedInputSequence",
    "PreTokenizedString",
    "Regex",
    "SplitDelimiterBehavior",
    "TextEncodeInput",
    "TextInputSequence",
    "Token",
    "Tokenizer",
    "decoders",
    "models",
    "normalizers",
    "pre_tokenizers",
    "processors",
    "trainers",
]
