"""Reader and writer of the decoder of a tokenizer.json."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

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
from bpe.formats.huggingface_normalizer import replace_from_json, replace_to_json
from bpe.formats.huggingface_pretokenizer import metaspace_from_json
from bpe.formats.json_input import (
    expect_integer,
    expect_object,
    expect_text,
    flag_field,
    flat_sequence,
    sequence_of,
)

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
    match item["type"]:
        case "ByteLevel":
            expect_object(item, path, {"type", *_BYTE_LEVEL})
            return ByteLevel(**{name: flag_field(item, name, path, True) for name in _BYTE_LEVEL})
        case "ByteFallback":
            expect_object(item, path, {"type"})
            return ByteFallback()
        case "Fuse":
            expect_object(item, path, {"type"})
            return Fuse()
        case "Strip":
            expect_object(item, path, {"type", "content", "start", "stop"})
            start, stop = (expect_integer(item.get(name), f"{path}.{name}") for name in ("start", "stop"))
            return Strip(expect_text(item.get("content"), f"{path}.content", size=1), start, stop)
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


def decoder_to_json(decoder: Decoder | None) -> dict[str, Any] | None:
    """Return the decoder in tokenizer.json's form. None is the decoder of a byte-level vocabulary."""
    if decoder is None:
        decoder = Decoder((ByteLevel(add_prefix_space=False),))
    return sequence_of([_to_json(each) for each in decoder.components], "decoders")


def _to_json(component: Component) -> dict[str, Any]:
    if isinstance(component, Replace):
        return replace_to_json(component)
    name = type(component).__name__
    return {"type": name} | {each.name: getattr(component, each.name) for each in fields(component)}
