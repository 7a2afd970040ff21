"""Hugging Face's tokenizer.json: each component is honoured or refused by its JSON path, never ignored.

Two parts have no influence on the ids that `encode` gives: the decoder (it must be ByteLevel, which is what
decoding does here) and the post-processor. A ByteLevel post-processor only moves offsets; a TemplateProcessing adds
begin and end tokens around a text, which Hugging Face leaves out with `add_special_tokens=False`. Encoding here
always leaves them out, as datasets want it, and the template is kept and written back. What stands around
the entries and merges is read in `huggingface_around`, its pipeline in `huggingface_pipeline`.

Written files hold every special token in model.vocab as well, with its id: a reader numbers those by their
order that it does not find there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from bpe.description import Description, Parts
from bpe.errors import BadTokenizer, shown
from bpe.formats import bulk
from bpe.formats.byte_alphabet import other_text, to_bytes
from bpe.formats.gpt2 import entry_of, merge_of_line, special_keys
from bpe.formats.huggingface_around import check_root, read_around
from bpe.formats.huggingface_normalizer import normalizer_to_json
from bpe.formats.huggingface_pipeline import pretokenizer_to_json
from bpe.formats.json_input import expect_list, parse
from bpe.normalizers import make_normalizer
from bpe.vocabulary import make_vocabulary

# -- reading -----------------------------------------------------------------------------------------------------


def read(data: bytes) -> Parts:
    """The tokenizer of a tokenizer.json; BadTokenizer or UnsupportedTokenizer names the JSON path at fault.

    Files of the regular form are read by the core (`bpe.formats.bulk`), all others and all errors item by item here:
    200,000 entries with 450,000 merges in 0.2 s against 1.5 s.
    """
    return bulk.read_model(data) or read_items(data)


def read_items(data: bytes) -> Parts:
    """The same by Python objects alone."""
    root = check_root(parse(data))
    model = root["model"]
    entries = _entries(model["vocab"])
    in_alphabet = {
        characters: entry
        for characters, id_ in model["vocab"].items()
        if isinstance(entry := entries[id_], bytes)
    }
    merges = _merges(model["merges"], in_alphabet)
    around = read_around(root, _Items(model["vocab"], merges))
    for text, id_ in around.special_tokens.items():
        entries[id_] = text.encode()
    for id_, entry in entries.items():
        if isinstance(entry, str):
            entry_of(entry, f"model.vocab, id {id_}")  # raises
    return around.parts(
        make_vocabulary(entries, merges, around.special_tokens, around.whole_pretokens)  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class _Items:
    vocab: dict[str, int]
    merges: list[tuple[bytes, bytes]]

    def __len__(self) -> int:
        return len(self.vocab)

    def id_of(self, key: str) -> int | None:
        return self.vocab.get(key)

    def has_id(self, id_: int) -> bool:
        return id_ in self._all_ids

    def merges_use(self, entry: bytes) -> bool:
        return entry in self._in_merges

    @cached_property
    def _all_ids(self) -> set[int]:
        return set(self.vocab.values())

    @cached_property
    def _in_merges(self) -> set[bytes]:
        return {entry for left, right in self.merges for entry in (left, right, left + right)}


def _entries(vocab: Any) -> dict[int, bytes | str]:
    """id -> bytes; the characters themselves where they are not in the byte alphabet (a special token, one hopes)."""
    if not isinstance(vocab, dict):
        raise BadTokenizer(f"model.vocab must be an object of entries and their ids, found {shown(vocab)}")
    entries: dict[int, bytes | str] = {}
    for characters, id_ in vocab.items():
        if type(id_) is not int:
            raise BadTokenizer(f"model.vocab[{shown(characters)}] is {shown(id_)}: ids must be whole numbers")
        entry = to_bytes(characters)
        if id_ in entries:
            raise BadTokenizer(
                f"model.vocab[{shown(characters)}] has id {id_}, which another entry has: ids must be unique"
            )
        entries[id_] = characters if entry is None else entry
    return entries


def _merges(value: Any, entry_by_characters: dict[str, bytes]) -> list[tuple[bytes, bytes]]:
    merges: list[tuple[bytes, bytes]] = []
    for index, merge in enumerate(expect_list(value, "model.merges")):
        pair = merge.split(" ") if type(merge) is str else merge if type(merge) is list else []
        try:
            left, right = pair
            merges.append((entry_by_characters[left], entry_by_characters[right]))
        except (ValueError, TypeError, KeyError):
            raise _bad_merge(merge, f"model.merges[{index}]") from None
    return merges


def _bad_merge(merge: Any, where: str) -> BadTokenizer:
    try:
        if isinstance(merge, list) and len(merge) == 2 and all(isinstance(part, str) for part in merge):
            left, right = entry_of(merge[0], where), entry_of(merge[1], where)
        elif isinstance(merge, str):
            left, right = merge_of_line(merge, where)
        else:
            return BadTokenizer(f'{where} is {shown(merge)}, must be ["left", "right"] or "left right"')
    except BadTokenizer as error:
        return error
    return BadTokenizer(
        f"{where} joins {shown(left)} and {shown(right)}, of which one is no entry of model.vocab"
    )


# -- writing -----------------------------------------------------------------------------------------------------


_STAND_INS: Final[dict[str, Any]] = {"vocab": {}, "merges": []}


def to_json(tokenizer: Description, legacy_merges: bool = False) -> bytes:
    """The canonical tokenizer.json: equal tokenizers give equal bytes; see `json_pieces`."""
    return b"".join(json_pieces(tokenizer, legacy_merges))


def json_pieces(tokenizer: Description, legacy_merges: bool = False) -> Iterator[bytes]:
    """The canonical tokenizer.json in pieces of some 1 MB, so that it never lies in memory whole.

    legacy_merges: merges as "a b" texts, not pairs. A rank file is written with ignore_merges and every split of every
    entry as a merge, as its rule is. BadTokenizer if a special token or the pattern can't be said in this format.
    """
    root = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": id_,
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": text not in tokenizer.plain_added_tokens,
            }
            for text, id_ in sorted(tokenizer.special_tokens.items(), key=lambda item: item[1])
        ],
        "normalizer": normalizer_to_json(make_normalizer(tokenizer.normalizer)),
        "pre_tokenizer": pretokenizer_to_json(tokenizer.pretokenizer),
        "post_processor": tokenizer.template,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": tokenizer.whole_pretokens,
            **_STAND_INS,
        },
    }
    # The two large values are written by the core: o200k's in 0.2 s, as Python objects 2.7 s.
    text = json.dumps(root, ensure_ascii=False, separators=(",", ":")).encode()
    ending = json.dumps(_STAND_INS, separators=(",", ":")).encode()[1:] + b"}"
    keys = special_keys(tokenizer)
    if tokenizer.whole_pretokens:
        _check_no_other_text(keys)
    encoder = tokenizer.core_encoder
    yield text.removesuffix(ending) + b'"vocab":'
    yield from encoder.vocab_json([(id_, json.dumps(key, ensure_ascii=False).encode()) for id_, key in keys])
    yield b',"merges":'
    yield from encoder.merges_json(as_pairs=not legacy_merges)
    yield b"}}\n"


def _check_no_other_text(keys: list[tuple[int, str]]) -> None:
    """Nothing, or BadTokenizer if ignore_merges would give another text the id of a special token."""
    for _, text in keys:
        if entry := other_text(text):
            raise BadTokenizer(
                f"special token {shown(text)} is how tokenizer.json spells {shown(entry.decode())}, which with "
                "ignore_merges would get its id; this file format can't hold it"
            )
