"""The interface of Hugging Face's tokenizers, for BPE: `Tokenizer`, `Encoding`, `AddedToken` and the components.

    from bpe.compat.huggingface import Tokenizer
    Tokenizer.from_file("tokenizer.json").encode("Hello").ids

The submodules `decoders`, `models`, `normalizers`, `pre_tokenizers`, `processors` and `trainers` have the names of
those of tokenizers. docs/interfaces.md says what differs.
"""

from bpe.compat.huggingface import decoders, models, normalizers, pre_tokenizers, processors
from bpe.compat.huggingface.added_token import AddedToken
from bpe.compat.huggingface.decoders import DecodeStream
from bpe.compat.huggingface.encoding import Encoding
from bpe.compat.huggingface.regex import Regex
from bpe.compat.huggingface.tokenizer import Tokenizer

__all__ = [
    "AddedToken",
    "DecodeStream",
    "Encoding",
    "Regex",
    "Tokenizer",
    "decoders",
    "models",
    "normalizers",
    "pre_tokenizers",
    "processors",
]
