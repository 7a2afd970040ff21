r"""The normalizer and pre-tokenizer of known model families, as data.

Components are copied from the files of the models, in their spelling and dialect. Presets have no special tokens, since
these depend on the corpus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bpe.patterns import CL100K, LLAMA3, O200K, QWEN2
from bpe.pretokenization.components import ByteLevel, Component, Digits, Punctuation, Split


@dataclass(frozen=True)
class Preset:
    """A family of models: its names (the first is listed) and its text preparation."""

    names: tuple[str, ...]
    components: tuple[Component, ...]
    normalizer: str | None = None  # its type in tokenizer.json


def _split(expression: str) -> Split:
    return Split(expression, "oniguruma")


def _as_tiktoken(expression: str) -> Split:
    return Split(expression, "rust", gaps_are_errors=True)


_BYTES: Final = ByteLevel(add_prefix_space=False, use_regex=False)
_GPT2: Final = ByteLevel(add_prefix_space=False, use_regex=True)

_QWEN35: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_DEEPSEEK_V3: Final = (
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""".replace(r"\r\n", "\r\n"),
)
_TEKKEN: Final = O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(r"\p{N}{1,3}", r"\p{N}")
_KIMI_K2: Final = r"[\p{Han}]+|" + O200K.replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]").replace(
    r"[\r\n/]*", r"[\r\n]*"
)
_NANOCHAT: Final = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)
_EXAONE: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
)
_RIGHT_GROUPED_DIGITS: Final = r"\d{1,3}(?=(?:\d{3})*\b)"

PRESETS: Final = (
    Preset(("gpt-2", "gpt-3", "phi-2", "roberta", "whisper"), (_GPT2,)),
    Preset(("gpt-4", "gpt-3.5", "cl100k"), (_as_tiktoken(CL100K.replace(r"\Z", "$")), _BYTES)),
    Preset(("gpt-4o", "gpt-oss", "o200k", "llama-4", "minimax-m2"), (_split(O200K), _BYTES)),
    Preset(
        (
            "llama-3",
            "llama-3.1",
            "llama-3.2",
            "llama-3.3",
            "falcon-3",
            "glm-4",
            "glm-4.5",
            "olmo-2",
            "olmo-3",
            "phi-4",
        ),
        (_split(LLAMA3), _BYTES),
    ),
    Preset(("qwen-3", "qwen-2", "qwen-2.5"), (_split(QWEN2), _BYTES), "NFC"),
    Preset(("qwen-3.5", "qwen-3.6"), (_split(_QWEN35), _BYTES), "NFC"),
    Preset(("deepseek-v3", "deepseek-r1", "deepseek-v4"), (*map(_split, _DEEPSEEK_V3), _BYTES)),
    Preset(("tekken", "mistral-nemo", "nemotron-3"), (_split(_TEKKEN), _BYTES)),
    Preset(("kimi-k2",), (_as_tiktoken(_KIMI_K2), _BYTES)),
    Preset(("smollm", "starcoder", "starcoder-2"), (Digits(individual_digits=True), _GPT2)),
    Preset(("command-r",), (Digits(individual_digits=True), _GPT2), "NFC"),
    Preset(("tiny-aya",), (_split(_RIGHT_GROUPED_DIGITS), _split(O200K), _BYTES)),
    Preset(("falcon",), (Punctuation("Contiguous"), _GPT2, Digits(), _split("[0-9][0-9][0-9]"))),
    Preset(("bloom",), (_split(r" ?[^(\s|[.,!?…。，、।۔،])]+"), _BYTES)),
    Preset(("k-exaone",), (_split(_EXAONE), _BYTES)),
    Preset(("nanochat", "rustbpe"), (_as_tiktoken(_NANOCHAT), _BYTES)),
    Preset(("pythia", "gpt-neox", "olmo", "modernbert"), (_GPT2,), "NFC"),
    Preset(("claude",), (_GPT2,), "NFKC"),
)

# Families with text entries and "▁" before words: with and without "▁" at the start of a document.
LIKE_LLAMA: Final = ("llama-2", "codellama", "mistral-7b", "tinyllama", "phi-3")
LIKE_GEMMA: Final = ("gemma-3", "gemma", "gemma-2")
# Families with byte entries and a suffix at the end of a word.
LIKE_CLIP: Final = ("clip",)
