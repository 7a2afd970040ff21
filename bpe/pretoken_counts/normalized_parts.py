"""Normalizing the text between special tokens while it is counted in blocks.

Special tokens are found in the text as it is, so each part between two of them is normalized by itself. A block of a
text ends where neither pretokens nor normalization reach across: in front of a space or behind a line break, if what
follows is a character that composes with none before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpe import _core
from bpe.normalization import stretches_to_change, to_nfc

if TYPE_CHECKING:
    from typing_extensions import Buffer


def last_cut(text: Buffer, last_raw_cut: Callable[[Buffer], int], special_tokens: Sequence[bytes]) -> int:
    """The last place that `last_raw_cut` gives for some beginning of the text and at which it may be cut normalized.

    last_raw_cut(text): the last place where the text, as it is, may be cut whatever follows; 0 if there is none.
    """
    view = memoryview(text).cast("B")
    cut = last_raw_cut(view)
    while cut > 0 and not _may_cut(view, cut, special_tokens):
        stop, cut = cut, last_raw_cut(view[:cut])
        if cut == stop:  # behind a special token
            cut -= 1
            while cut > 0 and view[cut] & 0xC0 == 0x80:
                cut -= 1
            cut = last_raw_cut(view[:cut])
    return cut


def _may_cut(view: memoryview, cut: int, special_tokens: Sequence[bytes]) -> bool:
    at_special_token = any(view[max(0, cut - len(token)) : cut] == token for token in special_tokens)
    if cut == len(view):
        return at_special_token
    before, after = view[cut - 1], view[cut]
    # ASCII, and the three-byte characters from U+4000 to U+9FFF, compose with nothing before them.
    if after >= 0x80 and not 0xE4 <= after <= 0xE9:
        return False
    if after == 0x20:
        return before not in b" \t\r\n\v\f"
    if before in b"\r\n":
        return after not in b" \t\r\n\v\f/"
    return at_special_token


def parts(text: Buffer, special_tokens: Sequence[bytes]) -> Iterator[tuple[Buffer, bool]]:
    """(text, whether it may hold special tokens) of stretches that are the normalized text end to end.

    Stretches that hold special tokens are as they were; the others are parts that normalization changed, in which no
    special token is to be looked for. text: valid UTF-8.
    """
    changing = stretches_to_change(text)
    if not len(changing):
        yield text, True
        return
    view = memoryview(text).cast("B")
    found, which = _core.find_special_tokens(text, list(special_tokens)) if special_tokens else ([], [])
    sizes = np.array([len(token) for token in special_tokens], np.uint64)
    starts = np.append(np.uint64(0), np.asarray(found, np.uint64) + sizes[np.asarray(which, np.intp)])
    stops = np.append(np.asarray(found, np.uint64), np.uint64(len(view)))
    # A stretch may reach over a border: a mark behind it composes with the last character before it.
    first = np.maximum(np.searchsorted(starts, changing[:, 0], side="right") - 1, 0)
    last = np.searchsorted(starts, changing[:, 1], side="left") - 1
    touched = np.zeros(len(starts), np.bool_)
    for row, last_row in zip(first.tolist(), last.tolist(), strict=True):
        touched[row : last_row + 1] = True
    done = 0
    for row in np.flatnonzero(touched).tolist():
        start, stop = int(starts[row]), int(stops[row])
        if start > done:
            yield view[done:start], True
        if stop > start:
            yield to_nfc(bytes(view[start:stop])), False
        done = stop
    if done < len(view):
        yield view[done:], True
