"""The named pre-tokenization patterns, as regular expressions for the `regex` package.

These are the patterns that the vocabularies were trained with, from tiktoken 0.14 and the tokenizer.json files of the
models. `\\Z` (end of text) replaces Rust's `$`, which in Python also matches before a final newline.

`cl100k` and `llama3` differ only in white space at the end of the text. It is one pretoken in cl100k. llama3 splits it
after its last line break: "a\\n  " -> "a", "\\n", "  ".
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

# Equivalent spellings. `\s++(?!\S)` is white space at the end of the text, as is `\s++$`: after a possessive run,
# Oniguruma's `$` (the end of any line) matches only there. `\p{N}{1,3}+` is missing from Hugging Face's spellings,
# since Oniguruma reads it as `(?:\p{N}{1,3})+`.
_CONTRACTIONS: Final = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SHORT_CONTRACTIONS: Final = "'(?i:[sdmt]|ll|ve|re)"

# Equivalent spellings for Hugging Face tokenizers, which uses Oniguruma.
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
    """Return the name of each known expression."""
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
    """Return the name of a pattern, given its name or a known spelling; None for another expression.

    "gpt2" -> "gpt2"; r"'(?:[sdmt]|ll|ve|re)| ?\\p{L}++|..." -> "gpt2"; r"\\w+" -> None
    """
    return pattern if pattern in PATTERNS else _NAME_OF.get(pattern)
