"""Strict JSON, and access to its fields.

Duplicate keys, NaN, huge numbers, deep nesting, lone surrogates and more values than fit in memory are errors.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from bpe.errors import BadTokenizer, UnsupportedTokenizer, lone_surrogate, printable, shown
from bpe.formats.faults import must_be, not_utf8, unsupported

# Four times as many as the largest known file (Gemma 3) has. They take about 1 GB as Python objects.
MAX_VALUES: Final = 8_000_000

_MAX_DEPTH: Final = 100  # of nested sequences of components
_MAYBE_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def parse(data: bytes, start: int = 0, stop: int | None = None) -> Any:
    """Return the value in data[start:stop]. BadTokenizer names the line and column in `data`."""
    text = without_mark(data[start:stop])
    # Each value except the first follows one of these characters. Few of them are in strings.
    if sum(map(text.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise BadTokenizer(f"too many values for a tokenizer (more than {MAX_VALUES:,})")
    try:
        value = json.loads(text.decode(), object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        fix = "Keep one JSON value." if error.msg == "Extra data" else "Check whether the file is complete."
        where = location(data, start + len(error.doc[: error.pos].encode()))
        raise BadTokenizer(f"{where}: {_not_json(error.msg)}. {fix}") from None
    except UnicodeDecodeError as error:
        raise not_utf8(start + error.start) from None
    except RecursionError:
        raise BadTokenizer(_not_json("nested too deeply")) from None
    except BadTokenizer:
        raise
    except ValueError as error:  # a number with thousands of digits
        raise BadTokenizer(_not_json(shown(str(error), 100))) from None
    if _MAYBE_SURROGATE.search(text):
        _check_texts(value)
    return value


def without_mark(data: bytes) -> bytes:
    """Return the data without its byte-order mark. BadTokenizer if it has two."""
    data = data.removeprefix(codecs.BOM_UTF8)
    if data.startswith(codecs.BOM_UTF8):
        raise BadTokenizer("byte 3: second byte-order mark (EF BB BF). Remove it.")
    return data


def location(data: bytes, offset: int) -> str:
    """Return the line and the column of a byte: (b"a\\nbc", 3) -> "line 2 column 2"."""
    line = data.count(b"\n", 0, offset) + 1
    before = data[data.rfind(b"\n", 0, offset) + 1 : offset]
    return f"line {line} column {len(before.decode(errors='replace')) + 1}"


def _check_texts(value: Any) -> None:
    """Raise BadTokenizer for a text with a lone surrogate."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            left += item.keys()
            left += item.values()
        elif isinstance(item, list):
            left += item
        elif isinstance(item, str):
            try:
                item.encode()
            except UnicodeEncodeError as error:
                raise BadTokenizer(lone_surrogate(f"text {shown(item)}", error)) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise BadTokenizer(f"key {shown(key)}: duplicate in a JSON object")
            seen.add(key)
    return made


def _constant(name: str) -> Any:
    raise BadTokenizer(_not_json(name))


def _not_json(why: str) -> str:
    return f"not valid JSON ({why})"


# -- fields; errors name the JSON path ----------------------------------------------------------------------------

# Reads the value at a JSON path: (value, path) -> value.
Reader = Callable[[Any, str], Any]
# Name -> reader, and the value of a missing field. Readers reject None unless it is valid.
Fields = Mapping[str, tuple[Reader, Any]]


def read_fields(value: Any, path: str, fields: Fields) -> dict[str, Any]:
    """Return all fields of an object, which must have no others."""
    item = expect_object(value, path, fields)
    return {name: read(item.get(name, default), f"{path}.{name}") for name, (read, default) in fields.items()}


def expect_object(value: Any, path: str, known_keys: Collection[str]) -> dict[str, Any]:
    """Return the value, which must be an object with known keys only."""
    if not isinstance(value, dict):
        raise must_be(path, "an object", value)
    for key in value:
        if key not in known_keys:
            raise UnsupportedTokenizer(f"{path}.{printable(key[:60])}: unknown field")
    return value


def expect_list(value: Any, path: str) -> list[Any]:
    """Return the value, which must be a list."""
    if not isinstance(value, list):
        raise must_be(path, "a list", value)
    return value


def expect(value: Any, allowed: Collection[Any], path: str, note: str = "") -> Any:
    """Return the value, which must be one of the allowed ones."""
    if not any(value is each or (type(value) is type(each) and value == each) for each in allowed):
        supported = " or ".join(map(repr, allowed))
        raise unsupported(path, value, f"{supported} ({note})" if note else supported)
    return value


def one_of(*allowed: Any, note: str = "") -> Reader:
    """Return the reader of a value that must be one of the allowed ones."""
    return lambda value, path: expect(value, allowed, path, note)


def anything(value: Any, path: str) -> Any:
    """Return the value, which other code checks."""
    return value


FLAG: Final = one_of(False, True)
OPTIONAL_FLAG: Final = one_of(None, False, True)


def expect_integer(value: Any, path: str, least: int = 0, most: int | None = None) -> int:
    """Return the value, which must be an integer in [least, most]."""
    if type(value) is not int or value < least or (most is not None and value > most):
        wanted = f"an integer of at least {least}" if most is None else f"an integer from {least} to {most}"
        raise must_be(path, wanted, value)
    return value


def expect_text(value: Any, path: str) -> str:
    """Return the value, which must be a text."""
    if not isinstance(value, str):
        raise must_be(path, "a text", value)
    return value


def expect_filled(value: Any, path: str) -> str:
    """Return the value, which must be a non-empty text."""
    if not isinstance(value, str) or not value:
        raise must_be(path, "a non-empty text", value)
    return value


def expect_character(value: Any, path: str) -> str:
    """Return the value, which must be one character."""
    if not isinstance(value, str) or len(value) != 1:
        raise must_be(path, "one character", value)
    return value


def optional(read: Reader) -> Reader:
    """Return the reader that accepts null too."""
    return lambda value, path: None if value is None else read(value, path)


def list_of(read: Reader) -> Reader:
    """Return the reader of a list of such values."""
    return lambda value, path: [
        read(each, f"{path}[{index}]") for index, each in enumerate(expect_list(value, path))
    ]


def flat_sequence(value: Any, path: str, key: str) -> list[tuple[dict[str, Any], str]]:
    """Return the components with their JSON paths, of a component, of a Sequence with nested ones, or of null."""
    if value is None:
        return []
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise must_be(path, "an object with a type", value)
    if value["type"] != "Sequence":
        return [(value, path)]
    if path.count(f".{key}[") > _MAX_DEPTH:
        raise UnsupportedTokenizer(f"{path[:60]}: sequences are nested more than {_MAX_DEPTH} deep")
    expect_object(value, path, {"type", key})
    return [
        item
        for index, each in enumerate(expect_list(value.get(key), f"{path}.{key}"))
        for item in flat_sequence(each, f"{path}.{key}[{index}]", key)
    ]


def sequence_of(items: list[dict[str, Any]], key: str) -> dict[str, Any] | None:
    """Return the components as one: null, the only one, or a Sequence."""
    if len(items) < 2:
        return items[0] if items else None
    return {"type": "Sequence", key: items}
