"""Parse JSON records and read their fields. All faults raise RecordFault."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tokenmill.inputs.intake import FIELD_MISSING, INVALID_UTF8, MALFORMED, RecordFault

REPEATED = object()
_SURROGATES = re.compile("[\ud800-\udfff]")
_LONGEST_INTEGER = 4000  # digits; Python's int() accepts 4,300
_INDEX = re.compile("0|[1-9][0-9]{0,17}")
_KINDS = {dict: "an object", list: "a list", bool: "a boolean", type(None): "null"}


def json_of(text: str, place: int = 0, allows_repeats: bool = False) -> Any:
    """Parse a JSON text. A repeated name in an object is a fault, or has the value REPEATED with `allows_repeats`.

    place: offset of the text in the source, for errors.
    """
    try:
        return json.loads(
            text, object_pairs_hook=_repeated if allows_repeats else _unique, parse_int=_integer
        )
    except RecursionError:
        raise RecordFault(MALFORMED, "nested too deeply") from None
    except json.JSONDecodeError as error:
        if text.startswith("\ufeff"):  # json would advise its callers in Python
            raise RecordFault(MALFORMED, "begins with a second byte order mark") from None
        offset = place + len(text[: error.pos].encode("utf-8", "surrogatepass"))
        raise RecordFault(
            MALFORMED, f"invalid JSON: {error.msg.removesuffix(' at')} at byte {offset}"
        ) from None


def _repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        found |= {name: REPEATED for name, count in counts.items() if count > 1}
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = _repeated(pairs)
    if len(found) < len(pairs):
        repeated = next(name for name, value in found.items() if value is REPEATED)
        raise RecordFault("field twice", f"field {repeated!r} occurs twice")
    return found


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= _LONGEST_INTEGER else float(text)


def value_at(record: Any, path: Sequence[str]) -> Any:
    """Return the value at a path (`pointer_path`). In a list, a decimal name is an index."""
    value = record
    if not isinstance(record, dict) and not (isinstance(record, list) and path and _INDEX.fullmatch(path[0])):
        raise RecordFault("not an object", "not a JSON object")
    for name in path:
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            raise RecordFault(FIELD_MISSING, f"field {_shown(path)!r} is missing")
        if value is REPEATED:
            raise RecordFault("field twice", f"field {name!r} occurs twice")
    return value


def text_at(record: Any, path: Sequence[str]) -> str:
    """Return the text at a path."""
    value = value_at(record, path)
    if not isinstance(value, str):
        kind = _KINDS.get(type(value), "a number")
        raise RecordFault("not a text", f"field {_shown(path)!r} is {kind}, not text")
    return value


def _shown(path: Sequence[str]) -> str:
    return path[0] if len(path) == 1 else "".join(f"/{name}" for name in path)


def encoded(text: str, replaces: bool) -> bytes:
    """Encode a text as UTF-8. An unpaired surrogate is a fault, or becomes U+FFFD with `replaces`."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        if replaces:
            return _SURROGATES.sub("\ufffd", text).encode()
        detail = f"unpaired surrogate at character {error.start} of the text"
        raise RecordFault(INVALID_UTF8, detail) from None


def surrogate_count(text: str) -> int:
    """Return the number of unpaired surrogates in a text, which `encoded` replaces."""
    return len(_SURROGATES.findall(text))
