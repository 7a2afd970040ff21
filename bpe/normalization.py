"""The normal form NFC with this Python's Unicode tables, at the speed of a scan for text that has it already.

The core tells which stretches of a text are not in the form for certain; each can be looked at, and normalized, apart
from the text around it. Usual text has next to none, and what there is goes to `unicodedata`.
`to_nfc(text) == unicodedata.normalize("NFC", text)` for every text (tests/bpe/test_normalization.py).
Hugging Face tokenizers 0.23 normalizes by Unicode 9.0: it leaves 98 marks and letters of Python 3.11's Unicode 14 where
they stand that were assigned since, such as U+0898.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe import _core

if TYPE_CHECKING:
    from typing_extensions import Buffer


def is_nfc(text: str) -> bool:
    """Whether the text is in the form; False for one with lone surrogates."""
    if text.isascii():
        return True
    try:
        return _core.surely_nfc(text) or not len(stretches_to_change(text.encode()))
    except UnicodeEncodeError:
        return False


def stretches_to_change(text: Buffer) -> NDArray[np.uint64]:
    """uint64[n, 2]: start and stop of the stretches of valid UTF-8 that normalization changes, ascending and apart."""
    spans = _core.doubtful_for_nfc(text).reshape(-1, 2)
    if not len(spans):
        return spans
    view = memoryview(text).cast("B")
    wrong = [
        not unicodedata.is_normalized("NFC", str(view[start:stop], "utf-8")) for start, stop in spans.tolist()
    ]
    changing: NDArray[np.uint64] = spans[np.array(wrong)]
    return changing


def to_nfc(text: bytes) -> bytes:
    """Valid UTF-8 in the form; the same object if it was already."""
    parts: list[bytes] = []
    done = 0
    for start, stop in stretches_to_change(text).tolist():
        parts += (text[done:start], unicodedata.normalize("NFC", text[start:stop].decode()).encode())
        done = stop
    return b"".join([*parts, text[done:]]) if parts else text
