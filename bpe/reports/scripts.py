"""The script of a text by its first letter, by which reports group entries and pretokens.

"Latin", "Han" and others follow Unicode's Script property in the `regex` package. Texts without a letter are "digits",
"white space", "punctuation", "symbols", "marks", "control" or "unassigned". Invalid UTF-8 is "bytes".
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

# All others are "other scripts".
SCRIPTS: Final = tuple(
    """Latin Han Cyrillic Arabic Hiragana Katakana Hangul Devanagari Greek Hebrew Thai Bengali Tamil Telugu Kannada
    Malayalam Gujarati Gurmukhi Oriya Sinhala Lao Tibetan Myanmar Georgian Armenian Ethiopic Khmer Mongolian Bopomofo
    Syriac Thaana Cherokee Canadian_Aboriginal Runic Ogham Coptic Gothic Javanese Balinese""".split()
)
OTHER: Final = "other scripts"
BYTES: Final = "bytes"
# Japanese and Korean text mixes these scripts.
EAST_ASIAN: Final = frozenset({"Han", "Hiragana", "Katakana", "Hangul", "Bopomofo"})
_KINDS: Final = {"N": "digits", "Z": "white space", "P": "punctuation", "S": "symbols", "M": "marks"}


@cache
def _classes() -> list[tuple[str, Any]]:
    import regex

    return [(name, regex.compile(rf"\p{{Script={name}}}")) for name in SCRIPTS]


@cache
def script_of(character: str) -> str:
    """Return the script of a letter or mark, or the kind of another character: "é" -> "Latin", "7" -> "digits"."""
    category = unicodedata.category(character)
    if category[0] == "M" and (script := _script(character)) != OTHER:
        return script
    if category[0] != "L":
        if character in "\t\n\v\f\r\x85":
            return "white space"
        return _KINDS.get(category[0]) or ("unassigned" if category in ("Cn", "Co", "Cs") else "control")
    return _script(character)


def _script(character: str) -> str:
    return next((name for name, expression in _classes() if expression.match(character)), OTHER)


def is_script(name: str) -> bool:
    """Return whether the name is a script, not a kind of character."""
    return name[0].isupper() or name == OTHER


def script_of_text(text: str) -> str:
    """Return the script of the first letter, or the kind of the last character: "Haus" -> "Latin", "12" -> "digits"."""
    kind = "white space"
    for character in text:
        kind = script_of(character)
        if is_script(kind):
            return kind
    return kind


def script_of_bytes(entry: bytes) -> str:
    """Return the script of a text, or "bytes" for invalid UTF-8."""
    try:
        return script_of_text(entry.decode())
    except UnicodeDecodeError:
        return BYTES


def scripts_in(text: Iterable[str]) -> list[str]:
    """Return the scripts of the letters in order, without repetition. East Asian scripts count as one."""
    found: list[str] = []
    for character in text:
        kind = script_of(character)
        if is_script(kind) and kind not in found and not (kind in EAST_ASIAN and EAST_ASIAN & set(found)):
            found.append(kind)
    return found
