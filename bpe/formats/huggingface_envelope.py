"""What a tokenizer.json says around its entries and merges: added tokens, pipeline, options of the model.

Every component is honoured or refused by its JSON path, never ignored. Which ids the added tokens have depends on the
entries, so the reader of these (`huggingface`) hands in a `Model`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Protocol

from bpe.added_tokens import AddedToken
from bpe.decoders import Decoder
from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats.byte_alphabet import other_text, to_bytes
from bpe.formats.faults import must_be, unsupported
from bpe.formats.huggingface_decoder import decoder_from_json
from bpe.formats.huggingface_normalizer import normalizer_from_json
from bpe.formats.huggingface_postprocessor import (
    padding_from_json,
    post_processor_from_json,
    truncation_from_json,
)
from bpe.formats.huggingface_pretokenizer import (
    components_from_json,
    is_byte_level,
    pretokenizer_from_json,
)
from bpe.formats.json_input import expect, expect_list, expect_object
from bpe.normalizers import ByteLevel, Normalizer
from bpe.post_processing import PostProcessor
from bpe.pretokenizer import Pretokenizer
from bpe.text_growth import check_growth
from bpe.vocabulary import TextRules

TOP_LEVEL: Final = {
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
MODEL: Final = {
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


class Model(Protocol):
    """What must be known of model.vocab and model.merges to say which ids the added tokens have."""

    def __len__(self) -> int: ...
    def id_of(self, key: str) -> int | None:
        """The id of a key of model.vocab."""

    def has_id(self, id_: int) -> bool:
        """Whether a key has this id."""

    def merges_use(self, entry: bytes) -> bool:
        """Whether a merge joins or makes the entry."""


class Envelope(NamedTuple):
    """A tokenizer.json without the entries and the merges: what `Parts` takes behind the vocabulary."""

    pretokenizer: Pretokenizer
    normalizer: Normalizer | None
    added_tokens: tuple[AddedToken, ...]
    post_processor: PostProcessor | None
    truncation: dict[str, Any] | None
    padding: dict[str, Any] | None
    decoder: Decoder | None

    @property
    def special_tokens(self) -> dict[str, int]:
        """text -> id of the added tokens."""
        return {token.text: token.id for token in self.added_tokens}


def read_envelope(root: dict[str, Any], model: Model, text_rules: TextRules | None) -> Envelope:
    """What the document says around the entries and the merges; errors name the JSON path."""
    as_text = TextRules.of_text(text_rules)
    ignore_merges = root["model"].get("ignore_merges", False)
    added = _added_tokens(root.get("added_tokens") or [], model, ignore_merges, as_text)
    normalizer = normalizer_from_json(root.get("normalizer"), "normalizer")
    pretokenizer = pretokenizer_from_json(root.get("pre_tokenizer"), as_text)
    check_growth((*(normalizer.components if normalizer is not None else ()), *pretokenizer.components))
    if pretokenizer.asks_for_input and normalizer is not None and normalizer.may_remove_first:
        raise UnsupportedTokenizer(
            f"pre_tokenizer: Metaspace with prepend_scheme 'first' is not supported after {normalizer}, which may "
            "remove the first characters of an input"
        )
    return Envelope(
        pretokenizer,
        normalizer,
        tuple(sorted(added, key=lambda token: token.id)),
        post_processor_from_json(root.get("post_processor"), {token.text: token.id for token in added}),
        truncation_from_json(root.get("truncation")),
        padding_from_json(root.get("padding")),
        decoder_from_json(root.get("decoder"), as_text),
    )


def check_root(value: Any) -> dict[str, Any]:
    """The document, if it and its model have the form that can be honoured but for what `read_envelope` checks."""
    if isinstance(value, dict) and "model" not in value:
        raise BadTokenizer("model: missing. Pass a tokenizer.json of Hugging Face tokenizers.")
    root = expect_object(value, "tokenizer.json", TOP_LEVEL)
    expect(root.get("version", "1.0"), ["1.0"], "version")
    _check_model(root["model"])
    return root


def _check_model(value: Any) -> None:
    if isinstance(value, dict):
        # Files from before 2020, GPT-2's among them, do not name the type.
        expect(value.get("type", "BPE"), ["BPE"], "model.type")
    model = expect_object(value, "model", MODEL)
    for name in ("vocab", "merges"):
        if name not in model:
            raise BadTokenizer(f"model.{name}: missing")
    expect(model.get("dropout"), [None, 0, 0.0], "model.dropout", "IDs would be random")
    for name in ("byte_fallback", "ignore_merges", "fuse_unk"):
        expect(model.get(name, False), [False, True], f"model.{name}")
    for name in ("continuing_subword_prefix", "end_of_word_suffix", "unk_token"):
        if not isinstance(model.get(name), (str, type(None))):
            raise must_be(f"model.{name}", "a text or null", model[name])


def text_rules_of(root: dict[str, Any]) -> TextRules | None:
    """How the entries are read; None if they are bytes in the byte alphabet and nothing else."""
    model = root["model"]
    components = [component for component, _ in components_from_json(root.get("pre_tokenizer"))]
    normalizer = normalizer_from_json(root.get("normalizer"), "normalizer")
    byte_level = is_byte_level(components) or (
        normalizer is not None and ByteLevel() in normalizer.components
    )
    prefix, suffix = model.get("continuing_subword_prefix") or "", model.get("end_of_word_suffix") or ""
    if byte_level and not prefix and not suffix:
        return None  # unless bytes are missing, which the reader of the entries finds out
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
    """The added tokens in the order of the file, with the ids that readers give them."""
    tokens: dict[str, AddedToken] = {}
    next_id = len(model)
    for index, item in enumerate(expect_list(value, "added_tokens")):
        where = f"added_tokens[{index}]"
        token = expect_object(item, where, _ADDED_TOKEN)
        text, id_ = token.get("content"), token.get("id")
        if not isinstance(text, str) or not text:
            raise must_be(f"{where}.content", "a non-empty text", text)
        flags = {name: token.get(name, False) for name in ("special", "lstrip", "rstrip", "single_word")}
        flags["normalized"] = token.get("normalized", not flags["special"])
        for name, flag in flags.items():
            expect(flag, [False, True], f"{where}.{name}")
        if text in tokens:
            raise BadTokenizer(f"{where}.content: duplicate (got {shown(text)})")
        # As tokenizers numbers them: the entry's id, else the next one.
        expected = model.id_of(text)
        if expected is None:
            expected = next_id
            next_id += 1
            if model.has_id(expected):
                raise BadTokenizer(
                    f"{where}: must be in model.vocab, since its IDs have gaps (got {shown(text)})"
                )
        elif not as_text and (used_by := _who_takes_it_for_an_entry(text, model, ignore_merges)):
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


def _who_takes_it_for_an_entry(text: str, model: Model, ignore_merges: bool) -> str | None:
    """Who gives other text the id of a key, as an entry in the byte alphabet: "é" is the byte 0xe9, "Ġa" is " a"."""
    entry = to_bytes(text)
    if entry is None or entry == text.encode():
        return None
    if ignore_merges and other_text(text):
        return "ignore_merges emits"
    return "merges use" if len(entry) == 1 or model.merges_use(entry) else None
