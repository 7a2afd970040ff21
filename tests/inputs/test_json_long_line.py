"""A line in pieces gives what the whole line gives: the same text, or the same fault at the same place."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from json_rows import ROWS, oracle, texts

from tokenmill.inputs import _core


def in_pieces(
    line: bytes, sizes: list[int], path: tuple[str, ...] = ("text",), replace: bool = False
) -> tuple[bytes, str, int, bool, int]:
    """(text, fault, place, is_blank, surrogates replaced) of a line cut into pieces of about these sizes, in turns."""
    parser = _core.JsonLongLine([name.encode() for name in path], replace)
    text, rest, start, turn = b"", b"", 0, 0
    final = False
    while not final:
        stop = min(len(line), start + sizes[turn % len(sizes)])
        while stop < len(line) and line[stop] & 0xC0 == 0x80:
            stop += 1
        piece, final = rest + line[start:stop], stop == len(line)
        out = np.full(len(piece) + 16, 0xEE, np.uint8)
        used, written = parser.feed(piece, final, out)
        assert used == len(piece) if final else used > len(piece) - 12
        out[:written].tobytes().decode()  # whole characters
        text += out[:written].tobytes()
        rest, start, turn = piece[used:], stop, turn + 1
    return text, parser.fault, parser.place, parser.is_blank, parser.replaced


def same_as_whole(
    line: bytes, path: tuple[str, ...] = ("text",), sizes: tuple[int, ...] = (1, 2, 3, 5, 7, 16, 33, 1000)
) -> None:
    for replace in (False, True):
        found, _, answer = texts(line, path, replace_surrogates=replace)
        *_, bad, lines, blank, replaced = answer
        assert lines <= 1
        for size in sizes:
            text, fault, place, is_blank, own = in_pieces(line, [size, 4, 1], path, replace)
            where = (line[:300], size, replace)
            assert is_blank == (blank == lines), where
            if found:
                assert (text.decode(), fault, own) == (found[0], "none", replaced), where
            elif bad:
                assert (fault, place) == (bad[0][3], bad[0][2]), where


SINGLE = {
    name: row[0] for name, row in ROWS.items() if b"\n" not in row[0].rstrip(b"\n") and len(row[0]) < 10_000
}


@pytest.mark.parametrize("line", SINGLE.values(), ids=SINGLE)
def test_every_row_of_whole_lines(line: bytes) -> None:
    same_as_whole(line.rstrip(b"\n"))


VALUES = [
    '"a"', '""', "1", "-0.5e+7", "0", "12.25", "1E9", "NaN", "Infinity", "-Infinity",
    "null", "true", "false", "[]", "{}", "[1,2]", '{"text":"no"}',
    '["x",{"y":[]},null]', '"\\ud83d\\ude42 \\u00e9\\n"', '"\\ud800"',
    '"\\ud800\\u0041"', '"é東🙂 more than a block"',
    '{"a":"in a"}', '[{"a":["deep"]}]', '"\\udc00x\\ud83d"',
]  # fmt: skip
BROKEN = [
    "nul", "tru", "-", "01", "1.", "1e", "1e+", ".5", "Nan", "-Infinit", "[1,]", "[,1]",
    '{"a"}', '{"a":}', '{"a":1,}', '"\\q"',
    '"\\u12g4"',
    '"\\ud83d\\u12g4"', '"\x01"', "'a'", "[1", '{"a":1', '"cut', '"cut\\', '"cut\\u12', '"cut\\ud83d\\u', "]", "}",
    "[}",
    "1 2", '{1:2}', "",
]  # fmt: skip
PATHS = [("text",), ("a", "text"), ("text", "a"), ("0",), ("text", "1"), ("a", "0", "a"), ("1", "text")]


@pytest.mark.parametrize("path", PATHS, ids="/".join)
def test_records_of_every_shape(path: tuple[str, ...]) -> None:
    rng = random.Random(len(path) * 31 + len(path[0]))
    names = ['"text"', '"a"', '"t\\u0065xt"', '"0"', '"1"', '"text and more"', '"\\ud800"', '"te"', '""']

    def value(depth: int) -> str:
        kind = rng.random()
        if depth and kind < 0.3:
            items = (
                f"{rng.choice(names)}{space()}:{space()}{value(depth - 1)}" for _ in range(rng.randrange(4))
            )
            return "{" + ",".join(items) + space() + "}"
        if depth and kind < 0.45:
            return "[" + space() + ",".join(value(depth - 1) for _ in range(rng.randrange(4))) + "]"
        return rng.choice(VALUES) if rng.random() < 0.97 else rng.choice(BROKEN)

    def space() -> str:
        return rng.choice(["", "", "", " ", "\t \r"])

    for _ in range(700):
        line = (space() + value(4) + space()).encode()
        if rng.random() < 0.3:
            line = line[: rng.randrange(len(line) + 1)].decode(errors="ignore").encode()
        same_as_whole(line, path, (1, 2, 7, 1000))


@pytest.mark.parametrize("width", [15, 16, 17, 31, 32, 33])
def test_sizes_around_every_block(width: int) -> None:
    for length in range(3 * width):
        text = "".join(random.Random(length).choices(['"', "\\", "\n", "é", "🙂", "x", "y", "z"], k=length))
        for ascii_only in (True, False):
            line = json.dumps({"id": 1, "text": text, "x": [text]}, ensure_ascii=ascii_only).encode()
            assert in_pieces(line, [width])[:2] == (text.encode(), "none")
            assert oracle(line) == text


def test_a_number_without_end_and_nesting_cost_no_memory_of_the_line() -> None:
    line = b'{"n":' + b"7" * 300_000 + b',"d":' + b"[" * 5000 + b"]" * 5000 + b',"text":"a"}'
    assert in_pieces(line, [4096])[:2] == (b"a", "none")


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="path"):
        _core.JsonLongLine([])
    with pytest.raises(ValueError, match="out"):
        _core.JsonLongLine([b"a"]).feed(b'{"a":1}', True, np.empty(3, np.uint8))
