"""Maps model names to encodings, as in tiktoken 0.14."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bpe.compat.tiktoken.registry import get_encoding

if TYPE_CHECKING:
    from bpe.compat.tiktoken.core import Encoding

_MODELS: Final = {
    "o200k_base": "o1 o3 o4-mini gpt-5 gpt-4.1 gpt-4o",
    "cl100k_base": "gpt-4 gpt-3.5-turbo gpt-3.5 gpt-35-turbo davinci-002 babbage-002 text-embedding-ada-002 "
    "text-embedding-3-small text-embedding-3-large",
    "p50k_base": "text-davinci-003 text-davinci-002 code-davinci-002 code-davinci-001 code-cushman-002 "
    "code-cushman-001 davinci-codex cushman-codex",
    "p50k_edit": "text-davinci-edit-001 code-davinci-edit-001",
    "r50k_base": "text-davinci-001 text-curie-001 text-babbage-001 text-ada-001 davinci curie babbage ada "
    "text-similarity-davinci-001 text-similarity-curie-001 text-similarity-babbage-001 text-similarity-ada-001 "
    "text-search-davinci-doc-001 text-search-curie-doc-001 text-search-babbage-doc-001 text-search-ada-doc-001 "
    "code-search-babbage-code-001 code-search-ada-code-001",
    "gpt2": "gpt2 gpt-2",
}
MODEL_TO_ENCODING: Final = {
    model: encoding for encoding, models in _MODELS.items() for model in models.split()
}
# The first prefix that matches wins.
MODEL_PREFIX_TO_ENCODING: Final = dict(
    (
        *((prefix, "o200k_base") for prefix in ("o1-", "o3-", "o4-mini-", "gpt-5", "gpt-4.5-", "gpt-4.1-")),
        *((prefix, "o200k_base") for prefix in ("chatgpt-4o-", "gpt-4o-")),
        *((prefix, "cl100k_base") for prefix in ("gpt-4-", "gpt-3.5-turbo-", "gpt-35-turbo-")),
        ("gpt-oss-", "o200k_harmony"),
        ("ft:gpt-4o", "o200k_base"),
        *((f"ft:{name}", "cl100k_base") for name in ("gpt-4", "gpt-3.5-turbo", "davinci-002", "babbage-002")),
    )
)


def encoding_name_for_model(model_name: str) -> str:
    """Return the name of the encoding of a model. Raise KeyError for an unknown model."""
    if model_name in MODEL_TO_ENCODING:
        return MODEL_TO_ENCODING[model_name]
    for prefix, encoding in MODEL_PREFIX_TO_ENCODING.items():
        if model_name.startswith(prefix):
            return encoding
    raise KeyError(f"model_name: no known encoding (got {model_name!r}). Pass its name to get_encoding.")


def encoding_for_model(model_name: str) -> Encoding:
    """Return the encoding of a model. Raise KeyError for an unknown model."""
    return get_encoding(encoding_name_for_model(model_name))
