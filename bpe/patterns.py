"""The pretoken patterns, by name and as regular expressions for the `regex` package.

The five named ones run in the native core; the expressions here are their specification and what the
reference and the file formats use. They are the patterns that the vocabularies of that name were trained
with, as tiktoken 0.14 and the models' tokenizer.json give them, written so that one expression holds for
both: `\\Z` (end of the text) is Rust's `$`, which in Python also matches before a last newline.

`cl100k` and `llama3` differ in one place only: whitespace that ends the text stays one pretoken in cl100k,
while llama3 cuts it after its last line break ("a\\n  " -> "a", "\\n  " against "a", "\\n", "  ").
"""

from __future__ import annotations

from typing import Final

GPT2: Final = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
CL100K: Final = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++\Z|\s*[\r\n]|\s+(?!\S)|\s"""
)
O200K: Final = "|".join(
    [
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""\p{N}{1,3}""",
        r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""",
        r"""\s*[\r\n]+""",
        r"""\s+(?!\S)""",
        r"""\s+""",
    ]
)
LLAMA3: Final = (
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"""
    r"""|\s*[\r\n]+|\s+(?!\S)|\s+"""
)
QWEN2: Final = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

PATTERNS: Final[dict[str, str]] = {
    "gpt2": GPT2,
    "cl100k": CL100K,
    "o200k": O200K,
    "llama3": LLAMA3,
    "qwen2": QWEN2,
}

# Other spellings in use that cut every text alike. `\s++(?!\S)` is a whitespace run that ends the text, `\s++$` in
# Rust too; after a possessive run Oniguruma's `$`, the end of any line, can only be the end of the text as well.
# `\p{N}{1,3}+` is left out where Oniguruma reads it: there it means `(?:\p{N}{1,3})+`.
_CONTRACTIONS: Final = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SHORT_CONTRACTIONS: Final = "'(?i:[sdmt]|ll|ve|re)"

# The spelling that Hugging Face's readers (Oniguruma) understand and cut alike.
HUGGINGFACE_SPELLINGS: Final[dict[str, str]] = {
    "gpt2": r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""",
    "cl100k": (
        _CONTRACTIONS + r"""|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"""
        r"""|\s++(?!\S)|\s*[\r\n]|\s+(?!\S)|\s"""
    ),
    "o200k": O200K,
    "llama3": LLAMA3,
    "qwen2": QWEN2,
}
_TIKTOKEN_SPELLINGS: Final[dict[str, str]] = {
    "gpt2": r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""",
    "cl100k": CL100K.replace(r"\Z", "$"),
}


def _spellings() -> dict[str, str]:
    """expression -> name, of every spelling known."""
    names: dict[str, str] = {}
    for spellings in (PATTERNS, HUGGINGFACE_SPELLINGS, _TIKTOKEN_SPELLINGS):
        for name, expression in spellings.items():
            variants = {expression}
            variants |= {text.replace(_CONTRACTIONS + "|", _SHORT_CONTRACTIONS + "|") for text in variants}
            variants |= {text.replace(_SHORT_CONTRACTIONS + "|", _CONTRACTIONS + "|") for text in variants}
            variants |= {text.replace(r"\p{L}+|", r"[\p{L}]+|") for text in variants}
            names |= dict.fromkeys(variants, name)
    return names


_NAME_OF: Final = _spellings()


def pattern_name(pattern: str) -> str | None:
    """The name of a pattern given by name or in a known spelling; None for any other expression.

    "gpt2" -> "gpt2"; r"'(?:[sdmt]|ll|ve|re)| ?\\p{L}++|..." -> "gpt2"; r"\\w+" -> None
    """
    return pattern if pattern in PATTERNS else _NAME_OF.get(pattern)
