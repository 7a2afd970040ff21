"""GPT-2's byte alphabet: a printable character for each byte, so that entries can stand in JSON and text files.

The 188 printable Latin-1 characters stand for themselves, the other 68 bytes for U+0100 and up in their order:
b" the\\n" is "ĠtheĊ". The mapping is one to one (tests/bpe/test_byte_alphabet.py).
"""

from __future__ import annotations

from typing import Final

_PRINTABLE: Final = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS: Final = [byte for byte in range(256) if byte not in _PRINTABLE]

BYTE_TO_CHARACTER: Final[dict[int, str]] = {
    byte: chr(byte) if byte in _PRINTABLE else chr(0x100 + _OTHERS.index(byte)) for byte in range(256)
}
_TO_CHARACTER: Final = str.maketrans({chr(byte): character for byte, character in BYTE_TO_CHARACTER.items()})
# Latin-1 characters outside the alphabet go where encoding to Latin-1 fails, as characters past the alphabet do.
_TO_BYTE: Final = str.maketrans(
    {chr(byte): "\uffff" for byte in _OTHERS}
    | {character: chr(byte) for byte, character in BYTE_TO_CHARACTER.items()}
)


def to_characters(entry: bytes) -> str:
    """The entry's characters: b" a" -> "Ġa"."""
    return entry.decode("latin-1").translate(_TO_CHARACTER)


def to_bytes(characters: str) -> bytes | None:
    """The entry's bytes, or None if a character is not in the alphabet: "Ġa" -> b" a", "a b" -> None."""
    try:
        return characters.translate(_TO_BYTE).encode("latin-1")
    except UnicodeEncodeError:
        return None


def other_text(characters: str) -> bytes | None:
    """The entry that the characters spell, if it is a text and not their own: "Ġa" -> b" a"; "a", "日" -> None.

    "<é>" -> None: it spells b"<\\xe9>", and no pretoken is half of a character.
    """
    entry = to_bytes(characters)
    if entry is None or entry == characters.encode():
        return None
    try:
        entry.decode()
    except UnicodeDecodeError:
        return None
    return entry
