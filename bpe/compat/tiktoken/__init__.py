"""The interface of tiktoken, with the same IDs and errors.

    from bpe.compat import tiktoken
    tiktoken.get_encoding("cl100k_base").encode("hello world")  # [15339, 1917]

Nothing is downloaded: see `bpe.compat.tiktoken.load`. docs/reference/drop-in-apis.md lists the differences.
"""

from bpe.compat.tiktoken.core import Encoding
from bpe.compat.tiktoken.model import encoding_for_model, encoding_name_for_model
from bpe.compat.tiktoken.registry import get_encoding, list_encoding_names

__all__ = [
    "Encoding",
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "list_encoding_names",
]
__version__ = "0.14.0"
