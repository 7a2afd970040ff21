"""The named encodings of tiktoken. `load` finds their rank files.

Names, hashes and IDs are those of tiktoken 0.14.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from bpe.compat.tiktoken.load import cached_file
from bpe.tokenizer import Tokenizer

if TYPE_CHECKING:
    from bpe.compat.tiktoken.core import Encoding

_ADDRESS: Final = "https://openaipublic.blob.core.windows.net/encodings/"
_END: Final = "<|endoftext|>"
_MIDDLE: Final = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
_HARMONY: Final = {
    "<|startoftext|>": 199998,
    _END: 199999,
    "<|return|>": 200002,
    "<|constrain|>": 200003,
    "<|channel|>": 200005,
    "<|start|>": 200006,
    "<|end|>": 200007,
    "<|message|>": 200008,
    "<|call|>": 200012,
}
# tiktoken has two texts for ID 200018. An ID has one text here, <|endofprompt|>.
_RESERVED: Final = (
    200000,
    200001,
    200004,
    *range(200009, 200012),
    *range(200013, 200018),
    *range(200019, 201088),
)
_SHA256: Final = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "p50k_base": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}


class _Known(NamedTuple):
    rank_file: str
    pattern: str
    special_tokens: dict[str, int]


# gpt2 is another name of r50k_base: its vocab.bpe and encoder.json contain the same ranks.
_KNOWN: Final = {
    "gpt2": _Known("r50k_base", "gpt2", {_END: 50256}),
    "r50k_base": _Known("r50k_base", "gpt2", {_END: 50256}),
    "p50k_base": _Known("p50k_base", "gpt2", {_END: 50256}),
    "p50k_edit": _Known(
        "p50k_base", "gpt2", {_END: 50256} | {token: 50281 + index for index, token in enumerate(_MIDDLE)}
    ),
    "cl100k_base": _Known(
        "cl100k_base",
        "cl100k",
        {token: 100257 + index for index, token in enumerate((_END, *_MIDDLE))} | {"<|endofprompt|>": 100276},
    ),
    "o200k_base": _Known("o200k_base", "o200k", {_END: 199999, "<|endofprompt|>": 200018}),
    "o200k_harmony": _Known(
        "o200k_base",
        "o200k",
        {_END: 199999, "<|endofprompt|>": 200018}
        | _HARMONY
        | {f"<|reserved_{id_}|>": id_ for id_ in _RESERVED},
    ),
}
ENCODINGS: dict[str, Encoding] = {}  # loaded so far
_lock = threading.RLock()


def list_encoding_names() -> list[str]:
    """Return the names of all encodings."""
    return list(_KNOWN)


def get_encoding(encoding_name: str) -> Encoding:
    """Return the encoding with this name, always the same object.

    Raise ValueError for an unknown name, MissingInput if there is no rank file with the right SHA-256.
    """
    if not isinstance(encoding_name, str):
        raise ValueError(f"encoding_name: must be a str (got {type(encoding_name)})")
    with _lock:
        if encoding_name not in ENCODINGS:
            if encoding_name not in _KNOWN:
                raise ValueError(
                    f"encoding_name: unknown (got {encoding_name!r}). Known encodings are {', '.join(_KNOWN)}; "
                    "plug-ins (tiktoken_ext) are not supported."
                )
            ENCODINGS[encoding_name] = _load(encoding_name)
        return ENCODINGS[encoding_name]


def _load(name: str) -> Encoding:
    from bpe.compat.tiktoken.core import Encoding

    known = _KNOWN[name]
    path = cached_file(f"{_ADDRESS}{known.rank_file}.tiktoken", _SHA256[known.rank_file])
    return Encoding.from_tokenizer(Tokenizer.load(path, known.pattern, known.special_tokens), name)
