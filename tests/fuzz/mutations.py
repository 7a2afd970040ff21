"""Random mutations of inputs: bytes, JSON values, Protocol Buffers and expressions.

Mutations that know the structure keep the rest of it valid, so that a mutant passes the first check. Some mutants
repeat a part many times: limits are relative to the input's size, and small inputs would not reach them.
"""

from __future__ import annotations

import copy
import json
import random
import re
import struct
from collections.abc import Sequence
from typing import Any

from bpe.errors import BadTokenizer
from bpe.formats.protobuf import FIXED32, VARINT, bytes_field, fields, float_field, varint_field

HUGE = (
    *(2**bits + more for bits in (0, 1, 7, 8, 16, 26, 31, 32, 40, 53, 62, 63, 64) for more in (-1, 0)),
    *(-1, 2_500_000_000, 10**30),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, "", "a", "\x1b[2J", "\ud800", "é", "\0", "Ġ", "▁", "../outside/secret", "0" * 1000),
    *(1.5, -0.0, 1e308, float("nan"), float("inf"), [], {}, [1], [[]], {"id": "zstd"}, {"type": "Sequence"}),
)
LARGEST_BYTES = 1 << 18  # limit for a mutant that was extended
_NUMBER = re.compile(rb"-?\d+")


def change_bytes(rng: random.Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Return a mutant of `data`, possibly with parts of `others`."""
    made = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(made) + 1)
        stop = min(len(made), at + rng.choice([1, 2, 4, 8, 16, 64, 1000]))
        match rng.randrange(9):
            case 0 if at < len(made):
                made[at] ^= 1 << rng.randrange(8)
            case 1:
                made[at:stop] = rng.randbytes(stop - at)
            case 2:
                del made[at:stop]
            case 3:
                made[at:at] = rng.choice([b"\0", b"\xff", b"\n", b"[", b'"', b"\x80"]) * rng.choice(
                    [1, 4, 64, 2000]
                )
            case 4:
                times = rng.choice([2, 2, 3, 50, LARGEST_BYTES // (stop - at + 1)])
                made[at:stop] = (bytes(made[at:stop]) * times)[:LARGEST_BYTES]
            case 5 if others:
                other = rng.choice(others)
                first = rng.randrange(len(other) + 1)
                made[at : rng.choice([at, stop])] = other[first : first + rng.choice([8, 64, 1000])]
            case 6:
                kind = rng.choice("BHIQ")
                number = rng.choice(HUGE) & (1 << 8 * struct.calcsize(kind)) - 1
                made[at : at + struct.calcsize(kind)] = struct.pack(f"<{kind}", number)
            case 7:
                numbers = list(_NUMBER.finditer(made))
                if numbers:
                    found = rng.choice(numbers)
                    made[found.start() : found.end()] = str(rng.choice(HUGE)).encode()
            case _:
                del made[rng.randrange(len(made) + 1) :]
    return bytes(made)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of every value in a JSON value."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        found += [(node, key) for key in keys]
        waiting += [node[key] for key in keys]
    return found


def change_value(rng: random.Random, value: Any, others: Sequence[Any] = ()) -> Any:
    """Return a changed copy of a JSON value, possibly with parts of `others`, which are values of the same kind."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        found = places(value)
        if not found:
            return rng.choice(VALUES)
        node, key = rng.choice(found)
        match rng.randrange(9):
            case 0:
                node[key] = rng.choice(VALUES)
            case 1:
                node[key] = rng.choice(HUGE)
            case 2:
                del node[key]
            case 3:  # another part of the same document, or of another one
                source = rng.choice([value, *others])
                there = places(source)
                if there:
                    other, name = rng.choice(there)
                    node[key] = copy.deepcopy(other[name])
            case 4 if isinstance(node, list):
                times = rng.choice(
                    [1, 1, 2, 100, max(1, LARGEST_BYTES // 8 // (len(json.dumps(node[key])) + 1))]
                )
                node[key:key] = [node[key]] * times
            case 5 if isinstance(node, dict):
                name = rng.choice([*(name for _, name in found if isinstance(name, str)), "é", ""])
                node[name] = node.pop(key) if rng.random() < 0.5 else copy.deepcopy(node[key])
            case 6:
                for _ in range(rng.choice([1, 1, 5, 150])):
                    node[key] = rng.choice([[node[key]], {"type": node[key]}, {"a": node[key]}])
            case 7 if isinstance(node[key], str):
                node[key] = change_text(rng, node[key])
            case _ if type(node[key]) is int:
                node[key] += rng.choice([-1, 1, 1, 2**32])
            case _ if isinstance(node, list):
                rng.shuffle(node)
    return value


def change_json(rng: random.Random, value: Any, others: Sequence[Any] = ()) -> bytes:
    """Return the JSON text of a changed value, sometimes with changes no value has: duplicate keys, deep nesting."""
    data = json.dumps(change_value(rng, value, others), ensure_ascii=rng.random() < 0.5).encode(
        errors="surrogatepass"
    )
    if rng.random() < 0.02:
        depth = rng.choice([1000, 100_000])
        at = data.find(b":") + 1
        data = data[:at] + b"[" * depth + b"]" * depth + data[at:]
    return change_bytes(rng, data) if rng.random() < 0.05 else data


_FRAGMENTS = (
    *r"""+ * ? {3} {0,} {1000} {2,99999} ( ) [ ] [^ (?: (?i: (?! (?<= \p{L} \P{Nd} \s \S \w \b \K \G
    \1 (?<n>a)\k<n> (?R) | || ^ $ \p{ \x{110000} \u0000 && -- [[:alpha:]] (?# (a|b)* (?:a?){50}a{50} \ é 漢""".split(),
    "",
)


def change_text(rng: random.Random, text: str) -> str:
    """Return a text, usually an expression, with parts removed, inserted, duplicated and repeated."""
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(text) + 1)
        stop = min(len(text), at + rng.choice([1, 2, 5, 20]))
        match rng.randrange(4):
            case 0:
                text = text[:at] + rng.choice(_FRAGMENTS) + text[at:]
            case 1:
                text = text[:at] + text[stop:]
            case 2:
                text = text[:at] + text[at:stop] * rng.choice([2, 3, 40]) + text[stop:]
            case _:
                text = text[:at] + rng.choice(_FRAGMENTS) + text[stop:]
    return text[:LARGEST_BYTES]


Field = tuple[int, int, int | bytes]


def fields_of(message: bytes) -> list[Field]:
    """Return the fields of a message, or none if it is not a message."""
    try:
        return [
            (n, kind, v if isinstance(v, int) else bytes(v)) for n, kind, v in fields(memoryview(message))
        ]
    except BadTokenizer:
        return []


def message_of(found: Sequence[Field]) -> bytes:
    """Return the message with these fields."""
    made = bytearray()
    for number, kind, value in found:
        if isinstance(value, int):
            made += varint_field(number, value)
        elif kind == FIXED32:
            made += float_field(number, struct.unpack("<f", value)[0])
        else:
            made += bytes_field(number, value)
    return bytes(made)


def change_message(rng: random.Random, message: bytes, depth: int = 2) -> bytes:
    """Return a Protocol Buffers message with changes in its fields or in nested messages."""
    found = fields_of(message)
    if not found or rng.random() < 0.03:
        return change_bytes(rng, message)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(found))
        number, kind, value = found[at]
        match rng.randrange(6):
            case 0:
                found[at:at] = [found[at]] * rng.choice([1, 2, 100])
            case 1 if len(found) > 1:
                del found[at]
            case 2:
                found[at] = rng.choice([number, number + 1, 1, 2, 3, 500]), kind, value
            case 3:
                other = rng.randrange(len(found))
                found[at], found[other] = found[other], found[at]
            case _ if kind == VARINT:
                found[at] = number, kind, rng.choice([0, 1, 2, 3, 4, 5, 6, 7, *HUGE]) & 2**64 - 1
            case _ if kind == FIXED32:
                changed = rng.choice(
                    [0.0, -1.0, -2.0, float("nan"), float("inf"), -float("inf"), 1e38, -1e-45]
                )
                found[at] = number, kind, struct.pack("<f", changed)
            case _ if isinstance(value, bytes):
                inner = change_message(rng, value, depth - 1) if depth else change_bytes(rng, value)
                found[at] = number, kind, inner
    return message_of(found)
