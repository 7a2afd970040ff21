"""GPT-2's byte alphabet: a printable character per byte, for entries in JSON and text files.

The 188 printable Latin-1 characters represent their own byte. U+0100 and the following characters represent the other
68 bytes in order: b" the\\n" <-> "ĠtheĊ".
"""

from __future__ import annotations

from typing import Final

_PRINTABLE: Final = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS: Final = [byte for byte in range(256) if byte not in _PRINTABLE]
# In the order of their characters, as Hugging Face tokenizers numbers them.
BYTES_BY_CHARACTER: Final = (*_PRINTABLE, *_OTHERS)

BYTE_TO_CHARACTER: Final[dict[int, str]] = {
    byte: chr(byte) if byte in _PRINTABLE else chr(0x100 + _OTHERS.index(byte)) for byte in range(256)
}
_TO_CHARACTER: Final = str.maketrans({chr(byte): character for byte, character in BYTE_TO_CHARACTER.items()})
# Encoding to Latin-1 must fail for the Latin-1 characters that are not in the alphabet.
_TO_BYTE: Final = str.maketrans(
    {chr(byte): "\uffff" for byte in _OTHERS}
    | {character: chr(byte) for byte, character in BYTE_TO_CHARACTER.items()}
)


def to_characters(entry: bytes) -> str:
    """Return the characters that spell an entry: b" a" -> "Ġa"."""
    return entry.decode("latin-1").translate(_TO_CHARACTER)


def to_bytes(characters: str) -> bytes | None:
    """Return the entry that characters spell, or None if one is not in the alphabet: "Ġa" -> b" a", "a b" -> None."""
    try:
        return characters.translate(_TO_BYTE).encode("latin-1")
    except UnicodeEncodeError:
        return None


def other_text(characters: str) -> bytes | None:
    """Return the entry that characters spell, if it is another valid text: "Ġa" -> b" a"; "a", "日" -> None.

    "<é>" -> None, since it spells b"<\\xe9>", which is not UTF-8.
    """
    entry = to_bytes(characters)
    if entry is None or entry == characters.encode():
        return None
    try:
        entry.decode()
    except UnicodeDecodeError:
        return None
    return entry
