"""JSON Lines agree with Python's json on every line: the same lines are good, with the same text."""

from __future__ import annotations

import codecs
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readings import json_text, read

from tokenmill.inputs.errors import FatalInput

DEEP = b'{"n":' + b"[" * 100_000 + b"]" * 100_000 + b',"text":"a"}'
GOOD = {
    b' {"id": 1, "text" : "a b" , "meta": {"text": "no"}} ': "a b",
    rb'{"text":"\"\\\/\b\f\n\r\t\u0041\u00e9\u6771\ud83d\ude42\u0000"}': '"\\/\b\f\n\r\tAé東🙂\0',
    rb'{"t\u0065xt":"a"}': "a",
    b'{"text":""}\r': "",
    b'{"n":' + b"1" * 5000 + b',"text":"a","x":1e999,"y":-0.5E-7}': "a",
    DEEP: "a",
    '{"text":"a\u2028\u0085b"}'.encode(): "a\u2028\u0085b",
    rb'{"x":"\ud800","text":"a"}': "a",
    b'{"x":[Infinity,-Infinity ,{"y":NaN}, []],"text":"a","z":{}}': "a",
}
BAD = {
    "malformed": [
        *(
            b'{"text":"a',
            b'{"text":"a\\',
            b'{"text":"\\u00',
            b'{"text":"a"',
            b'{"text":"a"}{"text":"b"}',
            b"hello",
        ),
        *(
            b'{"text":"a","x":Na',
            b'{"text":"a","x":nan}',
            b'{"text":"a","x":+Infinity}',
            b'{"text":"a","x":?""}',
        ),
        *(
            b'{"text":"a",}',
            b'{"text":"a","x":[1,]}',
            b'{"text":"a","x":[,1]}',
            b"{'text':'a'}",
            b'{"text" "a"}',
        ),
        *(b'{"text":"a\tb"}', b'{"x":"\x01","text":"a"}', rb'{"text":"\q"}', rb'{"x":"\u12g4","text":"a"}'),
        *(b'{"text":"a","x":01}', b'{"text":"a","x":1.}', b'{"text":"a","x":1e+}', b'{"text":"a","x":-}'),
        *(b'{"text":"a","x":[1}}', b'{"text":"a","x":{"y":1]}', DEEP[:-1]),
    ],
    "field twice": [b'{"text":"a","text":"b"}', rb'{"text":"a","t\u0065xt":"b"}'],
    "field missing": [b'{"txt":"a"}', b"{}"],
    "not a text": [
        b'{"text":%b}' % value for value in (b"null", b"true", b"-1.5", b"NaN", b'["a"]', b'{"a":1}')
    ],
    "not an object": [b'["a"]', b'"a"', b"null", b"7"],
    "invalid UTF-8": [
        rb'{"text":"a\ud800"}',
        rb'{"text":"\udc00b"}',
        rb'{"text":"\ud800\ud800\udc00"}',
        b'{"text":"\xff"}',
    ],
}


def lines_of(
    data: bytes, tmp_path: Path, **rules: Any
) -> tuple[list[str], list[tuple[str, int, int | None]]]:
    """(texts, (reason, offset, line) of bad lines)."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    documents, intake = read(path, on_error="quarantine", block_bytes=4 << 20, **rules)
    assert intake.records == len(documents) + len(intake.kept)
    return documents, [(record.reason, record.place, record.line) for record in intake.kept]


def test_good_and_bad_lines(tmp_path: Path) -> None:
    rng = random.Random(1)
    lines = [(line, text, "") for line, text in GOOD.items()]
    lines += [(line, "", reason) for reason, bad in BAD.items() for line in bad]
    rng.shuffle(lines)
    documents, kept = lines_of(b"\n \t\r\n".join(line for line, *_ in lines), tmp_path)
    assert documents == [text for _, text, reason in lines if not reason]
    offset, expected = 0, []
    for number, (line, _, reason) in enumerate(lines):
        if reason:
            expected.append((reason, offset, 2 * number))
        offset += len(line) + 5
    assert kept == expected


@pytest.mark.parametrize(
    ("field", "line", "expected"),
    [
        ("/a/b", '{"a":{"c":1,"b":"x"}}', ["x"]),
        ("/a/1", '{"a":["no","x","no"]}', ["x"]),
        ("/a/1", '{"a":{"1":"x"}}', ["x"]),
        ("/0", '["x"]', ["x"]),
        ("/a/01", '{"a":["no","x"]}', []),
        ("/a/2", '{"a":["no","x"]}', []),
        ("/a/b", '{"a":"no"}', []),
        ("/a~1b", '{"a/b":"x"}', ["x"]),
        ("/", '{"":"x"}', ["x"]),
        ("é", '{"\\u00e9":"x"}', ["x"]),
    ],
)
def test_paths(field: str, line: str, expected: list[str], tmp_path: Path) -> None:
    documents, kept = lines_of(line.encode(), tmp_path, text_field=field)
    assert documents == expected
    assert [reason for reason, *_ in kept] == ([] if expected else ["field missing"])


def test_surrogates_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(rb'{"text":"a\ud800\udfffb\udc00\ud800"}')
    documents, intake = read(tmp_path / "a.jsonl", invalid="replace")
    assert (documents, intake.replaced) == (["a\U000103ffb\ufffd\ufffd"], 2)


@pytest.mark.promise("limits")
def test_a_line_that_is_too_long(tmp_path: Path) -> None:
    data = b'{"text":"a"}\n{"text":"ab"}\n' + b" " * 13
    documents, kept = lines_of(data, tmp_path, max_record_bytes=12)
    assert (documents, kept) == (["a"], [("too long", 13, 1), ("too long", 27, 2)])


PARTS = ["\t", " ", "\u2028", "y" * 20]
PARTS += (
    r"""{ } [ ] , : "text" "a" "é\n" "\u00e9" "\ud83d\ude42" "\ud800" 1 -0 1.5e3 null true \ " x""".split()
)
PARTS += ['"text":"v"', '"k":2']
SEEDS = ['{"text":"abc","k":[1,{"x":null}]}', '{"k":{"text":1},"text":"d\\u0065"}', '{"a":-1.5e-3,"text":""}']


@st.composite
def any_line(draw: st.DrawFn) -> str:
    if draw(st.booleans()):
        return "".join(draw(st.lists(st.sampled_from(PARTS), max_size=12)))
    line = list(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(line)))
        line[place : place + draw(st.integers(0, 1))] = [draw(st.sampled_from(PARTS))]
    return "".join(line)


@given(st.lists(any_line(), max_size=40))
@settings(deadline=None)
def test_the_same_lines_as_python_takes(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    documents, kept = lines_of("\n".join(lines).encode(), tmp_path_factory.getbasetemp())
    records = [(number, json_text(line)) for number, line in enumerate(lines) if line.strip(" \t\r")]
    assert documents == [text for _, text in records if text is not None]
    assert [line for *_, line in kept] == [number for number, text in records if text is None]


def test_the_error_of_a_second_byte_order_mark_named_its_place_twice(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(codecs.BOM_UTF8 * 2 + b'{"text": "a"}\n')
    with pytest.raises(
        FatalInput, match=r"line 1 \(byte 3\): begins with a second byte order mark"
    ) as raised:
        read(tmp_path / "a.jsonl")
    assert str(raised.value).count("byte 3") == 1
