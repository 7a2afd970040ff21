"""tokenizer.json's decoder, both ways; each field is checked, others are refused by their path."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from bpe import decoders
from bpe.decoders import (
    BPEDecoder,
    ByteFallback,
    ByteLevel,
    Component,
    Decoder,
    Fuse,
    Metaspace,
    Replace,
    Strip,
)
from bpe.formats.faults import must_be, unsupported
from bpe.formats.huggingface_normalizer import replace_from_json
from bpe.formats.huggingface_pretokenizer import metaspace_from_json
from bpe.formats.json_input import component_type, expect, expect_object, flat_sequence

_BYTE_LEVEL: Final = ("add_prefix_space", "trim_offsets", "use_regex")
_NAMES: Final = "BPEDecoder, ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Strip, Sequence"


def decoder_from_json(value: Any, as_text: bool = True) -> Decoder | None:
    """Read a decoder; null joins the entries by spaces. as_text: whether entries are text, not bytes.

    Return None for ByteLevel alone in a byte-level vocabulary: then entries are decoded as the bytes they are.
    """
    items = flat_sequence(value, "decoder", "decoders")
    components = tuple(_component(item, path) for item, path in items)
    if not as_text and len(components) == 1 and isinstance(components[0], ByteLevel):
        return None
    return Decoder(components)


def _component(item: dict[str, Any], path: str) -> Component:
    match component_type(item, path):
        case "ByteLevel":
            expect_object(item, path, {"type", *_BYTE_LEVEL})
            return ByteLevel(**{name: _flag(item, name, path) for name in _BYTE_LEVEL})
        case "ByteFallback":
            expect_object(item, path, {"type"})
            return ByteFallback()
        case "Fuse":
            expect_object(item, path, {"type"})
            return Fuse()
        case "Strip":
            expect_object(item, path, {"type", "content", "start", "stop"})
            content = item.get("content")
            if not isinstance(content, str) or len(content) != 1:
                raise must_be(f"{path}.content", "one character", content)
            return Strip(content, _count(item, "start", path), _count(item, "stop", path))
        case "Replace":
            found = replace_from_json(item, path)
            return Replace(found.pattern, found.content, found.is_expression)
        case "Metaspace":
            metaspace = metaspace_from_json(item, path)
            return Metaspace(metaspace.replacement, metaspace.prepend_scheme, metaspace.split)
        case "BPEDecoder":
            expect_object(item, path, {"type", "suffix"})
            suffix = item.get("suffix", "</w>")
            if not isinstance(suffix, str) or not suffix:
                raise must_be(f"{path}.suffix", "a non-empty text", suffix)
            return BPEDecoder(suffix)
        case name:
            raise unsupported(path, name, _NAMES)


def _flag(item: dict[str, Any], name: str, path: str) -> bool:
    flag = item.get(name, True)
    expect(flag, [False, True], f"{path}.{name}")
    return bool(flag)


def _count(item: dict[str, Any], name: str, path: str) -> int:
    count = item.get(name)
    if type(count) is not int or count < 0:
        raise must_be(f"{path}.{name}", "an integer of at least 0", count)
    return count


def decoder_to_json(decoder: Decoder | None) -> dict[str, Any] | None:
    """The decoder as tokenizer.json has it; None for a byte-level vocabulary's."""
    if decoder is None:
        decoder = Decoder((ByteLevel(add_prefix_space=False),))
    items = [_to_json(each) for each in decoder.components]
    if len(items) < 2:
        return items[0] if items else None
    return {"type": "Sequence", "decoders": items}


def _to_json(component: Component) -> dict[str, Any]:
    name = type(component).__name__
    if isinstance(component, decoders.Replace):
        kind = "Regex" if component.is_expression else "String"
        return {"type": name, "pattern": {kind: component.pattern}, "content": component.content}
    return {"type": name} | {each.name: getattr(component, each.name) for each in fields(component)}
