"""The encodings that tiktoken knows by name, and the models that use them; nothing is downloaded.

A rank file is looked for in the folder of TIKTOKEN_CACHE_DIR (or DATA_GYM_CACHE_DIR, or tiktoken's own, data-gym-cache
in the folder for temporary files), by the name that tiktoken gives it there, the SHA-1 of its address, or as
`cl100k_base.tiktoken`. Its SHA-256 must be the known one. Names, hashes, ids and models are those of tiktoken 0.14.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bpe.errors import MissingInput
from bpe.formats.by_path import read_file
from bpe.tokenizer import Tokenizer

if TYPE_CHECKING:
    from bpe.compat.tiktoken import Encoding

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
# Of the two texts that tiktoken has for 200018, <|endofprompt|> is kept: an id is one text here.
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


# gpt2 is r50k_base by another name: its vocab.bpe and encoder.json give the same ranks.
_KNOWN: Final = {
    "gpt2": _Known("r50k_base", "gpt2", {_END: 50256}),
    "r50k_base": _Known("r50k_base", "gpt2", {_END: 50256}),
    "p50k_base": _Known("p50k_base", "gpt2", {_END: 50256}),
    "p50k_edit": _Known(
        "p50k_base", "gpt2", {_END: 50256} | {token: 50281 + place for place, token in enumerate(_MIDDLE)}
    ),
    "cl100k_base": _Known(
        "cl100k_base",
        "cl100k",
        {token: 100257 + place for place, token in enumerate((_END, *_MIDDLE))} | {"<|endofprompt|>": 100276},
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
# The first that a model's name begins with counts.
_PREFIXES: Final = (
    *((prefix, "o200k_base") for prefix in ("o1-", "o3-", "o4-mini-", "gpt-5", "gpt-4.5-", "gpt-4.1-")),
    *((prefix, "o200k_base") for prefix in ("chatgpt-4o-", "gpt-4o-")),
    *((prefix, "cl100k_base") for prefix in ("gpt-4-", "gpt-3.5-turbo-", "gpt-35-turbo-")),
    ("gpt-oss-", "o200k_harmony"),
    ("ft:gpt-4o", "o200k_base"),
    *((f"ft:{name}", "cl100k_base") for name in ("gpt-4", "gpt-3.5-turbo", "davinci-002", "babbage-002")),
)

ENCODINGS: dict[str, Encoding] = {}  # those that were asked for
_lock = threading.RLock()


def list_encoding_names() -> list[str]:
    """The names that `get_encoding` takes."""
    return list(_KNOWN)


def get_encoding(encoding_name: str) -> Encoding:
    """The encoding of this name, the same one each time.

    ValueError for another name; MissingInput if the rank file is in none of the places; BadTokenizer if it can't be
    read. A file with another SHA-256 is passed over.
    """
    if not isinstance(encoding_name, str):
        raise ValueError(f"the name of an encoding must be a str, got {type(encoding_name)}")
    with _lock:
        if encoding_name not in ENCODINGS:
            if encoding_name not in _KNOWN:
                raise ValueError(f"unknown encoding {encoding_name!r}; known are {', '.join(_KNOWN)}")
            ENCODINGS[encoding_name] = _load(encoding_name)
        return ENCODINGS[encoding_name]


def encoding_name_for_model(model_name: str) -> str:
    """The name of the encoding that a model uses; KeyError if the model is not known."""
    for encoding, names in _MODELS.items():
        if model_name in names.split():
            return encoding
    for prefix, encoding in _PREFIXES:
        if model_name.startswith(prefix):
            return encoding
    raise KeyError(f"no encoding is known for the model {model_name!r}; give get_encoding its name")


def encoding_for_model(model_name: str) -> Encoding:
    """The encoding that a model uses; KeyError if the model is not known."""
    return get_encoding(encoding_name_for_model(model_name))


def _load(name: str) -> Encoding:
    from bpe.compat.tiktoken import Encoding

    known = _KNOWN[name]
    path = _rank_file(known.rank_file)
    tokenizer = Tokenizer.load(path, known.pattern, known.special_tokens)
    return Encoding.from_tokenizer(tokenizer, name)


def _rank_file(name: str) -> Path:
    """Where the rank file lies."""
    folder = Path(
        os.environ.get("TIKTOKEN_CACHE_DIR")
        or os.environ.get("DATA_GYM_CACHE_DIR")
        or Path(tempfile.gettempdir(), "data-gym-cache")
    )
    file_name = f"{name}.tiktoken"
    key = hashlib.sha1(f"{_ADDRESS}{file_name}".encode(), usedforsecurity=False).hexdigest()
    for path in (folder / key, folder / file_name):
        if path.is_file() and hashlib.sha256(read_file(path)).hexdigest() == _SHA256[name]:
            return path
    raise MissingInput(
        f"{folder / key} is not there, nor is {file_name} beside it, with SHA-256 {_SHA256[name][:12]}…; put "
        f"{_ADDRESS}{file_name} there, or name its folder by TIKTOKEN_CACHE_DIR"
    )
