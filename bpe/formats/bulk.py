"""Tokenizer files read by the core at once, where they have the regular form that programs write.

Each call gives the tokenizer that the reader by Python objects (`huggingface.read_items`, `tiktoken.read_lines`) gives,
or None: for files that are wrong, whose error that reader words, and for odd ones, which it takes. So what is doubtful
is not decided here. tests/bpe/test_fast_reading.py compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bpe import _core
from bpe.core_vocabulary import CoreVocabulary
from bpe.description import Parts
from bpe.errors import BpeError
from bpe.formats.byte_alphabet import to_bytes
from bpe.formats.huggingface_around import check_root, read_around
from bpe.formats.json_input import expect_list, parse
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import MAX_ID, SpecialTokens

# What the checks on the way raise for what is wrong; the other reader finds it again and says it well.
_WRONG: Final = (BpeError, ValueError, TypeError, LookupError, AttributeError)


class _NotRegularError(Exception):
    """The file is for the other reader."""


class _CoreModel:
    """A `huggingface_around.Model` of model.vocab and model.merges; the keys asked for must be given first."""

    def __init__(self, file: _core.EntryFile, keys: list[str]) -> None:
        self._file = file
        texts = file.texts
        self._ids = {key: texts.get(key) for key in keys}
        entries = [to_bytes(key) for key in keys]
        found = file.find([entry or b"" for entry in entries])
        for key, entry, id_ in zip(keys, entries, found, strict=True):
            if id_ is None:
                continue
            # Spelled like an entry: harmless if it has the same bytes, which no text without it needs.
            if entry != key.encode() or len(entry) == 1:
                raise _NotRegularError
            self._ids[key] = id_
        if texts.keys() - self._ids.keys():
            raise _NotRegularError

    def __len__(self) -> int:
        return len(self._file)

    def id_of(self, key: str) -> int | None:
        return self._ids[key]

    def has_id(self, id_: int) -> bool:
        return self._file.has_id(id_)

    def merges_use(self, entry: bytes) -> bool:
        raise _NotRegularError


def read_model(data: bytes) -> Parts | None:
    """The tokenizer of a tokenizer.json, or None."""
    file = _core.EntryFile.read_model_json(data)
    if file is None:
        return None
    try:
        root = check_root(parse(file.outline()))
        added = expect_list(root.get("added_tokens") or [], "added_tokens")
        keys = [str(token["content"]) for token in added]
        around = read_around(root, _CoreModel(file, keys))
        special = _encoded(around.special_tokens)
        encoder = file.encoder(
            special,
            list(special.values()),
            around.pretokenizer.core_pattern,
            around.whole_pretokens,
        )
    except (_NotRegularError, *_WRONG):
        return None
    return around.parts(CoreVocabulary(encoder, around.special_tokens, around.whole_pretokens))


def read_ranks(data: bytes, pattern: str | Pretokenizer, special_tokens: SpecialTokens) -> Parts | None:
    """The tokenizer of a rank file, or None."""
    file = _core.EntryFile.read_rank_file(data)
    if file is None:
        return None
    try:
        specials = _special_ids(file, special_tokens)
        special = _encoded(specials)
        if any(id_ is not None for id_ in file.find(list(special))):
            return None
        pretokenizer = Pretokenizer.from_pattern(pattern)
        encoder = file.encoder(special, [], pretokenizer.core_pattern, True)
    except _WRONG:
        return None
    return Parts(CoreVocabulary(encoder, specials, whole_pretokens=True), pretokenizer)


def _special_ids(file: _core.EntryFile, special_tokens: SpecialTokens) -> dict[str, int]:
    """text -> id; those without ids follow the highest rank in their order. ValueError for what is not plain."""
    if special_tokens is None:
        return {}
    if isinstance(special_tokens, Mapping):
        specials = dict(special_tokens)
    elif isinstance(special_tokens, (str, bytes)):
        raise ValueError
    else:
        texts = list(special_tokens)
        specials = {text: file.max_id + 1 + place for place, text in enumerate(texts)}
        if len(specials) < len(texts):
            raise ValueError
    if not all(type(id_) is int and 0 <= id_ <= MAX_ID for id_ in specials.values()):
        raise ValueError
    return specials


def _encoded(specials: Mapping[str, int]) -> dict[bytes, int]:
    """UTF-8 -> id; ValueError for ids that are not distinct, texts that are empty or no texts."""
    special = {text.encode(): id_ for text, id_ in specials.items()}
    if b"" in special or not len(set(special.values())) == len(special) == len(specials):
        raise ValueError
    return special
