"""Interfaces that people already call: `bpe.compat.tiktoken` and `bpe.compat.huggingface`.

Each gives the names, arguments and results of the library it is named for; `import bpe` reads neither.
"""
