"""The normalizer of a tokenizer.json: all that Hugging Face tokenizers has, with JSON paths for what is not sound."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, get_args

from bpe.errors import BadTokenizer, UnsupportedTokenizer
from bpe.formats.faults import PATTERN_FORM, must_be, unsupported
from bpe.formats.json_input import component_type, expect, expect_list, expect_object
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
_BERT: Final = {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}
_MAX_DEPTH: Final = 100  # of sequences in sequences


def normalizer_from_json(value: Any, path: str = "normalizer") -> Normalizer | None:
    """What is done to the text first; None for nothing. Sequences become one."""
    components = tuple(_components(value, path)) if value is not None else ()
    return Normalizer(components) if components else None


def _components(value: Any, path: str, depth: int = 0) -> list[Component]:
    if component_type(value, path) != "Sequence":
        return [_component(value, path)]
    if depth > _MAX_DEPTH:
        raise UnsupportedTokenizer(f"{path}: sequences are nested more than {_MAX_DEPTH} deep")
    expect_object(value, path, {"type", "normalizers"})
    return [
        component
        for index, each in enumerate(expect_list(value.get("normalizers"), f"{path}.normalizers"))
        for component in _components(each, f"{path}.normalizers[{index}]", depth + 1)
    ]


def _component(value: dict[str, Any], path: str) -> Component:
    name = value["type"]
    if known := _WITHOUT_FIELDS.get(name):
        expect_object(value, path, {"type"})
        return known
    if name == "Strip":
        expect_object(value, path, {"type", "strip_left", "strip_right"})
        return Strip(_flag(value, "strip_left", path), _flag(value, "strip_right", path))
    if name == "Prepend":
        expect_object(value, path, {"type", "prepend"})
        return Prepend(_text(value, "prepend", path))
    if name == "SentencePiecePrefix":  # of this package alone: tokenizers refuses the file
        expect_object(value, path, {"type", "prefix"})
        return DummyPrefix(_text(value, "prefix", path))
    if name == "Replace":
        return replace_from_json(value, path)
    if name == "Precompiled":
        expect_object(value, path, {"type", "precompiled_charsmap"})
        return _precompiled(_text(value, "precompiled_charsmap", path), f"{path}.precompiled_charsmap")
    if name == "SentencePieceCharsmap":  # of this package alone: tokenizers refuses the file
        expect_object(value, path, {"type", "precompiled_charsmap"})
        text = _text(value, "precompiled_charsmap", path)
        return Charsmap(_precompiled(text, f"{path}.precompiled_charsmap").charsmap)
    if name == "BertNormalizer":
        expect_object(value, path, {"type", *_BERT})
        expect(value.get("strip_accents"), [None, False, True], f"{path}.strip_accents")
        return Bert(
            _flag(value, "clean_text", path),
            _flag(value, "handle_chinese_chars", path),
            value.get("strip_accents"),
            _flag(value, "lowercase", path),
        )
    supported = ", ".join(
        [*_WITHOUT_FIELDS, "Strip", "Prepend", "Replace", "Precompiled", "BertNormalizer", "Sequence"]
    )
    raise unsupported(path, name, supported)


def replace_from_json(value: dict[str, Any], path: str) -> Replace:
    """A Replace, of a normalizer or a decoder."""
    expect_object(value, path, {"type", "pattern", "content"})
    pattern = value.get("pattern")
    if not isinstance(pattern, dict) or list(pattern) not in (["Regex"], ["String"]):
        raise must_be(f"{path}.pattern", PATTERN_FORM, pattern)
    ((kind, text),) = pattern.items()
    if not isinstance(text, str):
        raise must_be(f"{path}.pattern.{kind}", "a text", text)
    made = Replace(text, _text(value, "content", path), is_expression=kind == "Regex")
    try:
        made.check()
    except UnsupportedTokenizer as error:
        raise UnsupportedTokenizer(f"{path}.pattern.{kind}: {error}") from None
    except BadTokenizer as error:
        raise BadTokenizer(f"{path}.pattern.{kind}: {error}") from None
    return made


def _precompiled(text: str, path: str) -> Precompiled:
    try:
        return Precompiled(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise BadTokenizer(f"{path}: not a SentencePiece charsmap in base64 ({error})") from None


def _flag(value: dict[str, Any], key: str, path: str) -> bool:
    expect(value.get(key), [False, True], f"{path}.{key}")
    flag: bool = value[key]
    return flag


def _text(value: dict[str, Any], key: str, path: str) -> str:
    if not isinstance(value.get(key), str):
        raise must_be(f"{path}.{key}", "a text", value.get(key))
    text: str = value[key]
    return text


def normalizer_to_json(normalizer: Normalizer | None) -> dict[str, Any] | None:
    """The normalizer as tokenizer.json has it; several components are a Sequence."""
    if normalizer is None:
        return None
    values = [_to_json(each) for each in normalizer.components]
    return values[0] if len(values) == 1 else {"type": "Sequence", "normalizers": values}


def _to_json(component: Component) -> dict[str, Any]:
    if isinstance(component, Form):
        return {"type": component.name}
    if isinstance(component, Strip):
        return {"type": "Strip", "strip_left": component.left, "strip_right": component.right}
    if isinstance(component, Prepend):
        if isinstance(component, DummyPrefix):
            return {"type": "SentencePiecePrefix", "prefix": component.text}
        return {"type": "Prepend", "prepend": component.text}
    if isinstance(component, Replace):
        kind = "Regex" if component.is_expression else "String"
        return {"type": "Replace", "pattern": {kind: component.pattern}, "content": component.content}
    if isinstance(component, Precompiled):
        return {
            "type": "SentencePieceCharsmap" if isinstance(component, Charsmap) else "Precompiled",
            "precompiled_charsmap": base64.b64encode(component.charsmap).decode(),
        }
    if isinstance(component, Bert):
        return {
            "type": "BertNormalizer",
            "clean_text": component.clean_text,
            "handle_chinese_chars": component.handle_chinese_chars,
            "strip_accents": component.strip_accents,
            "lowercase": component.lowercase,
        }
    return {"type": type(component).__name__}
