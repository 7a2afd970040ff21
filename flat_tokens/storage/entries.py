"""Token IDs to text, with the tokenizer.json of a dataset, for inspection.

Only the vocabulary and the type of the decoder are read. A byte-level entry writes each byte as a printable character:
the printable ones of Latin-1 as themselves, the 68 others from U+0100 in ascending order. An entry of SentencePiece's
kind is text with a mark for the space, and <0x0A> for a byte. Added tokens are plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from flat_tokens.errors import cause, damaged
from flat_tokens.storage.places import Place, read_whole
from flat_tokens.storage.zarr_metadata import parse_json

LARGEST_TOKENIZER_BYTES = 2**27  # four times the size of a file with 262,144 entries
SPACE_MARK = "\u2581"
_OTHER_FILE = "Pass another file as --tokenizer."


class Entries(dict[int, bytes]):
    """Id -> bytes. A decoder may change the ends of a document, as its flags say.

    strips_space: Strip drops one space at the start. strips_marks: Metaspace drops every space of the first entry.
    strips_end: BPEDecoder drops the space that it puts after the last word.
    special_ids: the IDs of special tokens.
    """

    strips_space = strips_marks = strips_end = False
    special_ids: frozenset[int] = frozenset()


_STAND_ALONE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _STAND_ALONE]
_BYTE_OF_CHAR = {chr(byte): byte for byte in _STAND_ALONE} | {
    chr(256 + i): byte for i, byte in enumerate(_OTHERS)
}


def load_entries(path: Place) -> Entries:
    """The bytes of every entry of a tokenizer.json. Raise DatasetError for another file."""
    value = parse_json(read_whole(path, LARGEST_TOKENIZER_BYTES, follow_link=True), path, _OTHER_FILE)
    try:
        vocabulary: dict[str, Any] = value["model"]["vocab"]
        decoders = list(_components(value.get("decoder")))
        kinds = {part.get("type") for part in decoders}
        entries = Entries()
        added = value.get("added_tokens") or []
        added_tokens = {token["content"]: token["id"] for token in added}
        entries.special_ids = frozenset(int(token["id"]) for token in added if token.get("special"))
        is_of_words = kinds == {"BPEDecoder"}
        if is_of_words or kinds & {"Metaspace", "ByteFallback"} or any(map(_replaces_mark, decoders)):
            suffixes = [part.get("suffix", "</w>") for part in decoders if part.get("type") == "BPEDecoder"]
            spaces = suffixes if is_of_words else [SPACE_MARK, *suffixes]
            for text, id_ in (vocabulary | added_tokens).items():
                entries[int(id_)] = _bytes_of_text(text, "ByteFallback" in kinds, spaces)
            for part in decoders:
                if part.get("type") == "Strip" and part.get("content") == " ":
                    entries.strips_space |= part.get("start", 0) > 0
                if part.get("type") == "Metaspace" and part.get("prepend_scheme", "always") != "never":
                    entries.strips_marks |= bool(part.get("add_prefix_space", True))
            entries.strips_end = bool(suffixes)
        else:
            for text, id_ in vocabulary.items():
                entries[int(id_)] = _bytes_of(text)
            for text, id_ in added_tokens.items():
                entries[int(id_)] = text.encode()
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise damaged(path, f"unsupported tokenizer.json ({cause(error)})", _OTHER_FILE) from None
    return entries


def _components(decoder: Any) -> Iterator[dict[str, Any]]:
    """The decoder, or the members of a sequence, in any order."""
    left = [] if decoder is None else [decoder]
    while left:
        part = left.pop()
        if part.get("type") == "Sequence":
            left += part["decoders"]
        else:
            yield part


def _replaces_mark(part: dict[str, Any]) -> bool:
    return part.get("type") == "Replace" and part.get("pattern") == {"String": SPACE_MARK}


def _bytes_of_text(text: str, has_bytes: bool, spaces: Iterable[str]) -> bytes:
    """The bytes of a text entry. spaces: the texts that become a space."""
    if has_bytes and re.fullmatch("<0x[0-9A-Fa-f]{2}>", text):
        return bytes([int(text[3:5], 16)])
    for space in spaces:
        text = text.replace(space, " ")
    return text.encode()


def _bytes_of(text: str) -> bytes:
    try:
        return bytes([_BYTE_OF_CHAR[char] for char in text])
    except KeyError:
        return text.encode()  # not byte-level text, such as a special token in the vocabulary


def decode(ids: list[int], entries: dict[int, bytes], is_start: bool = True) -> str:
    """The text of some IDs. Invalid UTF-8 becomes U+FFFD, an unknown ID `<id>`.

    is_start: whether they begin a document.
    """
    parts = [entries[id_] if id_ in entries else f"<{id_}>".encode() for id_ in ids]
    if isinstance(entries, Entries) and parts:
        if is_start and entries.strips_marks:
            parts[0] = parts[0].replace(b" ", b"")
        if is_start and entries.strips_space:
            parts = [b"".join(parts).removeprefix(b" ")]
        if entries.strips_end:
            parts[-1] = parts[-1].removesuffix(b" ")
    return b"".join(parts).decode("utf-8", "replace")


def highest_id(path: Place) -> int:
    """The highest ID of a tokenizer.json, including added tokens; -1 without entries. Raise DatasetError for another
    file."""
    value = parse_json(read_whole(path, LARGEST_TOKENIZER_BYTES, follow_link=True), path, "Restore it.")
    try:
        vocabulary = value["model"]["vocab"]  # a list in files of kind Unigram
        ids = vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary))
        return max(map(int, [*ids, *(added["id"] for added in value.get("added_tokens") or [])]), default=-1)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"not a tokenizer.json with a vocabulary ({cause(error)})"
        raise damaged(path, what, "Restore it.") from None
