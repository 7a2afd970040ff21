"""From ids to text, by the tokenizer.json that lies beside a dataset: for looking at it, not for work.

Only the vocabulary is read. A byte-level entry writes each byte as a printable character: those of Latin-1
that print stand for themselves, the 68 others follow from U+0100 on in ascending order. Added tokens are
plain text.
"""

from __future__ import annotations

from typing import Any

from flat_tokens.errors import DatasetError, printable
from flat_tokens.storage.places import Place, read_whole
from flat_tokens.storage.zarr_metadata import parse_json

LARGEST_TOKENIZER_BYTES = 2**27  # four times that of 262,144 entries


def _byte_of_char() -> dict[str, int]:
    stand_alone = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(stand_alone)]
    return {chr(byte): byte for byte in stand_alone} | {chr(256 + i): byte for i, byte in enumerate(others)}


def load_entries(path: Place) -> dict[int, bytes]:
    """Id -> bytes of every entry of a tokenizer.json. DatasetError if it is not of that form."""
    data = read_whole(path, LARGEST_TOKENIZER_BYTES, follow_link=True)
    value = parse_json(data, path, "give a tokenizer.json by --tokenizer")
    byte_of_char = _byte_of_char()
    try:
        vocabulary: dict[str, Any] = value["model"]["vocab"]
        entries = {int(id_): _bytes_of(text, byte_of_char) for text, id_ in vocabulary.items()}
        for added in value.get("added_tokens") or []:
            entries[int(added["id"])] = added["content"].encode()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DatasetError(
            f"{printable(str(path))}: no byte-level tokenizer.json ({printable(str(error), 80)}); "
            "give --tokenizer"
        ) from None
    return entries


def _bytes_of(text: str, byte_of_char: dict[str, int]) -> bytes:
    try:
        return bytes([byte_of_char[char] for char in text])
    except KeyError:
        return text.encode()  # an entry that is no byte-level text, such as a special token in the vocabulary


def decode(ids: list[int], entries: dict[int, bytes]) -> str:
    """The text of some ids; bytes that are no UTF-8 become U+FFFD, unknown ids `<id>`."""
    return b"".join(entries.get(id_, f"<{id_}>".encode()) for id_ in ids).decode("utf-8", "replace")


def load_special_ids(path: Place) -> frozenset[int]:
    """The ids of a tokenizer.json's special tokens; empty if it names none."""
    data = read_whole(path, LARGEST_TOKENIZER_BYTES, follow_link=True)
    value = parse_json(data, path, "give a tokenizer.json by --tokenizer")
    added = value.get("added_tokens") if isinstance(value, dict) else None
    return frozenset(
        token["id"]
        for token in (added if isinstance(added, list) else [])
        if isinstance(token, dict) and token.get("special") and type(token.get("id")) is int
    )
