"""tiktoken's `encode_with_unstable`: the ids that no text to come changes, and the ways in which they may go on.

The last pretoken of a text, and whitespace before it, may be cut and merged in another way once text follows. Its bytes
are held back; a completion is each list of ids that begins a text which begins with these bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from bpe.compat.tiktoken.core import Encoding

_SPACES = frozenset(b" \n\t")


def encode(
    encoding: Encoding, text: str, allowed: Literal["all"] | AbstractSet[str]
) -> tuple[list[int], list[list[int]]]:
    """(stable ids, completions)."""
    ids, held_back = _stable(encoding, text, allowed)
    if not held_back:
        return ids, []
    completions = {
        (encoding._mergeable_ranks[entry],): None for entry in _entries_from(encoding, held_back)
    } | dict.fromkeys(_straddling(encoding, held_back))
    # A space that ends the text may become a pretoken of its own.
    last = _last_character(held_back)
    if len(last) < len(held_back) and last.decode("utf-8", "replace").isspace():
        head = held_back[: -len(last)]
        completions[(*_merged(encoding, head), *_merged(encoding, last))] = None
    return ids, [list(completion) for completion in completions]


def encode_bytes(encoding: Encoding, data: bytes) -> list[int]:
    """The ids of bytes; from the first that is no UTF-8 on, and the pretoken before it, by merges alone."""
    try:
        return encoding.encode_ordinary(data.decode())
    except UnicodeDecodeError as error:
        ids, held_back = _stable(encoding, data[: error.start].decode(), frozenset())
        return ids + encoding._encode_single_piece(held_back + data[error.start :])


def _stable(
    encoding: Encoding, text: str, allowed: Literal["all"] | AbstractSet[str]
) -> tuple[list[int], bytes]:
    """(ids before the last pretoken and the whitespace around it, the bytes from there on)."""
    tokenizer = encoding._tokenizer
    ids = tokenizer.encode(text, allowed)
    if not ids or (encoding.is_special_token(ids[-1]) and allowed):
        return ids, b""
    specials = encoding.special_tokens_set if allowed == "all" else allowed
    last = max(
        (text.rfind(token) + len(token) for token in specials if token in text),
        default=0,
    )
    pretokens = tokenizer.pretokenizer.pretokens(text[last:])
    count = len(encoding._encode_single_piece(pretokens[-1]))
    if _is_space(encoding, ids[-count]):
        while count < len(ids) and _is_space(encoding, ids[-count - 1]):
            count += 1
    return ids[:-count], encoding.decode_bytes(ids[-count:])


def _is_space(encoding: Encoding, id_: int) -> bool:
    entry = encoding._tokenizer.core_encoder.entry(id_)
    return entry is not None and _SPACES.issuperset(entry)


def _entries_from(encoding: Encoding, start: bytes) -> Iterator[bytes]:
    """The entries that begin with these bytes."""
    entries = encoding._sorted_entries
    place = bisect_left(entries, start)
    while place < len(entries) and entries[place].startswith(start):
        yield entries[place]
        place += 1


def _straddling(encoding: Encoding, held_back: bytes) -> Iterator[tuple[int, ...]]:
    """The ids of the bytes with an entry that begins within them and may go on behind them."""
    for cut in range(1, len(held_back)):
        for entry in _entries_from(encoding, held_back[cut:]):
            possible = held_back[:cut] + entry
            try:
                ids = encoding.encode_ordinary(possible.decode())
            except UnicodeDecodeError:
                ids = _merged(encoding, possible)
            size = 0
            for count, id_ in enumerate(ids, 1):
                size += len(encoding.decode_single_token_bytes(id_))
                if size >= len(held_back):
                    ids = ids[:count]
                    break
            yield tuple(ids)


def _merged(encoding: Encoding, piece: bytes) -> list[int]:
    ids: list[int] = encoding._by_merges.encode_pretokens(piece, np.array([len(piece)], np.uint64)).tolist()
    return ids


def _last_character(data: bytes) -> bytes:
    """The bytes of the last character, or of what is none."""
    start = len(data) - 1
    while start > max(0, len(data) - 4) and 0x80 <= data[start] < 0xC0:
        start -= 1
    try:
        data[start:].decode()
    except UnicodeDecodeError:
        return data[-1:]
    return data[start:]
