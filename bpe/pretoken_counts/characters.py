"""Where UTF-8 text may be cut without cutting a character."""

from __future__ import annotations

import codecs


def cut_character_bytes(tail: bytes) -> int:
    """How many of the last bytes (at most 3) are the valid start of a character that goes on: b"a\\xe2\\x82" -> 2."""
    for size in range(len(tail), 0, -1):
        try:
            _, used = codecs.utf_8_decode(tail[-size:], "strict", False)
        except UnicodeDecodeError:
            continue
        return size - used
    return 0
