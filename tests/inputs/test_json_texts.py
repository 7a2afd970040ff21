"""json_texts agrees with Python's json on every line: the same lines are good, with the same text."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from json_rows import ROWS, oracle, texts

from tokenmill.inputs import _core


@pytest.mark.parametrize("name", ROWS)
def test_lines_of_every_kind(name: str) -> None:
    lines, expected, faults = ROWS[name]
    found, told, answer = texts(lines)
    assert (found, told) == (expected, faults)
    assert answer[3] == lines.count(b"\n") + (not lines.endswith(b"\n"))
    for start, stop, place, _ in answer[2]:
        assert start <= place <= stop <= len(lines)


@pytest.mark.parametrize(
    ("path", "line", "expected"),
    [
        (("a", "b"), '{"a":{"c":1,"b":"x"}}', ["x"]),
        (("a", "1"), '{"a":["no","x","no"]}', ["x"]),
        (("a", "1"), '{"a":{"1":"x"}}', ["x"]),
        (("0",), '["x"]', ["x"]),
        (("a", "01"), '{"a":["no","x"]}', []),
        (("a", "2"), '{"a":["no","x"]}', []),
        (("a", "b"), '{"a":"no"}', []),
        (("a", "0"), '{"a":[],"b":true}', []),
        (("a/b",), '{"a/b":"x"}', ["x"]),
        (("",), '{"":"x"}', ["x"]),
        (("é",), '{"\\u00e9":"x"}', ["x"]),
    ],
)
def test_paths(path: tuple[str, ...], line: str, expected: list[str]) -> None:
    found, faults, _ = texts(line.encode(), path)
    assert found == expected
    assert faults == ([] if expected else ["missing"])


def test_surrogates_can_be_replaced_and_long_lines_refused() -> None:
    found, _, answer = texts(rb'{"text":"a\ud800\udfffb\udc00\ud800"}', replace_surrogates=True)
    assert found == ["a\U000103ffb\ufffd\ufffd"]
    assert answer[5] == 2
    found, faults, _ = texts(b'{"text":"a"}\n{"text":"ab"}\n', max_line_bytes=12)
    assert (found, faults) == (["a"], ["too_long"])


def test_where_a_line_begins() -> None:
    _, _, answer = texts(b'{"text":"a"}\n\nbad\n{"text":"b"}')
    assert answer[1].tolist() == [0, 18]
    assert answer[2] == [(14, 17, 14, "syntax")]
    assert answer[3:] == (4, 1, 0)


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="path"):
        _core.json_texts(b"", [], np.empty(16, np.uint8))
    with pytest.raises(ValueError, match="room for 15 bytes; lines of 1 bytes need 17"):
        _core.json_texts(b"x", [b"text"], np.empty(15, np.uint8))


@pytest.mark.parametrize("ascii_only", [True, False])
def test_sizes_around_every_block(ascii_only: bool) -> None:
    for length in range(70):
        text = "".join(random.Random(length).choices(['"', "\\", "\n", "é", "🙂", "x", "y", "z"], k=length))
        line = json.dumps({"id": 1, "text": text, "x": [text]}, ensure_ascii=ascii_only).encode()
        assert texts(line)[:2] == ([text], [])
        for stop in range(0, len(line), 7):
            cut = line[:stop].decode(errors="ignore").encode()
            found, faults, _ = texts(cut + b"\n" + line)
            assert found == [text]
            assert faults in ([["cut"], ["surrogate"]] if cut else [[]])


def test_the_same_lines_as_python_takes() -> None:
    rng = random.Random(11)
    parts = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"text"',
        '"a"',
        '"é\\n"',
        '"\\u00e9"',
        '"\\ud83d\\ude42"',
        '"\\ud800"',
    ]
    parts += ["1", "-0", "1.5e3", "null", "true", " ", "\\", '"', "x", "\t", '"text":"v"', '"k":2', "\u2028"]
    seeds = [
        '{"text":"abc","k":[1,{"x":null}]}',
        '{"k":{"text":1},"text":"d\\u0065"}',
        '{"a":-1.5e-3,"text":""}',
    ]
    good = 0
    for index in range(30_000):
        if index % 3:
            line = list(rng.choice(seeds))
            for _ in range(rng.randrange(3)):
                place = rng.randrange(len(line) + 1)
                line[place : place + rng.randrange(2)] = [rng.choice(parts)]
            text = "".join(line)
        else:
            text = "".join(rng.choices(parts, k=rng.randrange(12)))
        data = text.encode()
        found, faults, answer = texts(data)
        if not data.strip(b" \t\r"):
            assert (found, faults, answer[4]) == ([], [], len(data) > 0)
            continue
        expected = oracle(data)
        assert found == ([] if expected is None else [expected]), data
        assert len(faults) == (expected is None)
        good += len(found)
    assert good > 1000
