"""What merging begins with: the entries of a pretoken's characters, by the rules of tokenizers.

Characters that are no entries become byte entries (byte_fallback), the unknown token, or nothing. Each part is counted
as so many bytes of the pretoken, those of an unknown character where the unknown token stands, which can be behind the
byte entries of characters that follow it. Characters that are dropped are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bpe.errors import BadTokenizer, shown


def unmerged(word: str, vocab: Mapping[str, int], options: Mapping[str, Any]) -> list[tuple[int, int]]:
    """(id, bytes) in order. options: those of tokenizer.json's model."""
    prefix = options.get("continuing_subword_prefix") or ""
    suffix = options.get("end_of_word_suffix") or ""
    parts: list[tuple[int, int]] = []
    unknown: tuple[int, int] | None = None  # waits for more of its kind
    for place, character in enumerate(word):
        size = len(character.encode())
        text = prefix * (place > 0) + character + suffix * (place == len(word) - 1)
        id_ = vocab.get(text)
        if id_ is not None:
            parts += [unknown] if unknown else []
            unknown = None
            parts.append((id_, size))
            continue
        if options.get("byte_fallback"):
            spelled = [f"<0x{byte:02X}>" for byte in text.encode()]
            if all(each in vocab for each in spelled):
                parts += [(vocab[each], 1) for each in spelled]
                continue
        unk_token = options.get("unk_token")
        if unk_token is None:
            continue
        if unk_token not in vocab:
            raise BadTokenizer(f"model.unk_token: not an entry (got {shown(unk_token)})")
        if unknown and options.get("fuse_unk"):
            unknown = unknown[0], unknown[1] + size
        else:
            parts += [unknown] if unknown else []
            unknown = vocab[unk_token], size
    return parts + ([unknown] if unknown else [])
