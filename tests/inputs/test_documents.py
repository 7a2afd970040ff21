"""Reading a file in any parts and blocks gives the documents that a naive reader finds in the whole file."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import strategies as st
from readings import KeptIntake, read, read_parts, source_of

from tokenmill.inputs.documents import Buffers, LongText, Reading
from tokenmill.inputs.errors import FatalInput
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Piece

SEPARATORS = [b"|", b"<s>", b"\n\n", b"aa", b"aaa", b"aXa", b"abaab", b"abab", b"<|endoftext|>", "…".encode()]
INVALID = [b"\xff", b"\xe2\x82", b"\xf0\x9f\x99", b"\x80"]


@st.composite
def texts(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """(a separator, a text with many of them, near misses and sometimes invalid bytes)."""
    separator = draw(st.sampled_from(SEPARATORS))
    parts = [separator, separator, separator[:1], separator[:-1], b"x", b"yyyyyyyy", "é🙂".encode()]
    parts += INVALID if draw(st.booleans()) else []
    text = b"".join(draw(st.lists(st.sampled_from(parts), max_size=30)))
    return separator, text if text[:1].isascii() else b"x" + text  # not the mark of UTF-16


@pytest.mark.promise("memory")
def test_memory_is_that_of_two_blocks_whatever_the_document(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes(b"short|" + b"long " * 100_000 + b"|short")
    source, buffers, largest = source_of(path), Buffers(1000), 0
    intake = KeptIntake(IntakeRules())
    with Reading(0, source, Piece(0, 0, source.size_bytes), intake, b"|", buffers) as reading:
        for event in reading.documents():
            for piece, _ in event.pieces if isinstance(event, LongText) else ():
                largest = max(largest, len(memoryview(piece)))
    assert 0 < largest <= len(buffers.text.memory) <= 2001


@pytest.mark.parametrize("name", ["in.txt", "in.jsonl"])
def test_a_document_longer_than_many_parts_belongs_to_the_first(name: str, tmp_path: Path) -> None:
    separator = b"|" if name.endswith("txt") else b"\n"
    long = [json.dumps({"text": letter * 300_000}).encode() for letter in "ab"]
    (tmp_path / name).write_bytes(separator.join(long))
    source, intake = source_of(tmp_path / name), KeptIntake(IntakeRules())
    counts = [
        len(read_parts(source, (start, min(start + 100_000, source.size_bytes)), intake, b"|"))
        for start in range(0, source.size_bytes, 100_000)
    ]
    assert counts == [1, 0, 0, 1, 0, 0, 0]


def test_a_run_of_separators_is_read_whole_by_one_part(tmp_path: Path) -> None:
    """None of the separators in it is free of overlaps, but the first."""
    path = tmp_path / "in.txt"
    path.write_bytes(b"a" + b"\n" * 300_001 + b"b")
    source, intake = source_of(path), KeptIntake(IntakeRules())
    documents = [
        read_parts(source, (start, min(start + 100_000, source.size_bytes)), intake, b"\n\n")
        for start in range(0, source.size_bytes, 100_000)
    ]
    assert [*chain(*documents)] == ["a", *[""] * 149_999, "\nb"]
    assert [len(own) for own in documents] == [150_001, 0, 0, 0]


@pytest.mark.parametrize("name", ["in.txt", "in.jsonl"])
def test_a_file_that_shrank_while_it_was_read_is_an_error(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"abc")
    source = source_of(path)._replace(size_bytes=10)
    for part in ((0, 10), (0, 4), (2, 10)):
        with pytest.raises(FatalInput, match="byte 3"):
            read_parts(source, part, KeptIntake(IntakeRules(on_error="skip")))


@pytest.mark.promise("bad-records")
def test_the_line_of_a_bad_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"text": "a"}\n' * 100 + b"bad\n")
    for parts in (1, 3):
        with pytest.raises(FatalInput, match=rf"in\.jsonl: line 101 \(byte {14 * 100}\): "):
            read(path, parts)
