"""Hugging Face's tokenizer.json: each component is honoured or refused by its JSON path, never ignored.

Two parts have no influence on the ids that `encode` gives: the decoder (it must be ByteLevel, which is what
decoding does here) and the post-processor. A ByteLevel post-processor only moves offsets; a TemplateProcessing adds
begin and end tokens around a text, which Hugging Face leaves out with `add_special_tokens=False`. Encoding here
always leaves them out, as datasets want it, and the template is kept and written back. The components around the
model are read and written in `huggingface_pipeline`.

Written files hold every special token in model.vocab as well, with its id: a reader numbers those by their
order that it does not find there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats import bulk
from bpe.formats.byte_alphabet import to_bytes
from bpe.formats.gpt2 import entry_of, merge_of_line, special_keys
from bpe.formats.huggingface_pipeline import (
    normalizer_from_json,
    pretokenizer_from_json,
    pretokenizer_to_json,
    require_byte_level_decoder,
    template_from_json,
)
from bpe.formats.json_input import expect, expect_list, expect_object, parse
from bpe.vocabulary import used_by_merges

if TYPE_CHECKING:
    from bpe.description import Description
    from bpe.pretokenizer import Pretokenizer
    from bpe.tokenizer import Tokenizer

_TOP_LEVEL: Final = {
    "version",
    "truncation",
    "padding",
    "added_tokens",
    "normalizer",
    "pre_tokenizer",
    "post_processor",
    "decoder",
    "model",
}
_MODEL: Final = {
    "type",
    "dropout",
    "unk_token",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "fuse_unk",
    "byte_fallback",
    "ignore_merges",
    "vocab",
    "merges",
}
_ADDED_TOKEN: Final = {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}


# -- reading -----------------------------------------------------------------------------------------------------


def read(data: bytes) -> Tokenizer:
    """The tokenizer of a tokenizer.json; BadTokenizer or UnsupportedTokenizer names the JSON path at fault.

    Files of the regular form are read by the core (`bpe.formats.bulk`), all others and all errors item by item here:
    200,000 entries with 450,000 merges in 0.2 s against 1.5 s.
    """
    return bulk.read_model(data, read_around) or read_items(data)


def read_items(data: bytes) -> Tokenizer:
    """The same by Python objects alone."""
    from bpe.tokenizer import Tokenizer

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
    return Tokenizer(
        entries,  # type: ignore[arg-type]
        merges,
        around.special_tokens,
        around.pretokenizer,
        whole_pretokens=around.whole_pretokens,
        normalizer=around.normalizer,
        plain_added_tokens=around.plain_added_tokens,
        template=around.template,
    )


class Model(Protocol):
    """What must be known of model.vocab and model.merges to say which ids the added tokens have."""

    def __len__(self) -> int: ...
    def id_of(self, key: str) -> int | None:
        """The id of a key of model.vocab."""

    def has_id(self, id_: int) -> bool:
        """Whether a key has this id."""

    def merges_use(self, entry: bytes) -> bool:
        """Whether a merge joins or makes the entry."""


@dataclass(frozen=True)
class _Items:
    vocab: dict[str, int]
    merges: list[tuple[bytes, bytes]]

    def __len__(self) -> int:
        return len(self.vocab)

    def id_of(self, key: str) -> int | None:
        return self.vocab.get(key)

    def has_id(self, id_: int) -> bool:
        return id_ in self.vocab.values()

    def merges_use(self, entry: bytes) -> bool:
        return bool(used_by_merges({entry}, self.merges))


@dataclass(frozen=True)
class Around:
    """A tokenizer.json without the entries and the merges."""

    special_tokens: dict[str, int]
    plain_added_tokens: frozenset[str]
    normalizer: Literal["NFC"] | None
    pretokenizer: Pretokenizer
    whole_pretokens: bool
    template: dict[str, Any] | None


def read_around(root: dict[str, Any], model: Model) -> Around:
    """What the document says around the entries and the merges; errors name the JSON path."""
    special_tokens, plain = _added_tokens(root.get("added_tokens") or [], model)
    normalizer = normalizer_from_json(root.get("normalizer"), "normalizer")
    if root.get("added_tokens"):
        _check_normalized_flags(root["added_tokens"], normalizer)
    pretokenizer = pretokenizer_from_json(root.get("pre_tokenizer"))
    require_byte_level_decoder(root.get("decoder"))
    return Around(
        special_tokens,
        frozenset(plain),
        normalizer,
        pretokenizer,
        root["model"].get("ignore_merges", False),
        template_from_json(root.get("post_processor"), special_tokens),
    )


def check_root(value: Any) -> dict[str, Any]:
    """The document, if it and its model have the form that can be honoured but for what `read_around` checks."""
    root = expect_object(value, "tokenizer.json", _TOP_LEVEL)
    if "model" not in root:
        raise BadTokenizer("model is missing: this is no tokenizer.json of Hugging Face tokenizers")
    expect(root.get("version", "1.0"), ["1.0"], "version")
    expect(root.get("truncation"), [None], "truncation", "cut sequences when training")
    expect(root.get("padding"), [None], "padding", "pad sequences when training")
    _check_model(root["model"])
    return root


def _check_model(value: Any) -> None:
    if isinstance(value, dict):
        # Files from before 2020, GPT-2's among them, do not name the type.
        expect(value.get("type", "BPE"), ["BPE"], "model.type", "only byte-level BPE is")
    model = expect_object(value, "model", _MODEL)
    for name in ("vocab", "merges"):
        if name not in model:
            raise BadTokenizer(f"model.{name} is missing")
    expect(model.get("dropout"), [None, 0, 0.0], "model.dropout", "ids must not be random")
    expect(model.get("continuing_subword_prefix"), [None, ""], "model.continuing_subword_prefix")
    expect(model.get("end_of_word_suffix"), [None, ""], "model.end_of_word_suffix")
    expect(model.get("byte_fallback", False), [False], "model.byte_fallback", "only byte-level BPE is")
    expect(model.get("ignore_merges", False), [False, True], "model.ignore_merges")
    # A byte-level vocabulary holds all bytes, so nothing is unknown and these two never come into play.
    expect(model.get("fuse_unk", False), [False, True], "model.fuse_unk")
    if not isinstance(model.get("unk_token"), (str, type(None))):
        raise BadTokenizer(f"model.unk_token must be a text or null, found {shown(model['unk_token'])}")


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


def _added_tokens(value: Any, model: Model) -> tuple[dict[str, int], set[str]]:
    """(text -> id of the added tokens, those of them that are not special), with the ids that readers give them."""
    special_tokens: dict[str, int] = {}
    plain: set[str] = set()
    next_id = 0
    for index, item in enumerate(expect_list(value, "added_tokens")):
        where = f"added_tokens[{index}]"
        token = expect_object(item, where, _ADDED_TOKEN)
        text, id_ = token.get("content"), token.get("id")
        if not isinstance(text, str) or not text:
            raise BadTokenizer(f"{where}.content is {shown(text)}: must be a text of at least one character")
        for flag in ("single_word", "lstrip", "rstrip"):
            expect(token.get(flag, False), [False], f"{where}.{flag}")
        expect(token.get("special", False), [False, True], f"{where}.special")
        if text in special_tokens:
            raise BadTokenizer(f"{where}.content {shown(text)} is given twice")
        # As tokenizers numbers them: the entry's id, else the next one.
        expected = model.id_of(text)
        if expected is None:
            expected = max(len(model), next_id)
            if model.has_id(expected):
                raise BadTokenizer(f"{where} {shown(text)}: put it in model.vocab, whose ids have gaps")
        elif (entry := to_bytes(text)) not in (None, text.encode()) and (
            len(entry) == 1 or model.merges_use(entry)
        ):
            raise BadTokenizer(
                f"{where}.content {shown(text)} is also how the byte alphabet spells an entry that merges use"
            )
        if id_ != expected or type(id_) is not int:
            raise BadTokenizer(
                f"{where}.id of {shown(text)} is {shown(id_)}, but Hugging Face's readers give it {expected}; "
                "mend the file or put the token in model.vocab"
            )
        special_tokens[text] = id_
        next_id = max(next_id, id_ + 1)
        if not token.get("special", False):
            plain.add(text)
    return special_tokens, plain


def _check_normalized_flags(added_tokens: list[dict[str, Any]], normalizer: str | None) -> None:
    """Nothing, or UnsupportedTokenizer where `normalized` would decide which token is found.

    Tokens with `normalized: true` are looked for after the others, in the normalized text between them.
    """
    late = [
        token["content"] for token in added_tokens if token.get("normalized", not token.get("special", False))
    ]
    early = [token["content"] for token in added_tokens if token["content"] not in set(late)]
    if late and normalizer is not None:
        raise UnsupportedTokenizer(
            f"added_tokens: {shown(late[0])} has normalized: true beside a normalizer; supported: normalized: false"
        )
    for first in late:
        for second in early:
            if _can_overlap(first, second):
                raise UnsupportedTokenizer(
                    f"added_tokens: {shown(first)} and {shown(second)} can overlap and differ in normalized; "
                    "supported: the same value for both"
                )


def _can_overlap(first: str, second: str) -> bool:
    if first in second or second in first:
        return True
    return any(
        first.endswith(second[:size]) or second.endswith(first[:size])
        for size in range(1, min(len(first), len(second)))
    )


# -- writing -----------------------------------------------------------------------------------------------------


_STAND_INS: Final[dict[str, Any]] = {"vocab": {}, "merges": []}


def to_json(tokenizer: Description, legacy_merges: bool = False) -> bytes:
    """The canonical tokenizer.json: equal tokenizers give equal bytes. legacy_merges: "a b" texts, not pairs.

    A rank file is written with ignore_merges and every split of every entry as a merge, as its rule is.
    BadTokenizer if a special token or the pattern can't be said in this format.
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
        "normalizer": {"type": tokenizer.normalizer} if tokenizer.normalizer else None,
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
    encoder = tokenizer.core_encoder
    parts = [
        text.removesuffix(ending),
        b'"vocab":',
        encoder.vocab_json([(id_, json.dumps(key, ensure_ascii=False).encode()) for id_, key in keys]),
        b',"merges":',
        encoder.merges_json(as_pairs=not legacy_merges),
        b"}}\n",
    ]
    return b"".join(parts)
