"""What a tokenizer.json says around its entries and merges: added tokens, pipeline, options of the model.

Every component is honoured or refused by its JSON path, never ignored. Which ids the added tokens have depends on the
entries, so the two readers of these (`huggingface`, `bulk`) hand in a `Model`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Protocol

from bpe.core_vocabulary import CoreVocabulary
from bpe.description import Parts
from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats.byte_alphabet import other_text, to_bytes
from bpe.formats.huggingface_normalizer import normalizer_from_json
from bpe.formats.huggingface_pipeline import (
    pretokenizer_from_json,
    require_byte_level_decoder,
    template_from_json,
)
from bpe.formats.json_input import expect, expect_list, expect_object
from bpe.formats.overlapping_texts import first_overlap
from bpe.normalizers import Normalizer
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import Vocabulary

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


class Model(Protocol):
    """What must be known of model.vocab and model.merges to say which ids the added tokens have."""

    def __len__(self) -> int: ...
    def id_of(self, key: str) -> int | None:
        """The id of a key of model.vocab."""

    def has_id(self, id_: int) -> bool:
        """Whether a key has this id."""

    def merges_use(self, entry: bytes) -> bool:
        """Whether a merge joins or makes the entry."""


class Around(NamedTuple):
    """A tokenizer.json without the entries and the merges."""

    special_tokens: dict[str, int]
    plain_added_tokens: frozenset[str]
    normalizer: Normalizer | None
    pretokenizer: Pretokenizer
    whole_pretokens: bool
    template: dict[str, Any] | None

    def parts(self, vocabulary: Vocabulary | CoreVocabulary) -> Parts:
        """The tokenizer, with its entries and merges."""
        return Parts(vocabulary, self.pretokenizer, self.normalizer, self.plain_added_tokens, self.template)


def read_around(root: dict[str, Any], model: Model) -> Around:
    """What the document says around the entries and the merges; errors name the JSON path."""
    whole_pretokens = root["model"].get("ignore_merges", False)
    special_tokens, plain = _added_tokens(root.get("added_tokens") or [], model, whole_pretokens)
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
        whole_pretokens,
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


def _added_tokens(value: Any, model: Model, whole_pretokens: bool) -> tuple[dict[str, int], set[str]]:
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
        elif used_by := _who_takes_it_for_an_entry(text, model, whole_pretokens):
            raise BadTokenizer(
                f"{where}.content {shown(text)} is also how the byte alphabet spells an entry that {used_by}, so "
                f"id {expected} would be two texts; give the token an id of its own"
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


def _who_takes_it_for_an_entry(text: str, model: Model, whole_pretokens: bool) -> str | None:
    """Who gives other text the id of a key, as an entry in the byte alphabet: "é" is the byte 0xe9, "Ġa" is " a"."""
    entry = to_bytes(text)
    if entry is None or entry == text.encode():
        return None
    if whole_pretokens and other_text(text):
        return "ignore_merges gives"
    return "merges use" if len(entry) == 1 or model.merges_use(entry) else None


def _check_normalized_flags(added_tokens: list[dict[str, Any]], normalizer: Normalizer | None) -> None:
    """Nothing, or UnsupportedTokenizer where `normalized` would decide which token is found.

    Tokens with `normalized: true` are looked for after the others, in the normalized text between them.
    """
    late = [
        token["content"] for token in added_tokens if token.get("normalized", not token.get("special", False))
    ]
    are_late = set(late)
    early = [token["content"] for token in added_tokens if token["content"] not in are_late]
    if late and normalizer is not None:
        raise UnsupportedTokenizer(
            f"added_tokens: {shown(late[0])} has normalized: true beside a normalizer; supported: normalized: false"
        )
    if overlap := first_overlap(late, early):
        raise UnsupportedTokenizer(
            f"added_tokens: {shown(overlap[0])} and {shown(overlap[1])} can overlap and differ in normalized; "
            "supported: the same value for both"
        )
