"""CSV and TSV against Python's csv writer, and what is no good row told with file and row."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from readings import read

from tokenmill.inputs.errors import BadInput, InvalidText
from tokenmill.inputs.intake import INVALID_UTF8, MALFORMED


@pytest.mark.parametrize("quoting", [csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("ends", ["\r\n", "\n"])
def test_rows_in_every_style(ends: str, quoting: int, tmp_path: Path) -> None:
    texts = ["", "a", 'say "hi"', '""', "a,b\tc", "two\nlines", "cr\rlf\r\n", "größer 🙂", " x ", "\x00"]
    path = tmp_path / "in.csv"
    for mark in ("", "\ufeff"):
        with path.open("w", newline="", encoding="utf-8") as file:
            file.write(mark)
            writer = csv.writer(file, lineterminator=ends, quoting=quoting)
            writer.writerows([("id", "text", "more"), *((n, text, "x") for n, text in enumerate(texts))])
        for pieces in (1, 7):
            documents, intake = read(path, pieces)
            assert documents == texts
            assert (intake.records, intake.skipped, intake.blank) == (len(texts), {}, 0)


def test_bad_rows_are_told_by_row(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b'id,text\n1,good\n2,bad,row\n\n3\n4,"x"y\n5,"ok"\n6,\xffz\n7,end')
    documents, intake = read(path, on_error="quarantine")
    assert documents == ["good", "ok", "end"]
    assert intake.blank == 1
    assert [(record.reason, record.place, record.is_row) for record in intake.kept] == [
        (MALFORMED, 1, True),
        (MALFORMED, 2, True),
        (MALFORMED, 3, True),
        (INVALID_UTF8, 5, True),
    ]
    assert intake.kept[-1].data == b"\xffz"
    with pytest.raises(BadInput, match=r"in\.csv.*row 1"):
        read(path)
    assert read(path, on_error="skip", invalid="replace")[0] == ["good", "ok", "\ufffdz", "end"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"id,body\n1,x\n", r"in\.csv: .*'text'.*id, body.*--text-field.*--on-error skip"),
        (b"id;text\n1;x\n", r"in\.csv: .*id;text.*';'"),
        (b"text,text\n1,x\n", r"in\.csv: .*'text'"),
        (b'id,"te"xt\n1,x\n', r"in\.csv: "),
        (b'id,text\n1,"never closed' + b"\n," * 60, r"in\.csv: .*90 bytes .*--max-record-bytes"),
        (b"id,text\n1," + b"x" * 200, r"in\.csv: .*90 bytes .*--max-record-bytes"),
        (b"\xff\xfei\0d\0", r"in\.csv: .*UTF-16"),
    ],
)
def test_files_that_are_refused(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(data)
    with pytest.raises((BadInput, InvalidText), match=message):
        read(path, max_record_bytes=90)


def test_nothing_at_all(tmp_path: Path) -> None:
    for data in (b"", b"text\n", b"text"):
        (tmp_path / "in.csv").write_bytes(data)
        assert read(tmp_path / "in.csv")[0] == []


def test_blank_lines_before_the_header(tmp_path: Path) -> None:
    """The first was taken for the header, and nothing was read at all."""
    path = tmp_path / "in.csv"
    path.write_bytes(b"\n\r\nid,text\n1,a\n\n2,b\n")
    documents, intake = read(path)
    assert (documents, intake.records, intake.blank) == (["a", "b"], 2, 3)
