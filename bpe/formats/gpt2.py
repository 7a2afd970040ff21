"""GPT-2's pair of files: vocab.json (entry in the byte alphabet -> ID) and merges.txt (`left right` per line).

The files contain neither the pattern nor the special tokens. An entry of the form `<...>` that no merge produces is a
special token, such as GPT-2's `<|endoftext|>`. The argument special_tokens names others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bpe.errors import BadTokenizer, EnvironmentFailure, shown
from bpe.formats.byte_alphabet import to_bytes, to_characters
from bpe.formats.faults import must_be, not_storable, not_utf8
from bpe.formats.json_input import parse
from bpe.formats.tiktoken import first_unreached
from bpe.output_file import write_file
from bpe.parts import Parts, make_parts
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import SpecialTokens, TextRules

if TYPE_CHECKING:
    from bpe.tokenizer import Tokenizer

_HEADER = "#version: 0.2"
_FORM: Final = "vocab.json and merges.txt"


def both_paths(path: Path) -> tuple[Path, Path]:
    """Return the paths of both files, with the prefix of one: gpt2-merges.txt -> gpt2-vocab.json, gpt2-merges.txt."""
    prefix = path.name.removesuffix("vocab.json").removesuffix("merges.txt")
    return path.with_name(prefix + "vocab.json"), path.with_name(prefix + "merges.txt")


def read_vocab(data: bytes) -> dict[str, int]:
    """Read vocab.json: ID by entry in the byte alphabet, or by text for special tokens."""
    vocab = parse(data)
    if not isinstance(vocab, dict):
        raise BadTokenizer(f"must be a JSON object of entries and IDs (got {shown(vocab)})")
    return vocab


def read_merges(data: bytes) -> list[tuple[bytes, bytes]]:
    """Read merges.txt; BadTokenizer names the line. "#version: 0.2\\nĠ t\\n" -> [(b" ", b"t")]."""
    try:
        lines = data.decode("utf-8").split("\n")  # splitlines would split entries
    except UnicodeDecodeError as error:
        raise not_utf8(error.start) from None
    merges: list[tuple[bytes, bytes]] = []
    for index, line in enumerate(lines):
        line = line.removesuffix("\r")
        if not line or (index == 0 and line.startswith("#version")):
            continue
        where, parts = f"line {index + 1}", line.split(" ")
        if len(parts) != 2 or not all(parts):
            raise must_be(where, "two entries separated by one space", line)
        left, right = map(to_bytes, parts)
        if left is None or right is None:
            raise outside_alphabet(where, parts[0] if left is None else parts[1])
        merges.append((left, right))
    return merges


def outside_alphabet(where: str, characters: str) -> BadTokenizer:
    """Return the error for an entry with a character that is not in the byte alphabet."""
    return BadTokenizer(
        f"{where}: contains a character outside the byte alphabet (got {shown(characters)}). Only byte-level "
        "vocabularies are supported."
    )


def build(
    vocab: Mapping[str, int],
    merges: list[tuple[bytes, bytes]],
    pattern: str | Pretokenizer,
    special_tokens: SpecialTokens,
) -> Parts:
    """Build the tokenizer of the two files."""
    products = {left + right for left, right in merges}
    if special_tokens is None:
        special_tokens = {
            text: id_
            for text, id_ in vocab.items()
            if len(text) > 2 and text[0] == "<" and text[-1] == ">" and to_bytes(text) not in products
        }
    entries: dict[int, bytes] = {}
    decoded_only: dict[int, str] = {}  # the empty entry, and entries that no text produces
    for characters, id_ in vocab.items():
        entry = characters.encode() if characters in special_tokens else to_bytes(characters)
        if not isinstance(id_, int) or id_ in entries or id_ in decoded_only:
            raise BadTokenizer(f"entry {shown(characters)}: ID must be an unused integer (got {shown(id_)})")
        if entry:
            entries[id_] = entry
        else:
            decoded_only[id_] = characters
    if not isinstance(special_tokens, Mapping):
        ids = {text: vocab[text] for text in special_tokens if text in vocab}
        first_new = max((*entries, *decoded_only), default=-1) + 1
        new = [text for text in special_tokens if text not in ids]
        if len(set(special_tokens)) == len(special_tokens):
            special_tokens = ids | {text: first_new + place for place, text in enumerate(new)}
    is_complete = {bytes([byte]) for byte in range(256)} <= {*entries.values()}
    rules = None if is_complete else TextRules(byte_level=True)
    return make_parts(entries, merges, special_tokens, pattern, text_rules=rules, decoded_only=decoded_only)


def special_keys(tokenizer: Tokenizer) -> list[tuple[int, str]]:
    """Return (ID, key in vocab.json) of the special tokens, by ascending ID.

    Raise BadTokenizer if one is spelled like another entry in the byte alphabet: the entry of byte 0xe9 is "é".
    """
    encoder = tokenizer.core_encoder
    keys = sorted((id_, text) for text, id_ in tokenizer.special_tokens.items())
    for id_, text in keys:
        entry = to_bytes(text)
        also = encoder.entry(id_)  # text without the special token may need the entry too
        if (entry and encoder.find(entry) not in (None, id_)) or (also and to_characters(also) != text):
            raise BadTokenizer(
                f"special_tokens: same spelling as an ordinary entry in the byte alphabet (got {shown(text)}). "
                "Save the tokenizer in another format."
            )
    return keys


def export(tokenizer: Tokenizer, folder: Path) -> None:
    """Write vocab.json and merges.txt. Raise UnsupportedTokenizer if they cannot express the tokenizer."""
    rules = tokenizer.text_rules
    if rules not in (None, TextRules(byte_level=True)):
        raise not_storable("text entries, affixes and unk_token", _FORM)
    if tokenizer.normalizer is not None:
        raise not_storable(f"normalizer {tokenizer.normalizer}", _FORM)
    if tokenizer.ignore_merges:
        unreached = first_unreached(tokenizer.ordinary_entries, tokenizer.merges)
        if unreached is not None:
            raise not_storable(
                f"entry {unreached} ({shown(tokenizer.vocab[unreached])}), which merges do not produce", _FORM
            )
    special = dict(special_keys(tokenizer)) | dict(tokenizer.parts.vocabulary.decoded_only)
    vocab = {special.get(id_, to_characters(entry)): id_ for id_, entry in tokenizer.vocab.items()}
    merges = [f"{to_characters(left)} {to_characters(right)}" for left, right in tokenizer.merges]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFailure(f"{folder}: cannot create the folder ({error.strerror})") from None
    write_file(folder / "merges.txt", "\n".join([_HEADER, *merges, ""]).encode())
    write_file(folder / "vocab.json", json.dumps(vocab, ensure_ascii=False).encode())
