"""tokenizer.json's decoder. ByteLevel is supported; all others are refused by their path."""

from __future__ import annotations

from typing import Any, Final

from bpe.errors import UnsupportedTokenizer, printable
from bpe.formats.json_input import component_type, expect_object, flat_sequence

_BYTE_LEVEL: Final = {"type", "add_prefix_space", "trim_offsets", "use_regex"}


def require_byte_level_decoder(value: Any) -> None:
    """Nothing, or UnsupportedTokenizer: ids are decoded by the byte alphabet, as ByteLevel does."""
    components = flat_sequence(value, "decoder", "decoders")
    if len(components) != 1 or component_type(*components[0]) != "ByteLevel":
        found = ", ".join(component_type(*each) for each in components) or "none"
        raise UnsupportedTokenizer(f"decoder is {printable(found[:200])}; supported: ByteLevel")
    expect_object(components[0][0], components[0][1], _BYTE_LEVEL)
