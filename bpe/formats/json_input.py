"""JSON with the traps closed: duplicate keys, NaN, huge numbers, deep nesting, lone surrogates and a number of values
that would fill the memory are errors."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, Final

from bpe.errors import BadTokenizer, UnsupportedTokenizer, lone_surrogate, printable, shown
from bpe.formats.faults import must_be, not_utf8, unsupported

# Four times what the longest file known has (gemma 3), and some 1 GB as Python objects.
MAX_VALUES: Final = 8_000_000

_MAYBE_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def parse(data: bytes) -> Any:
    """The value, or BadTokenizer with line, column and reason."""
    # Each value but the first stands behind one of these; those within texts are few.
    if sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise BadTokenizer(f"too many values for a tokenizer (more than {MAX_VALUES:,})")
    value = _parsed(data)
    if _MAYBE_SURROGATE.search(data):
        _check_texts(value)
    return value


def _check_texts(value: Any) -> None:
    """Raise BadTokenizer for the first text with a lone surrogate."""
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


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        more_follows = error.msg == "Extra data"
        fix = "Keep one JSON value." if more_follows else "Check whether the file is complete."
        where = f"line {error.lineno} column {error.colno}"
        raise BadTokenizer(f"{where}: {_not_json(error.msg)}. {fix}") from None
    except UnicodeDecodeError as error:
        raise not_utf8(error) from None
    except RecursionError:
        raise BadTokenizer(_not_json("nested too deeply")) from None
    except BadTokenizer:
        raise
    except ValueError as error:  # a number with thousands of digits
        raise BadTokenizer(_not_json(shown(str(error), 100))) from None


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


def expect_object(value: Any, path: str, known_keys: Collection[str]) -> dict[str, Any]:
    """The value if it is an object with known keys only; the error names the JSON path."""
    if not isinstance(value, dict):
        raise must_be(path, "an object", value)
    for key in value:
        if key not in known_keys:
            raise UnsupportedTokenizer(f"{path}.{printable(key[:60])}: unknown field")
    return value


def expect_list(value: Any, path: str) -> list[Any]:
    """The value if it is a list; the error names the JSON path."""
    if not isinstance(value, list):
        raise must_be(path, "a list", value)
    return value


def expect(value: Any, allowed: Collection[Any], path: str, note: str = "") -> None:
    """Raise UnsupportedTokenizer if the field at `path` has a value other than the allowed ones."""
    if not any(value is each or (type(value) is type(each) and value == each) for each in allowed):
        supported = " or ".join(map(repr, allowed))
        raise unsupported(path, value, f"{supported} ({note})" if note else supported)


def component_type(value: Any, path: str) -> str:
    """The type of a component of the pipeline; the error names its JSON path."""
    name = value.get("type") if isinstance(value, dict) else None
    if not isinstance(name, str):
        raise must_be(path, "an object with a type", value)
    return name


def flat_sequence(value: Any, path: str, key: str) -> list[tuple[dict[str, Any], str]]:
    """(component, its JSON path) of a Sequence, with those within it; of a single component, or of null."""
    if value is None:
        return []
    if component_type(value, path) != "Sequence":
        return [(value, path)]
    expect_object(value, path, {"type", key})
    return [
        item
        for index, each in enumerate(expect_list(value.get(key), f"{path}.{key}"))
        for item in flat_sequence(each, f"{path}.{key}[{index}]", key)
    ]
