"""Hugging Face's tokenizer.json: each component is honoured or refused by its JSON path, never ignored.

The core reads the entries and merges and says which item is wrong; what stands around them is read by
`huggingface_envelope`. `encode` adds begin and end tokens (post_processor) on request. Truncation and padding are kept
and written back, and never applied: datasets want texts whole.

Written files hold every added token in model.vocab as well, with its id: a reader numbers those by their order that it
does not find there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bpe import _core
from bpe.added_tokens import core_tokens
from bpe.core_vocabulary import CoreVocabulary
from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats.byte_alphabet import BYTE_TO_CHARACTER, other_text, to_bytes
from bpe.formats.faults import must_be
from bpe.formats.gpt2 import entry_of, merge_of_line, special_keys
from bpe.formats.huggingface_decoder import decoder_to_json
from bpe.formats.huggingface_envelope import check_root, read_envelope, text_rules_of
from bpe.formats.huggingface_normalizer import normalizer_to_json
from bpe.formats.huggingface_pretokenizer import pretokenizer_to_json
from bpe.formats.json_input import expect_list, parse
from bpe.formats.text_keys import text_keys
from bpe.normalizers import make_normalizer
from bpe.parts import Parts
from bpe.text_form import LOWER_BLOCK, has_spaces
from bpe.vocabulary import TextRules

if TYPE_CHECKING:
    from bpe.tokenizer import Tokenizer

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_MALFORMED: Final = "model.vocab and model.merges: malformed"

# -- reading -----------------------------------------------------------------------------------------------------


class ReadFile(NamedTuple):
    """A tokenizer.json: the tokenizer, the document without entries and merges, the added tokens in model.vocab."""

    parts: Parts
    root: dict[str, Any]
    keys: frozenset[str]


def read(data: bytes) -> Parts:
    """The tokenizer of a tokenizer.json; BadTokenizer or UnsupportedTokenizer names the JSON path at fault."""
    return read_whole(data).parts


def read_whole(data: bytes) -> ReadFile:
    """The same with what it was read from."""
    data = data.removeprefix(_BYTE_ORDER_MARK)
    unread = _core.EntryFile.read_model_json(data, "unread")
    if unread is None:
        check_root(parse(data))
        raise BadTokenizer(_MALFORMED)
    try:
        root = parse(unread.outline())
    except BadTokenizer:
        parse(data)  # which knows the lines
        raise
    root = check_root(root)
    text_rules = text_rules_of(root)
    as_text = TextRules.of_text(text_rules)
    file = _core.EntryFile.read_model_json(data, "text" if as_text else "byte_alphabet")
    if file is None or file.fault is not None:
        wrong = check_root(parse(data))["model"]
        if file is None or file.fault is None:
            raise BadTokenizer(_MALFORMED)
        raise _wrong_item(wrong, *file.fault, as_text)
    try:
        model = _Model(file, root, text_rules)
    except ValueError as error:
        raise BadTokenizer(f"model.vocab: {error}") from None
    envelope = read_envelope(root, model, text_rules)
    decoded_only = {id_: text for text, id_ in file.texts.items() if text not in envelope.special_tokens}
    if text_rules is None:
        text_rules = _rules_for_missing_bytes(file, root["model"])
    ignore_merges = root["model"].get("ignore_merges", False)
    rules = None
    if text_rules is not None:
        unk_id = None if text_rules.unk_token is None else model.id_of(text_rules.unk_token)
        if text_rules.unk_token is not None and unk_id is None:
            raise BadTokenizer(
                f"model.unk_token: not an entry of model.vocab (got {shown(text_rules.unk_token)})"
            )
        (mark,) = file.find([LOWER_BLOCK.encode()])
        spaces = has_spaces(
            text_rules, envelope.pretokenizer, envelope.normalizer, envelope.added_tokens, mark is not None
        )
        rules = text_rules.for_core(unk_id, spaces)
    tokens = core_tokens(envelope.added_tokens, envelope.normalizer, decoded_only=decoded_only)
    automaton = None if text_rules is not None else envelope.pretokenizer.automaton
    try:
        encoder = file.encoder(tokens, automaton, ignore_merges, rules)
    except ValueError as error:
        path = "model." if str(error).startswith("merges[") else "model.vocab: "
        raise BadTokenizer(path + str(error)) from None
    keys = frozenset(text for text in envelope.special_tokens if model.id_of(text) is not None)
    vocabulary = CoreVocabulary(encoder, envelope.special_tokens, ignore_merges, text_rules, decoded_only)
    return ReadFile(Parts(vocabulary, *envelope), root, keys)


def _rules_for_missing_bytes(file: _core.EntryFile, model: dict[str, Any]) -> TextRules | None:
    """Return the rules of a byte-level vocabulary that lacks some of the 256 bytes; None if it has them all."""
    ids = file.find([bytes([byte]) for byte in range(256)])
    missing = [byte for byte, id_ in enumerate(ids) if id_ is None]
    if not missing:
        return None
    if model.get("byte_fallback", False):
        for byte in missing:
            spelled = [b"<0x%02X>" % each for each in BYTE_TO_CHARACTER[byte].encode()]
            if all(id_ is not None for id_ in file.find(spelled)):
                raise UnsupportedTokenizer(
                    f"model.byte_fallback: unsupported (got True), as model.vocab has {shown(spelled[0])} for byte "
                    f"0x{byte:02x}. Supported: false."
                )
    return TextRules(unk_token=model.get("unk_token"), fuse_unk=model.get("fuse_unk", False), byte_level=True)


class _Model:
    """What must be known of model.vocab and model.merges to say which ids the added tokens have."""

    def __init__(self, file: _core.EntryFile, root: dict[str, Any], text_rules: TextRules | None) -> None:
        items = root.get("added_tokens")
        items = items if isinstance(items, list) else []
        contents = [item.get("content") for item in items if isinstance(item, dict)]
        contents.append(root["model"].get("unk_token"))
        keys = [key for key in contents if isinstance(key, str)]
        as_text = TextRules.of_text(text_rules)
        entries = [key.encode() if as_text else to_bytes(key) or b"" for key in keys]
        prefix = "" if text_rules is None else text_rules.continuing_subword_prefix
        self._file, self._ids, self._max_id = file, file.texts, file.max_id
        self._ids.update(
            (key, id_) for key, id_ in zip(keys, file.find(entries), strict=True) if id_ is not None
        )
        self._in_merges = frozenset(file.used_by_merges(entries, len(prefix.encode())))

    def __len__(self) -> int:
        return len(self._file)

    def id_of(self, key: str) -> int | None:
        """The id of a key of model.vocab."""
        return self._ids.get(key)

    def has_id(self, id_: int) -> bool:
        """Whether a key has this id."""
        return id_ <= self._max_id and self._file.has_id(id_)

    def merges_use(self, entry: bytes) -> bool:
        """Whether a merge joins or makes the entry."""
        return entry in self._in_merges


def _wrong_item(model: dict[str, Any], place: str, index: int | None, as_text: bool) -> BadTokenizer:
    """The error for the item of model.vocab or model.merges that the core could not take."""
    value = model[place]
    if place == "merges":
        items = expect_list(value, "model.merges")
        return _wrong_merge(items[index or 0], f"model.merges[{index}]", as_text)
    if not isinstance(value, dict) or index is None:
        return must_be("model.vocab", "an object of entries and IDs", value)
    characters, id_ = list(value.items())[index]
    return must_be(f"model.vocab[{shown(characters)}]", "an integer from 0 to 2^31 - 1", id_)


def _wrong_merge(merge: Any, where: str, as_text: bool) -> BadTokenizer:
    try:
        if as_text:
            pass  # any text is an entry
        elif isinstance(merge, list) and len(merge) == 2 and all(isinstance(part, str) for part in merge):
            entry_of(merge[0], where), entry_of(merge[1], where)
        elif isinstance(merge, str):
            merge_of_line(merge, where)
    except BadTokenizer as error:
        return error
    return must_be(where, '["left", "right"] or "left right"', merge)


# -- writing -----------------------------------------------------------------------------------------------------


STAND_INS: Final[dict[str, Any]] = {"vocab": {}, "merges": []}


def to_json(tokenizer: Tokenizer, legacy_merges: bool = False) -> bytes:
    """The canonical tokenizer.json: equal tokenizers give equal bytes; see `json_pieces`."""
    return b"".join(json_pieces(tokenizer, legacy_merges))


def json_pieces(tokenizer: Tokenizer, legacy_merges: bool = False) -> Iterator[bytes]:
    """The canonical tokenizer.json in pieces of some 1 MB, so that it never lies in memory whole.

    legacy_merges: merges as "a b" texts, not pairs. A rank file is written with ignore_merges and every split of every
    entry as a merge, as its rule is. BadTokenizer if a special token or the pattern can't be said in this format.
    """
    post_processor = tokenizer.post_processor
    as_text = TextRules.of_text(tokenizer.text_rules)
    root = {
        "version": "1.0",
        "truncation": tokenizer.truncation,
        "padding": tokenizer.padding,
        "added_tokens": [
            {
                "id": token.id,
                "content": token.text,
                "single_word": token.single_word,
                "lstrip": token.lstrip,
                "rstrip": token.rstrip,
                "normalized": token.normalized,
                "special": token.special,
            }
            for token in tokenizer.added_tokens
        ],
        "normalizer": normalizer_to_json(make_normalizer(tokenizer.normalizer)),
        "pre_tokenizer": pretokenizer_to_json(tokenizer.pretokenizer, as_text),
        "post_processor": None if post_processor is None else post_processor.component,
        "decoder": decoder_to_json(tokenizer.decoder),
        "model": model_options(tokenizer) | STAND_INS,
    }
    if not as_text:
        keys = special_keys(tokenizer)
    if tokenizer.text_rules is not None:
        keys = text_keys(tokenizer)
    if tokenizer.ignore_merges and not as_text:
        _check_no_other_text(keys)
    keys = sorted([*keys, *tokenizer.parts.vocabulary.decoded_only.items()])
    yield from with_entries(root, tokenizer.core_encoder, keys, legacy_merges)


def model_options(tokenizer: Tokenizer) -> dict[str, Any]:
    """The model without entries and merges."""
    rules = tokenizer.text_rules or TextRules()
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": rules.unk_token,
        "continuing_subword_prefix": rules.continuing_subword_prefix or None,
        "end_of_word_suffix": rules.end_of_word_suffix or None,
        "fuse_unk": rules.fuse_unk,
        "byte_fallback": rules.byte_fallback,
        "ignore_merges": tokenizer.ignore_merges,
    }


def with_entries(
    root: dict[str, Any],
    encoder: _core.TokenizerCore,
    keys: list[tuple[int, str]],
    legacy_merges: bool = False,
) -> Iterator[bytes]:
    """The document, which ends with the `STAND_INS` of its model, with entries and merges; written by the core.

    keys: (id, key) of the special tokens to be in model.vocab, by ascending id.
    """
    text = json.dumps(root, ensure_ascii=False, separators=(",", ":")).encode()
    ending = json.dumps(STAND_INS, separators=(",", ":")).encode()[1:] + b"}"
    yield text.removesuffix(ending) + b'"vocab":'
    yield from encoder.vocab_json([(id_, json.dumps(key, ensure_ascii=False).encode()) for id_, key in keys])
    yield b',"merges":'
    yield from encoder.merges_json(as_pairs=not legacy_merges)
    yield b"}}\n"


def _check_no_other_text(keys: list[tuple[int, str]]) -> None:
    """Raise BadTokenizer if ignore_merges would give another text the ID of a special token."""
    for _, text in keys:
        if entry := other_text(text):
            raise BadTokenizer(
                f"special_tokens: same spelling as {shown(entry.decode())} in tokenizer.json, which "
                "ignore_merges would "
                f"give the same ID (got {shown(text)}). Save the tokenizer in another format."
            )
