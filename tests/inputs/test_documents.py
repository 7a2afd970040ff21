"""Reading a file in any parts and blocks gives the documents that a naive reader finds in the whole file."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import chain, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readings import KeptIntake, json_text, read, read_parts, source_of
from strategies import COMPRESSIONS, compressed

from tokenmill.inputs.documents import Buffers, LongText, Reading
from tokenmill.inputs.errors import FatalInput
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Piece, Source

SEPARATORS = [b"|", b"<s>", b"\n\n", b"aa", b"aaa", b"aXa", b"abaab", b"abab", b"<|endoftext|>", "…".encode()]
INVALID = [b"\xff", b"\xe2\x82", b"\xf0\x9f\x99", b"\x80"]
LINES = [
    b'{"text": "good"}',
    '{"id": [1, {"a": null}], "text": "é\\n🙂"}'.encode(),
    b'{"text": "' + b"long " * 30 + b'"}',
    b"",
    b" \t\r",
    b'{"text": 1}',
    b'{"text": "cut',
    b'{"body": "a"}',
    b'{"text": "\xff"}',
    b'{"text": "' + b"x" * 300 + b'"} x',
    b" " * 90,
    b" " * 300,
]


@st.composite
def texts(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """(a separator, a text with many of them, near misses and sometimes invalid bytes)."""
    separator = draw(st.sampled_from(SEPARATORS))
    parts = [separator, separator, separator[:1], separator[:-1], b"x", b"yyyyyyyy", "é🙂".encode()]
    parts += INVALID if draw(st.booleans()) else []
    text = b"".join(draw(st.lists(st.sampled_from(parts), max_size=30)))
    return separator, text if text[:1].isascii() else b"x" + text  # not the mark of UTF-16


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    data = b"\n".join(draw(st.lists(st.sampled_from(LINES), max_size=15)))
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + data + draw(st.sampled_from([b"", b"\n"]))


def naive_texts(text: bytes, separator: bytes, rules: IntakeRules) -> tuple[list[str], list[int]]:
    """(the good documents, the offsets of the bad ones)."""
    documents = text.split(separator)
    offsets = [0]
    for document in documents:
        offsets.append(offsets[-1] + len(document) + len(separator))
    if not documents[-1]:  # no document after a separator at the end, and none in an empty file
        documents.pop()
    return _naive(documents, offsets, rules)


def _naive(documents: list[bytes], offsets: list[int], rules: IntakeRules) -> tuple[list[str], list[int]]:
    good, bad = [], []
    for document, offset in zip(documents, offsets, strict=False):
        try:
            good.append(document.decode(errors="replace" if rules.invalid == "replace" else "strict"))
        except UnicodeDecodeError:
            bad.append(offset)
    return good, bad


def naive_lines(data: bytes, rules: IntakeRules) -> tuple[list[str], list[tuple[int, int]]]:
    """(the good documents, (offset, line) of the bad ones)."""
    good, bad = [], []
    offset = 0
    for number, line in enumerate(data.split(b"\n")):
        record = line[3:] if number == 0 and line.startswith(b"\xef\xbb\xbf") else line
        start = offset + len(line) - len(record)
        text = None
        with suppress(UnicodeDecodeError):
            text = json_text(record.decode(errors="replace" if rules.invalid == "replace" else "strict"))
        if text is not None and len(record) <= rules.max_record_bytes:
            good.append(text)
        elif record.strip(b" \t\r") or len(record) > rules.max_record_bytes:
            bad.append((start, number))
        offset += len(line) + 1
    return good, bad


def cuts_of(draw: st.DataObject, size: int) -> list[int]:
    inner = draw.draw(st.lists(st.integers(1, max(1, size - 1)), unique=True, max_size=6)) if size > 1 else []
    step = draw.draw(st.sampled_from([0, 0, 1, 2, 3, 7]))
    return [0, *sorted({*inner, *(range(step, size, step) if step else ())}), size] if size else [0, 0]


@pytest.mark.promise("input-formats")
@given(
    case=texts(),
    compression=st.sampled_from(COMPRESSIONS),
    invalid=st.sampled_from(["error", "replace"]),
    data=st.data(),
)
@settings(deadline=None)
def test_text(
    case: tuple[bytes, bytes],
    compression: str,
    invalid: str,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    separator, text = case
    members = data.draw(st.integers(1, 3))
    source = _write(tmp_path_factory, "txt", compression, compressed(text, compression, members))
    intake = KeptIntake(IntakeRules(on_error="quarantine", invalid=invalid))
    cuts = cuts_of(data, source.size_bytes)
    found = read_parts(source, cuts, intake, separator, data.draw(st.integers(1, 40)))
    good, bad = naive_texts(text, separator, intake.rules)
    assert found == good
    assert [record.place for record in intake.kept] == bad
    assert intake.records == len(good) + len(bad)


@pytest.mark.promise("input-formats")
@given(
    content=lines(),
    compression=st.sampled_from(COMPRESSIONS),
    invalid=st.sampled_from(["error", "replace"]),
    data=st.data(),
)
@settings(deadline=None)
def test_json_lines(
    content: bytes,
    compression: str,
    invalid: str,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    source = _write(tmp_path_factory, "jsonl", compression, compressed(content, compression))
    limit = data.draw(st.sampled_from([100, 1000]))
    intake = KeptIntake(IntakeRules(on_error="quarantine", invalid=invalid, max_record_bytes=limit))
    found: list[str] = []
    kept: list[tuple[int, int]] = []
    before = 0
    for part in pairwise(cuts_of(data, source.size_bytes)):
        found += read_parts(source, part, intake, block_bytes=data.draw(st.integers(1, 80)))
        kept += [(record.place, before + (record.line or 0)) for record in intake.kept]
        before += sum(count for _, count in intake.lines)
        intake.kept, intake.lines = [], []
    assert (found, kept) == naive_lines(content, intake.rules)
    assert intake.records == len(found) + len(kept)


@given(case=texts(), compression=st.sampled_from(COMPRESSIONS[1:]), data=st.data())
@settings(deadline=None)
def test_a_truncated_file_gives_the_documents_before_the_end(
    case: tuple[bytes, bytes], compression: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    separator, text = case
    whole = compressed(text, compression)
    stop = data.draw(st.integers(1, len(whole) - 1))
    source = _write(tmp_path_factory, "txt", compression, whole[:stop])
    intake = KeptIntake(IntakeRules(on_error="skip"))
    found = read_parts(source, [0, stop], intake, separator, data.draw(st.integers(1, 40)))
    assert found == naive_texts(text, separator, intake.rules)[0][: len(found)]
    ((_, error),) = intake.unreadable
    assert error.startswith(f"{source.path}: byte {stop}: truncated")


def _write(factory: pytest.TempPathFactory, form: str, compression: str, content: bytes) -> Source:
    path = factory.getbasetemp() / f"in.{form}{'' if compression == 'none' else f'.{compression}'}"
    path.write_bytes(content)
    return source_of(path)


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
