"""JSON with the traps closed: duplicate keys, NaN, huge numbers, deep nesting, lone surrogates and a number of values
that would fill the memory are errors."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, Final

from bpe.errors import BadTokenizer, UnsupportedTokenizer, printable, shown

# Four times what the longest file known has (gemma 3), and some 1 GB as Python objects.
MAX_VALUES: Final = 8_000_000

_MAYBE_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def parse(data: bytes) -> Any:
    """The value, or BadTokenizer with line, column and reason."""
    # Each value but the first stands behind one of these; those within texts are few.
    if sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise BadTokenizer(f"is no tokenizer: it has more than {MAX_VALUES:,} values")
    value = _parsed(data)
    if _MAYBE_SURROGATE.search(data):
        _check_texts(value)
    return value


def _check_texts(value: Any) -> None:
    """Nothing, or BadTokenizer for the first text with half of a pair of surrogates."""
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
            except UnicodeEncodeError:
                raise BadTokenizer(
                    f"the text {shown(item)} holds a lone surrogate, which UTF-8 can't"
                ) from None


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        what = f"no valid JSON at line {error.lineno} column {error.colno} ({error.msg})"
        more_follows = error.msg == "Extra data"
        way_out = (
            "there is more than one value, as in JSON Lines" if more_follows else "the file may be cut short"
        )
        raise BadTokenizer(f"{what}; {way_out}") from None
    except UnicodeDecodeError as error:
        raise BadTokenizer(f"byte {error.start} is not valid UTF-8, which JSON must be") from None
    except RecursionError:
        raise BadTokenizer("JSON nested too deeply") from None
    except BadTokenizer:
        raise
    except ValueError as error:  # a number with thousands of digits
        raise BadTokenizer(f"no valid JSON: {shown(str(error), 100)}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise BadTokenizer(f"the key {shown(key)} is given twice in one JSON object")
            seen.add(key)
    return made


def _constant(name: str) -> Any:
    raise BadTokenizer(f"no valid JSON: {name}")


def expect_object(value: Any, path: str, known_keys: Collection[str]) -> dict[str, Any]:
    """The value if it is an object with known keys only; the error names the JSON path."""
    if not isinstance(value, dict):
        raise BadTokenizer(f"{path} must be an object, found {shown(value)}")
    for key in value:
        if key not in known_keys:
            raise UnsupportedTokenizer(
                f"{path}.{printable(key[:60])}: unknown field; this version can't honour it"
            )
    return value


def expect_list(value: Any, path: str) -> list[Any]:
    """The value if it is a list; the error names the JSON path."""
    if not isinstance(value, list):
        raise BadTokenizer(f"{path} must be a list, found {shown(value)}")
    return value


def expect(value: Any, allowed: Collection[Any], path: str, way_out: str = "") -> None:
    """Nothing, or UnsupportedTokenizer: the field at `path` has a value other than those that can be honoured."""
    if not any(value is each or (type(value) is type(each) and value == each) for each in allowed):
        raise UnsupportedTokenizer(
            f"{path} is {shown(value)}; supported: {' or '.join(map(repr, allowed))}"
            + (f" ({way_out})" if way_out else "")
        )


def component_type(value: Any, path: str) -> str:
    """The type of a component of the pipeline; the error names its JSON path."""
    name = value.get("type") if isinstance(value, dict) else None
    if not isinstance(name, str):
        raise BadTokenizer(f"{path} must be an object with a type, found {shown(value)}")
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
