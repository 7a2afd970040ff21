"""tokenizer.json's normalizer and decoder. NFC and ByteLevel are supported; all others are refused by their path."""

from __future__ import annotations

from typing import Any, Final, Literal

from bpe.errors import UnsupportedTokenizer, printable, shown
from bpe.formats.json_input import component_type, expect_object, flat_sequence

_BYTE_LEVEL: Final = {"type", "add_prefix_space", "trim_offsets", "use_regex"}


def normalizer_from_json(value: Any, path: str) -> Literal["NFC"] | None:
    """ "NFC" or None; null, NFC and sequences of NFC are supported."""
    found: Literal["NFC"] | None = None
    for component, where in flat_sequence(value, path, "normalizers"):
        if component_type(component, where) != "NFC":
            raise UnsupportedTokenizer(f"{where} is {shown(component['type'])}; supported: NFC or none")
        expect_object(component, where, {"type"})
        found = "NFC"
    return found


def normalizer_to_json(normalizer: Literal["NFC"] | None) -> dict[str, Any] | None:
    """The normalizer as tokenizer.json has it."""
    return None if normalizer is None else {"type": normalizer}


def require_byte_level_decoder(value: Any) -> None:
    """Nothing, or UnsupportedTokenizer: ids are decoded by the byte alphabet, as ByteLevel does."""
    components = flat_sequence(value, "decoder", "decoders")
    if len(components) != 1 or component_type(*components[0]) != "ByteLevel":
        found = ", ".join(component_type(*each) for each in components) or "none"
        raise UnsupportedTokenizer(f"decoder is {printable(found[:200])}; supported: ByteLevel")
    expect_object(components[0][0], components[0][1], _BYTE_LEVEL)
