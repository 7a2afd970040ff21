"""The normal form NFC with this Python's Unicode tables, at the speed of a scan for text that has it already.

The core tells which stretches of a text are not in the form for certain; each can be looked at, and normalized, apart
from the text around it. Usual text has next to none, and what there is goes to `unicodedata`.
`to_nfc(text) == unicodedata.normalize("NFC", text)` for every text (tests/bpe/test_normalization.py).
Hugging Face tokenizers 0.23 normalizes by Unicode 9.0: it leaves 98 marks and letters of Python 3.11's Unicode 14 where
they stand that were assigned since, such as U+0898.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from bpe import _core

if TYPE_CHECKING:
    from typing_extensions import Buffer

# Marks behind one character from which on they are put in order here: `unicodedata` swaps neighbours until they are,
# which costs the number squared (two marks in turns, 160 kB: 4.9 s). So many take a fifth of its usual speed.
_LONG_RUN: Final = 256
_SAMPLED: Final = 16  # characters: every 16th is looked at first, 2 ns a character of 50 for normalizing it
_LONG_RUN_SAMPLED: Final = re.compile(rb"[^\0]{%d,}" % (_LONG_RUN // _SAMPLED))
_LONG_RUN_OF_CLASSES: Final = re.compile(rb"[^\0]{%d,}" % _LONG_RUN)
# The characters that are no marks and yet nothing but marks when they are taken apart.
_MADE_OF_MARKS: Final = {mark: unicodedata.normalize("NFD", mark) for mark in "\u0f73\u0f75\u0f81"}


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
        stretch = with_long_runs_in_order(text[start:stop].decode())
        parts += (text[done:start], unicodedata.normalize("NFC", stretch).encode())
        done = stop
    return b"".join([*parts, text[done:]]) if parts else text


def place_before_nfc(text: bytes, place: int) -> int:
    """Where the byte at `place` of `to_nfc(text)` comes from; of a stretch that normalization changed, its start."""
    grown: int = 0  # how much longer what lies before is in the form
    stretches: list[list[int]] = stretches_to_change(text).tolist()
    for start, stop in stretches:
        normalized_bytes = len(to_nfc(text[start:stop]))
        if place < start + grown + normalized_bytes:
            return min(place - grown, start)
        grown += normalized_bytes - (stop - start)
    return place - grown


def with_long_runs_in_order(text: str) -> str:
    """A text of the same normal form, in which runs of `_LONG_RUN` marks or more are in canonical order.

    So it costs `unicodedata` no more than its length: "a" + "\\u0301\\u0323" * 200 -> "a" + "\\u0323" * 200 +
    "\\u0301" * 200.
    """
    if len(text) < _LONG_RUN:
        return text
    for character, marks in _MADE_OF_MARKS.items():
        text = text.replace(character, marks)
    if not _LONG_RUN_SAMPLED.search(bytes(map(unicodedata.combining, text[::_SAMPLED]))):
        return text
    parts: list[str] = []
    done = 0
    classes = bytes(map(unicodedata.combining, text))
    for run in _LONG_RUN_OF_CLASSES.finditer(classes):
        start, stop = run.span()
        code_points = np.frombuffer(text[start:stop].encode("utf-32-le"), "<u4")
        order = np.argsort(np.frombuffer(classes[start:stop], np.uint8), kind="stable")
        parts += (text[done:start], str(code_points[order].data, "utf-32-le"))
        done = stop
    return "".join([*parts, text[done:]])
