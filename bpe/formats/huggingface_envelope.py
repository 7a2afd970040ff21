"""Reader of a tokenizer.json without its entries and merges: added tokens, pipeline, options of the model.

Every component is executed or rejected with its JSON path, never ignored. The IDs of the added tokens depend on the
entries, which a `Model` knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from bpe import _core, normalizers
from bpe.added_tokens import AddedToken
from bpe.decoders import Decoder
from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats.byte_alphabet import other_text, to_bytes
from bpe.formats.faults import unsupported
from bpe.formats.huggingface_components import (
    components_from_json,
    decoder_from_json,
    is_byte_level,
    normalizer_from_json,
    pretokenizer_from_json,
)
from bpe.formats.huggingface_postprocessor import (
    padding_from_json,
    post_processor_from_json,
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
    one_of,
    optional,
    read_fields,
)
from bpe.normalizers import Normalizer
from bpe.post_processing import PostProcessor
from bpe.pretokenization import components
from bpe.pretokenizer import Pretokenizer
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
    "single_word": _OFF,
    "lstrip": _OFF,
    "rstrip": _OFF,
    "special": _OFF,
}


class Model:
    """The facts about model.vocab and model.merges that decide the IDs of the added tokens.

    file: entries and merges. root: the document without them. text_rules: see `text_rules_of`.
    """

    def __init__(self, file: _core.EntryFile, root: dict[str, Any], text_rules: TextRules | None) -> None:
        items = root.get("added_tokens")
        items = items if isinstance(items, list) else []
        contents = [item.get("content") for item in items if isinstance(item, dict)]
        keys = [key for key in (*contents, root["model"].get("unk_token")) if isinstance(key, str)]
        as_text = TextRules.of_text(text_rules)
        entries = [key.encode() if as_text else to_bytes(key) or b"" for key in keys]
        prefix = "" if text_rules is None else text_rules.continuing_subword_prefix
        self._file, self._max_id = file, file.max_id
        self._ids = file.texts | {
            key: id_ for key, id_ in zip(keys, file.find(entries), strict=True) if id_ is not None
        }
        self._in_merges = frozenset(file.used_by_merges(entries, len(prefix.encode())))

    def __len__(self) -> int:
        return len(self._file)

    def id_of(self, key: str) -> int | None:
        """Return the ID of a key of model.vocab, of an added token or the unknown token."""
        return self._ids.get(key)

    def has_id(self, id_: int) -> bool:
        """Return whether a key has this ID."""
        return id_ <= self._max_id and self._file.has_id(id_)

    def merges_use(self, entry: bytes) -> bool:
        """Return whether a merge joins or produces the entry."""
        return entry in self._in_merges


class Envelope(NamedTuple):
    """The components of a tokenizer.json, in the order in which `Parts` takes them after the vocabulary."""

    pretokenizer: Pretokenizer
    normalizer: Normalizer | None
    added_tokens: tuple[AddedToken, ...]
    post_processor: PostProcessor | None
    truncation: dict[str, Any] | None
    padding: dict[str, Any] | None
    decoder: Decoder | None

    @property
    def special_tokens(self) -> dict[str, int]:
        """The IDs of the added tokens by text."""
        return {token.text: token.id for token in self.added_tokens}


def read_envelope(root: dict[str, Any], model: Model, text_rules: TextRules | None) -> Envelope:
    """Read the components of a document. Errors name the JSON path."""
    as_text = TextRules.of_text(text_rules)
    ignore_merges = root["model"].get("ignore_merges", False)
    added = _added_tokens(root.get("added_tokens"), model, ignore_merges, as_text)
    normalizer = normalizer_from_json(root.get("normalizer"), "normalizer")
    pretokenizer = pretokenizer_from_json(root.get("pre_tokenizer"), as_text)
    _check_growth((*(normalizer.components if normalizer is not None else ()), *pretokenizer.components))
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
    """Check the fields and model options of a document, and return it. `read_envelope` checks the components."""
    if isinstance(value, dict) and "model" not in value:
        raise BadTokenizer("model: missing. Pass a tokenizer.json of Hugging Face tokenizers.")
    root = expect_object(value, "tokenizer.json", TOP_LEVEL)
    expect(root.get("version", "1.0"), ["1.0"], "version")
    _check_model(root["model"])
    return root


def _check_model(value: Any) -> None:
    if isinstance(value, dict):
        # Files from before 2020, such as GPT-2's, have no type.
        expect(value.get("type", "BPE"), ["BPE"], "model.type")
    read_fields(value, "model", MODEL)
    for name in ("vocab", "merges"):
        if name not in value:
            raise BadTokenizer(f"model.{name}: missing")


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
    next_id = len(model)
    for index, item in enumerate([] if value is None else expect_list(value, "added_tokens")):
        where = f"added_tokens[{index}]"
        special = isinstance(item, dict) and item.get("special") is True
        flags = read_fields(item, where, {**_ADDED_TOKEN, "normalized": (FLAG, not special)})
        text, id_ = flags.pop("content"), flags.pop("id")
        if text in tokens:
            raise BadTokenizer(f"{where}.content: duplicate (got {shown(text)})")
        # Hugging Face tokenizers uses the ID of the entry, or the next unused one.
        expected = model.id_of(text)
        if expected is None:
            expected = next_id
            next_id += 1
            if model.has_id(expected):
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
    return "merges use" if len(entry) == 1 or model.merges_use(entry) else None


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
