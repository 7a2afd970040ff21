"""Reader and writer of the normalizer of a tokenizer.json: all components of Hugging Face tokenizers."""

from __future__ import annotations

import base64
from typing import Any, Final, get_args

from bpe.errors import BadTokenizer
from bpe.formats.faults import unsupported, within
from bpe.formats.json_input import (
    expect,
    expect_object,
    expect_text,
    flag_field,
    flat_sequence,
    pattern_field,
    sequence_of,
)
from bpe.normalizers import (
    Bert,
    ByteLevel,
    Charsmap,
    Component,
    DummyPrefix,
    Form,
    FormName,
    Lowercase,
    Nmt,
    Normalizer,
    Precompiled,
    Prepend,
    Replace,
    Strip,
    StripAccents,
)

_WITHOUT_FIELDS: Final[dict[str, Component]] = {
    **{name: Form(name) for name in get_args(FormName)},
    "Lowercase": Lowercase(),
    "StripAccents": StripAccents(),
    "Nmt": Nmt(),
    "ByteLevel": ByteLevel(),
}
# Fields of the other components. Hugging Face tokenizers does not read files with the SentencePiece components.
_FIELDS: Final = {
    "Strip": ("strip_left", "strip_right"),
    "Prepend": ("prepend",),
    "SentencePiecePrefix": ("prefix",),
    "Replace": ("pattern", "content"),
    "Precompiled": ("precompiled_charsmap",),
    "SentencePieceCharsmap": ("precompiled_charsmap",),
    "BertNormalizer": ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"),
}


def normalizer_from_json(value: Any, path: str = "normalizer") -> Normalizer | None:
    """Read a normalizer. Nested sequences become one; null and empty sequences are None."""
    components = tuple(_component(item, where) for item, where in flat_sequence(value, path, "normalizers"))
    return Normalizer(components) if components else None


def _component(item: dict[str, Any], path: str) -> Component:
    name = item["type"]
    if name not in _FIELDS and name not in _WITHOUT_FIELDS:
        known = [*_WITHOUT_FIELDS, *(name for name in _FIELDS if not name.startswith("Sentence")), "Sequence"]
        raise unsupported(path, name, ", ".join(known))
    expect_object(item, path, {"type", *_FIELDS.get(name, ())})

    def text(key: str) -> str:
        return expect_text(item.get(key), f"{path}.{key}")

    match name:
        case "Strip":
            return Strip(flag_field(item, "strip_left", path), flag_field(item, "strip_right", path))
        case "Prepend":
            return Prepend(text("prepend"))
        case "SentencePiecePrefix":
            return DummyPrefix(text("prefix"))
        case "Replace":
            return replace_from_json(item, path)
        case "Precompiled" | "SentencePieceCharsmap":
            encoded = text("precompiled_charsmap")
            try:
                precompiled = Precompiled(base64.b64decode(encoded, validate=True))
            except ValueError as error:
                where = f"{path}.precompiled_charsmap"
                raise BadTokenizer(f"{where}: not a SentencePiece charsmap in base64 ({error})") from None
            return precompiled if name == "Precompiled" else Charsmap(precompiled.charsmap)
        case "BertNormalizer":
            return Bert(
                flag_field(item, "clean_text", path),
                flag_field(item, "handle_chinese_chars", path),
                expect(item.get("strip_accents"), [None, False, True], f"{path}.strip_accents"),
                flag_field(item, "lowercase", path),
            )
    return _WITHOUT_FIELDS[name]


def replace_from_json(item: dict[str, Any], path: str) -> Replace:
    """Read a Replace of a normalizer or a decoder."""
    expect_object(item, path, {"type", "pattern", "content"})
    pattern, is_expression = pattern_field(item, path)
    made = Replace(pattern, expect_text(item.get("content"), f"{path}.content"), is_expression)
    with within(f"{path}.pattern.{'Regex' if is_expression else 'String'}"):
        made.check()
    return made


def normalizer_to_json(normalizer: Normalizer | None) -> dict[str, Any] | None:
    """Return the normalizer in tokenizer.json's form; several components are a Sequence."""
    components = () if normalizer is None else normalizer.components
    return sequence_of([_to_json(each) for each in components], "normalizers")


def _to_json(component: Component) -> dict[str, Any]:
    match component:
        case Form(name):
            return {"type": name}
        case Strip(left, right):
            return {"type": "Strip", "strip_left": left, "strip_right": right}
        case DummyPrefix(text):
            return {"type": "SentencePiecePrefix", "prefix": text}
        case Prepend(text):
            return {"type": "Prepend", "prepend": text}
        case Replace():
            return replace_to_json(component)
        case Precompiled() | Charsmap():
            kind = "SentencePieceCharsmap" if isinstance(component, Charsmap) else "Precompiled"
            return {"type": kind, "precompiled_charsmap": base64.b64encode(component.charsmap).decode()}
        case Bert():
            fields = {name: getattr(component, name) for name in _FIELDS["BertNormalizer"]}
            return {"type": "BertNormalizer"} | fields
    return {"type": type(component).__name__}


def replace_to_json(component: Any) -> dict[str, Any]:
    """Return a Replace of a normalizer or a decoder in tokenizer.json's form."""
    kind = "Regex" if component.is_expression else "String"
    return {"type": "Replace", "pattern": {kind: component.pattern}, "content": component.content}
