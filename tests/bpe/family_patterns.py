"""Patterns of published tokenizers by family, spelled as in their files."""

from __future__ import annotations

_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_NO_HAN_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_NO_HAN_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_PREFIX = r"[^\r\n\p{L}\p{N}]?"
_TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_SYMBOLS = rf" ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_TAIL}"

FAMILY_PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "r50k": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "cl100k": rf"{_CONTRACTION}|{_PREFIX}\p{{L}}+|\p{{N}}{{1,3}}|{_SYMBOLS}",
    "cl100k of tiktoken": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "llama 3, spelled out": (
        r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
        rf"|{_PREFIX}\p{{L}}+|\p{{N}}{{1,3}}|{_SYMBOLS}"
    ),
    "qwen 2": rf"{_CONTRACTION}|{_PREFIX}\p{{L}}+|\p{{N}}|{_SYMBOLS}",
    "qwen 3.5": (
        rf"{_CONTRACTION}|{_PREFIX}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_TAIL}"
    ),
    "o200k": (
        rf"{_PREFIX}{_UPPER}*{_LOWER}+{_CONTRACTION}?|{_PREFIX}{_UPPER}+{_LOWER}*{_CONTRACTION}?"
        rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_TAIL}"
    ),
    "tekken": (
        rf"{_PREFIX}{_UPPER}*{_LOWER}+|{_PREFIX}{_UPPER}+{_LOWER}*"
        rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_TAIL}"
    ),
    "kimi k2": (
        rf"[\p{{Han}}]+|{_PREFIX}{_NO_HAN_UPPER}*{_NO_HAN_LOWER}+{_CONTRACTION}?"
        rf"|{_PREFIX}{_NO_HAN_UPPER}+{_NO_HAN_LOWER}*{_CONTRACTION}?|\p{{N}}{{1,3}}|{_SYMBOLS}"
    ),
    "deepseek v3, 1": r"\p{N}{1,3}",
    "deepseek v3, 2": r"[一-龥぀-ゟ゠-ヿ]+",
    "deepseek v3, 3": (
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
        rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_TAIL}"
    ),
    "deepseek coder": r"[\r\n]|\s?\p{L}+|\s?\p{P}+|[一-龥ࠀ-一가-퟿]+|\p{N}",
    "falcon 1": r"[0-9][0-9][0-9]",
    "nanochat": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*"
        r"|\s*[\r\n]|\s+(?!\S)|\s+"
    ),
    "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "exaone 4": rf"{_CONTRACTION}|{_PREFIX}(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}|{_SYMBOLS}",
    "aya": r"\d{1,3}(?=(?:\d{3})*\b)",
    "clip": r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "bert": r"\w+|[^\w\s]+",
    "gemma": r" ",
}
