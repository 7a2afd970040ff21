"""The interface of Hugging Face's tokenizers, for BPE: `Tokenizer`, `Encoding`, `AddedToken` and the components.

    from bpe.compat.huggingface import Tokenizer
    Tokenizer.from_file("tokenizer.json").encode("Hello").ids

The submodules `decoders`, `models`, `normalizers`, `pre_tokenizers`, `processors` and `trainers` have the names of
those of tokenizers. docs/reference/drop-in-apis.md says what differs.
"""

from bpe.compat.huggingface import (
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from bpe.compat.huggingface.added_token import AddedToken
from bpe.compat.huggingface.decoders import DecodeStream
from bpe.compat.huggingface.elsewhere import elsewhere
from bpe.compat.huggingface.encoding import Encoding
from bpe.compat.huggingface.models import Token
from bpe.compat.huggingface.regex import Regex
from bpe.compat.huggingface.tokenizer import Tokenizer

NormalizedString = elsewhere("NormalizedString")
PreTokenizedString = elsewhere("PreTokenizedString")

__all__ = [
    "AddedToken",
    "DecodeStream",
    "Encoding",
    "NormalizedString",
    "PreTokenizedString",
    "Regex",
    "Token",
    "Tokenizer",
    "decoders",
    "models",
    "normalizers",
    "pre_tokenizers",
    "processors",
    "trainers",
]
