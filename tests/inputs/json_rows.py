"""Lines good and bad, and what Python's json says to them, for the tests of lines whole and in pieces."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np

from tokenmill.inputs import _core


def texts(
    lines: bytes, path: tuple[str, ...] = ("text",), **options: Any
) -> tuple[list[str], list[str], Any]:
    """(texts, faults, the core's whole answer)."""
    out = np.empty(len(lines) + 16, np.uint8)
    answer = _core.json_texts(lines, [name.encode() for name in path], out, **options)
    offsets = answer[0].tolist()
    found = [bytes(out[a:b]).decode() for a, b in pairwise(offsets)]
    return found, [fault for *_, fault in answer[2]], answer


def oracle(line: bytes) -> str | None:
    """The text by Python's json, None for a bad line."""

    def pairs(items: list[tuple[str, Any]]) -> Any:
        keys = [key for key, _ in items]
        return {**dict(items), "<twice>": keys.count("text") > 1}

    try:
        value = json.loads(line.strip(b" \t\r"), object_pairs_hook=pairs, parse_int=len)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value["<twice>"] or not isinstance(value.get("text"), str):
        return None
    text: str = value["text"]
    return text if not any("\ud800" <= character <= "\udfff" for character in text) else None


ROWS: dict[str, tuple[bytes, list[str], list[str]]] = {
    "plain": (b'{"text":"a"}', ["a"], []),
    "other-fields": (b' {"id": 1, "text" : "a b" , "meta": {"text": "no"}} ', ["a b"], []),
    "escapes": (rb'{"text":"\"\\\/\b\f\n\r\t\u0041\u00e9\u6771\ud83d\ude42"}', ['"\\/\b\f\n\r\tAé東🙂'], []),
    "nul": (rb'{"text":"a\u0000b"}', ["a\0b"], []),
    "escaped-name": (rb'{"t\u0065xt":"a"}', ["a"], []),
    "empty-text": (b'{"text":""}', [""], []),
    "crlf": (b'{"text":"a"}\r\n{"text":"b"}\r\n', ["a", "b"], []),
    "no-final-lf": (b'{"text":"a"}\n{"text":"b"}', ["a", "b"], []),
    "blank-lines": (b'\n \t\r\n{"text":"a"}\n\n', ["a"], []),
    "long-number": (b'{"n":' + b"1" * 5000 + b',"text":"a"}', ["a"], []),
    "deep": (b'{"n":' + b"[" * 100_000 + b"]" * 100_000 + b',"text":"a"}', ["a"], []),
    "deep-objects": (b'{"n":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b',"text":"a"}', ["a"], []),
    "line-separators": ('{"text":"a\u2028\u0085b"}'.encode(), ["a\u2028\u0085b"], []),
    "surrogate-in-another-field": (rb'{"x":"\ud800","text":"a"}', ["a"], []),
    "infinity": (b'{"text":"a","x":1e999}', ["a"], []),
    "cut": (b'{"text":"a', [], ["cut"]),
    "cut-escape": (b'{"text":"a\\', [], ["cut"]),
    "cut-unicode": (b'{"text":"\\u00', [], ["cut"]),
    "cut-object": (b'{"text":"a"', [], ["cut"]),
    "half-a-line": (b'{"text":\n"a"}', [], ["cut", "trailing"]),
    "two-on-a-line": (b'{"text":"a"}{"text":"b"}', [], ["trailing"]),
    "nan": (b'{"text":"a","x":NaN}', ["a"], []),
    "infinities": (b'{"x":[Infinity,-Infinity ,{"y":-Infinity}],"text":"a","z":Infinity}', ["a"], []),
    "nan-text": (b'{"text":NaN}', [], ["is_number"]),
    "infinity-text": (b'{"text":-Infinity}', [], ["is_number"]),
    "nan-cut": (b'{"text":"a","x":Na', [], ["cut"]),
    "nan-spelled": (b'{"text":"a","x":nan}', [], ["syntax"]),
    "infinity-spelled": (b'{"text":"a","x":-Inf}', [], ["syntax"]),
    "plus-infinity": (b'{"text":"a","x":+Infinity}', [], ["syntax"]),
    "question-marks": (b'{"text":"a","x":?""}', [], ["syntax"]),
    "comma-object": (b'{"text":"a",}', [], ["syntax"]),
    "comma-list": (b'{"text":"a","x":[1,]}', [], ["syntax"]),
    "single-quotes": (b"{'text':'a'}", [], ["syntax"]),
    "control": (b'{"text":"a\tb"}', [], ["control"]),
    "control-elsewhere": (b'{"x":"\x01","text":"a"}', [], ["control"]),
    "bad-escape": (rb'{"text":"\q"}', [], ["escape"]),
    "bad-unicode": (rb'{"text":"\u12g4"}', [], ["escape"]),
    "number-zero": (b'{"text":"a","x":01}', [], ["number"]),
    "number-point": (b'{"text":"a","x":1.}', [], ["number"]),
    "number-exponent": (b'{"text":"a","x":1e+}', [], ["number"]),
    "number-minus": (b'{"text":"a","x":-}', [], ["number"]),
    "mismatch": (b'{"text":"a","x":[1}}', [], ["syntax"]),
    "twice": (b'{"text":"a","text":"b"}', [], ["twice"]),
    "missing": (b'{"txt":"a"}', [], ["missing"]),
    "missing-in-empty": (b"{}", [], ["missing"]),
    "null": (b'{"text":null}', [], ["is_null"]),
    "bool": (b'{"text":true}', [], ["is_bool"]),
    "number": (b'{"text":-1.5}', [], ["is_number"]),
    "list": (b'{"text":["a"]}', [], ["is_list"]),
    "object": (b'{"text":{"a":1}}', [], ["is_object"]),
    "top-list": (b'["a"]', [], ["not_object"]),
    "top-string": (b'"a"', [], ["not_object"]),
    "top-garbage": (b"hello", [], ["syntax"]),
    "high-surrogate": (rb'{"text":"a\ud800"}', [], ["surrogate"]),
    "low-surrogate": (rb'{"text":"\udc00b"}', [], ["surrogate"]),
    "two-highs": (rb'{"text":"\ud800\ud800\udc00"}', [], ["surrogate"]),
}
