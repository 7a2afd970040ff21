"""Reader and writer of Hugging Face's tokenizer.json.

The core reads entries and merges in one pass over the file. Everything else is read from the outline, the document
without these two values: every component is executed or rejected with its JSON path, never ignored. `encode` adds the
tokens of the post_processor on request. Truncation and padding are stored and written back, but never applied.

Written files have every added token in model.vocab as well. Readers would number other tokens in their order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bpe import _core, normalizers
from bpe.added_tokens import AddedToken
from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats.byte_alphabet import BYTE_TO_CHARACTER, other_text, to_bytes
from bpe.formats.faults import must_be, not_utf8, unsupported
from bpe.formats.gpt2 import outside_alphabet, special_keys
from bpe.formats.huggingface_components import (
    components_from_json,
    decoder_from_json,
    decoder_to_json,
    is_byte_level,
    normalizer_from_json,
    normalizer_to_json,
    padding_from_json,
    post_processor_from_json,
    pretokenizer_from_json,
    pretokenizer_to_json,
    truncation_from_json,
)
from bpe.formats.json_input import (
    FLAG,
    Fields,
    anything,
    expect,
    expect_filled,
    expect_list,
    expect_object,
    expect_text,
    location,
    one_of,
    optional,
    parse,
    read_fields,
    without_mark,
)
from bpe.parts import Parts, assemble
from bpe.pretokenization import components
from bpe.vocabulary import TextRules

if TYPE_CHECKING:
    from bpe.tokenizer import Tokenizer

TOP_LEVEL: Final = frozenset(
    "version truncation padding added_tokens normalizer pre_tokenizer post_processor decoder model".split()
)
_MAX_GROWTH: Final = 1 << 16  # published tokenizers stay below 200
_OFF: Final = (FLAG, False)
_OPTIONAL_TEXT: Final = (optional(expect_text), None)
MODEL: Final[Fields] = {
    "type": (one_of("BPE"), "BPE"),
    "dropout": (one_of(None, 0, 0.0, note="IDs would be random"), None),
    "unk_token": _OPTIONAL_TEXT,
    "continuing_subword_prefix": _OPTIONAL_TEXT,
    "end_of_word_suffix": _OPTIONAL_TEXT,
    "fuse_unk": _OFF,
    "byte_fallback": _OFF,
    "ignore_merges": _OFF,
    "vocab": (anything, None),
    "merges": (anything, None),
}
_ADDED_TOKEN: Final[Fields] = {
    "id": (anything, None),
    "content": (expect_filled, None),
    **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), _OFF),
}


class Model(NamedTuple):
    """The facts about model.vocab and model.merges that decide the IDs of the added tokens.

    ids: IDs of the keys that are added tokens or the unknown token. in_merges: entries that a merge joins or produces.
    """

    file: _core.EntryFile
    ids: dict[str, int]
    in_merges: frozenset[bytes]


def _model_of(file: _core.EntryFile, root: dict[str, Any], text_rules: TextRules | None) -> Model:
    items = root.get("added_tokens")
    contents = (
        [item.get("content") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    )
    keys = [key for key in (*contents, root["model"].get("unk_token")) if isinstance(key, str)]
    as_text = TextRules.of_text(text_rules)
    entries = [key.encode() if as_text else to_bytes(key) or b"" for key in keys]
    found = {key: id_ for key, id_ in zip(keys, file.find(entries), strict=True) if id_ is not None}
    prefix = "" if text_rules is None else text_rules.continuing_subword_prefix
    return Model(file, file.texts | found, frozenset(file.used_by_merges(entries, len(prefix.encode()))))


def check_root(value: Any) -> dict[str, Any]:
    """Check the fields and model options of a document, and return it."""
    if isinstance(value, dict) and "model" not in value:
        raise BadTokenizer("model: missing. Pass a tokenizer.json of Hugging Face tokenizers.")
    root = expect_object(value, "tokenizer.json", TOP_LEVEL)
    expect(root.get("version", "1.0"), ["1.0"], "version")
    model = root["model"]
    if isinstance(model, dict):
        # Files from before 2020, such as GPT-2's, have no type.
        expect(model.get("type", "BPE"), ["BPE"], "model.type")
    read_fields(model, "model", MODEL)
    for name in ("vocab", "merges"):
        if name not in model:
            raise BadTokenizer(f"model.{name}: missing")
    return root


def text_rules_of(root: dict[str, Any]) -> TextRules | None:
    """Return the rules for text entries; None if all entries are bytes in the byte alphabet."""
    model = root["model"]
    pretokenizers = [component for component, _ in components_from_json(root.get("pre_tokenizer"))]
    byte_level = is_byte_level(pretokenizers)
    prefix, suffix = model.get("continuing_subword_prefix") or "", model.get("end_of_word_suffix") or ""
    if byte_level and not prefix and not suffix:
        return None  # unless entries for some bytes are missing
    if model.get("byte_fallback", False) and (prefix or suffix):
        raise UnsupportedTokenizer(
            "model.byte_fallback: not supported with a continuing_subword_prefix or end_of_word_suffix (got True)"
        )
    for name, affix in (("continuing_subword_prefix", prefix), ("end_of_word_suffix", suffix)):
        if byte_level and (affix != "" and to_bytes(affix) != affix.encode()):
            raise unsupported(f"model.{name}", affix, "printable ASCII")
    return TextRules(
        byte_fallback=not byte_level and model.get("byte_fallback", False),
        unk_token=model.get("unk_token"),
        fuse_unk=model.get("fuse_unk", False),
        end_of_word_suffix=suffix,
        continuing_subword_prefix=prefix,
        byte_level=byte_level,
    )


def _added_tokens(value: Any, model: Model, ignore_merges: bool, as_text: bool) -> list[AddedToken]:
    """Return the added tokens in file order, with the IDs that Hugging Face tokenizers gives them."""
    tokens: dict[str, AddedToken] = {}
    next_id = len(model.file)
    for index, item in enumerate([] if value is None else expect_list(value, "added_tokens")):
        where = f"added_tokens[{index}]"
        special = isinstance(item, dict) and item.get("special") is True
        flags = read_fields(item, where, {**_ADDED_TOKEN, "normalized": (FLAG, not special)})
        text, id_ = flags.pop("content"), flags.pop("id")
        if text in tokens:
            raise BadTokenizer(f"{where}.content: duplicate (got {shown(text)})")
        # Hugging Face tokenizers uses the ID of the entry, or the next unused one.
        expected = model.ids.get(text)
        if expected is None:
            expected = next_id
            next_id += 1
            if expected <= model.file.max_id and model.file.has_id(expected):
                raise BadTokenizer(
                    f"{where}: must be in model.vocab, since its IDs have gaps (got {shown(text)})"
                )
        elif not as_text and (used_by := _conflicting_use(text, model, ignore_merges)):
            raise BadTokenizer(
                f"{where}.content: same spelling as an entry of the byte alphabet that {used_by} (got "
                f"{shown(text)}), so "
                f"ID {expected} would stand for two texts. Give the token its own ID."
            )
        if id_ != expected or type(id_) is not int:
            raise BadTokenizer(
                f"{where}.id: must be {expected}, as in Hugging Face tokenizers (got {shown(id_)} for {shown(text)}). "
                "Correct the file, or add the token to model.vocab."
            )
        tokens[text] = AddedToken(text, id_, **flags)
    return list(tokens.values())


def _conflicting_use(text: str, model: Model, ignore_merges: bool) -> str | None:
    """Return the reason why a key that spells an entry would give its ID to other text, or None.

    "é" spells the byte 0xe9, "Ġa" spells " a".
    """
    entry = to_bytes(text)
    if entry is None or entry == text.encode():
        return None
    if ignore_merges and other_text(text):
        return "ignore_merges emits"
    return "merges use" if len(entry) == 1 or entry in model.in_merges else None


def _check_growth(made: Iterable[object]) -> None:
    """Raise UnsupportedTokenizer if text could become more than _MAX_GROWTH times longer.

    Growth factors of components multiply: forty ByteLevels would turn one letter into a terabyte. Idempotent
    components, such as NFKC, are not counted. They make a text at most about ten times longer.
    """
    times = 1
    for component in made:
        match component:
            case normalizers.ByteLevel() | components.ByteLevel():
                times *= 2
            case normalizers.Replace(pattern, content, is_expression):
                # An expression may match a byte, or the empty text on both sides of it.
                size = len(content.encode())
                times *= 1 + 2 * size if is_expression else -(-size // max(1, len(pattern.encode()))) or 1
            case normalizers.Precompiled(charsmap):
                values = charsmap[4 + int.from_bytes(charsmap[:4], "little") :]  # after the array of the keys
                times *= max(map(len, values.split(b"\0"))) or 1
    if times > _MAX_GROWTH:
        raise UnsupportedTokenizer(
            f"normalizer and pre_tokenizer: must not make text more than {_MAX_GROWTH:,} times longer (got {times:.0e})"
        )


class ReadFile(NamedTuple):
    """The tokenizer of a tokenizer.json.

    root: the document without entries and merges. keys: the added tokens in model.vocab.
    """

    parts: Parts
    root: dict[str, Any]
    keys: frozenset[str]


def read(data: bytes) -> Parts:
    """Read a tokenizer.json. BadTokenizer or UnsupportedTokenizer names the JSON path of the fault."""
    return read_whole(data).parts


def read_whole(data: bytes) -> ReadFile:
    """Read a tokenizer.json, with the facts that `ReadFile` adds."""
    data = without_mark(data)
    file = _core.EntryFile.read_model_json(data)
    if file.fault is not None and file.fault[0] in ("json", "utf8"):
        raise _malformed(data, *file.fault)
    try:
        root = check_root(parse(file.outline(data)))
    except BadTokenizer:
        parse(data)  # BadTokenizer with the column in the file, not in the outline
        raise
    if file.fault is not None:
        raise _malformed(data, *file.fault)
    text_rules = text_rules_of(root)
    if not TextRules.of_text(text_rules) and (other := file.spell_bytes()):
        index, part = other
        raise outside_alphabet(f"model.merges[{index}]", part)
    try:
        model = _model_of(file, root, text_rules)
    except ValueError as error:
        raise BadTokenizer(f"model.vocab: {error}") from None
    as_text = TextRules.of_text(text_rules)
    ignore_merges = root["model"].get("ignore_merges", False)
    added = _added_tokens(root.get("added_tokens"), model, ignore_merges, as_text)
    special_tokens = {token.text: token.id for token in added}
    normalizer = normalizer_from_json(root.get("normalizer"))
    pretokenizer = pretokenizer_from_json(root.get("pre_tokenizer"), as_text)
    _check_growth((*(normalizer.components if normalizer is not None else ()), *pretokenizer.components))
    if pretokenizer.asks_for_input and normalizer is not None and normalizer.may_remove_first:
        raise UnsupportedTokenizer(
            f"pre_tokenizer: Metaspace with prepend_scheme 'first' is not supported after {normalizer}, which may "
            "remove the first characters of an input"
        )
    others = (
        post_processor_from_json(root.get("post_processor"), special_tokens),
        truncation_from_json(root.get("truncation")),
        padding_from_json(root.get("padding")),
        decoder_from_json(root.get("decoder"), as_text),
    )
    decoded_only = {id_: text for text, id_ in file.texts.items() if text not in special_tokens}
    if text_rules is None:
        text_rules = _rules_for_missing_bytes(file, root["model"])
    unk_token = None if text_rules is None else text_rules.unk_token
    unk_id = None if unk_token is None else model.ids.get(unk_token)
    if unk_token is not None and unk_id is None:
        raise BadTokenizer(f"model.unk_token: not an entry of model.vocab (got {shown(unk_token)})")
    tokens = tuple(sorted(added, key=lambda token: token.id))
    facts = {token.text: token.id for token in tokens}
    vocabulary = file, facts, ignore_merges, text_rules, decoded_only, unk_id
    parts = assemble(*vocabulary, pretokenizer, normalizer, tokens, *others, "model.")
    return ReadFile(parts, root, frozenset(text for text in facts if text in model.ids))


def _malformed(data: bytes, kind: str, index: int, start: int, stop: int, name: str) -> BadTokenizer:
    """Return the error for a fault of `_core.EntryFile`: the value data[start:stop] is malformed."""
    if kind == "utf8":
        return not_utf8(start)
    if kind == "json":
        return BadTokenizer(f"{location(data, start)}: not valid JSON. Check whether the file is complete.")
    value = parse(data, start, stop)  # BadTokenizer if it is not valid JSON
    path, wanted = {
        "vocab": ("model.vocab", "an object of entries and IDs"),
        "merges": ("model.merges", "a list"),
        "key": ("model.vocab", "an object with texts as keys"),
        "id": (f"model.vocab[{shown(name)}]", "an integer from 0 to 2^31 - 1"),
    }.get(kind, (f"model.merges[{index}]", '["left", "right"] or "left right"'))
    return must_be(path, wanted, value)


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


# -- writing -----------------------------------------------------------------------------------------------------


STAND_INS: Final[dict[str, Any]] = {"vocab": {}, "merges": []}


def to_json(tokenizer: Tokenizer, legacy_merges: bool = False) -> bytes:
    """Return the canonical tokenizer.json: equal tokenizers give equal bytes. See `json_pieces`."""
    return b"".join(json_pieces(tokenizer, legacy_merges))


def json_pieces(tokenizer: Tokenizer, legacy_merges: bool = False) -> Iterator[bytes]:
    """Yield the canonical tokenizer.json in pieces of about 1 MB, which bounds the memory.

    A rank file is written with ignore_merges and all splits of all entries as merges. Raises BadTokenizer if this
    format cannot express a special token or the pattern.

    legacy_merges: write a merge as "a b" instead of a pair.
    """
    as_text = TextRules.of_text(tokenizer.text_rules)
    root = {
        "version": "1.0",
        "truncation": tokenizer.truncation,
        "padding": tokenizer.padding,
        "added_tokens": [
            {name: getattr(token, "text" if name == "content" else name) for name in _ADDED_TOKEN}
            for token in tokenizer.added_tokens
        ],
        **components_of(tokenizer),
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


def components_of(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the components in tokenizer.json's form."""
    post_processor = tokenizer.post_processor
    return {
        "normalizer": normalizer_to_json(tokenizer.parts.normalizer),
        "pre_tokenizer": pretokenizer_to_json(
            tokenizer.pretokenizer, TextRules.of_text(tokenizer.text_rules)
        ),
        "post_processor": None if post_processor is None else post_processor.component,
        "decoder": decoder_to_json(tokenizer.decoder),
    }


def model_options(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the model without entries and merges."""
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
    """Yield the document in pieces, with entries and merges as the core writes them.

    root: ends with the `STAND_INS` of its model.
    keys: (ID, key) of the special tokens to write into model.vocab, by ascending ID.
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
                f"ignore_merges would give the same ID (got {shown(text)}). Save the tokenizer in another format."
            )


def text_keys(tokenizer: Tokenizer) -> list[tuple[int, str]]:
    """Return (ID, text) of the added tokens to write into model.vocab if characters may be unknown, by ascending ID.

    Readers expect added tokens in model.vocab, where each key is also an entry. There, an added token of one character
    (or with ignore_merges, of one pretoken) would change the IDs of equal text that is not an added token. Readers
    number added tokens outside model.vocab after the last entry.

    Raise BadTokenizer if a token that must not be in model.vocab has another ID than readers give it.
    """
    rules = tokenizer.text_rules
    assert rules is not None
    encoder = tokenizer.core_encoder
    keys = sorted((id_, text) for text, id_ in tokenizer.special_tokens.items())
    new = [each for each in keys if encoder.entry(each[0]) is None]
    entries = len(encoder) + len(tokenizer.parts.vocabulary.decoded_only)
    must = None
    for each in new:
        entry = to_bytes(each[1]) if rules.byte_level else each[1].encode()
        if entry is not None and rules.begins(entry):
            must = each
            break
    may = new if tokenizer.ignore_merges else [must] if must else []
    for first, text in may:
        if text != rules.unk_token and _is_counted_to(first, new, entries):
            return [each for each in keys if each not in new or each[0] < first]
        if (first, text) == must:
            raise BadTokenizer(
                f"added token {shown(text)}: cannot keep ID {first} in tokenizer.json, as it would become an entry of "
                "model.vocab. Save the tokenizer in another format."
            )
    return keys


def _is_counted_to(first: int, new: list[tuple[int, str]], entries: int) -> bool:
    """Return whether the tokens from this ID on have the IDs after all others. new: by ascending ID."""
    ids = [id_ for id_, _ in new if id_ >= first]
    return ids == list(range(entries + len(new) - len(ids), entries + len(new)))
