"""tiktoken's interface: `Encoding`, `get_encoding` and what stands beside them, with the same ids and errors.

    from bpe.compat import tiktoken
    tiktoken.get_encoding("cl100k_base").encode("hello world")  # [15339, 1917]

Differences: text that a pattern leaves out is an UncoveredText where tiktoken drops it, and nothing is downloaded
(`bpe.compat.tiktoken.load` says where rank files are looked for).
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
