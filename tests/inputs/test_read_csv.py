"""CSV and TSV against Python's csv writer, and bad rows reported by file and row."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from readings import read

from tokenmill.inputs.errors import BadInput, InvalidText


@pytest.mark.promise("input-formats")
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


@pytest.mark.promise("bad-records")
def test_bad_rows_are_reported_by_row(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b'\n\r\nid,text\n1,good\n2,bad,row\n\n3\n4,"x"y\n5,"ok"\n6,\xffz\n7,end')
    documents, intake = read(path, on_error="quarantine")
    assert documents == ["good", "ok", "end"]
    assert intake.blank == 3  # the first was taken for the header, and nothing was read at all
    assert [(record.reason, record.place, record.is_row) for record in intake.kept] == [
        *(("malformed", row, True) for row in (1, 2, 3)),
        ("invalid UTF-8", 5, True),
    ]
    assert intake.kept[-1].data == b"\xffz"
    with pytest.raises(BadInput, match=r"in\.csv.*row 1"):
        read(path)
    assert read(path, on_error="skip", invalid="replace")[0] == ["good", "ok", "\ufffdz", "end"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"id,body\n1,x\n", r"'text'.*id, body.*--text-field.*--on-error skip"),
        (b"id;text\n1;x\n", r"id;text.*';'"),
        (b"text,text\n1,x\n", "'text'"),
        (b'id,"te"xt\n1,x\n', ""),
        (b'id,text\n1,"never closed' + b"\n," * 60, "90 bytes .*--max-record-bytes"),
        (b"id,text\n1," + b"x" * 200, "90 bytes .*--max-record-bytes"),
        (b"\xff\xfei\0d\0", "UTF-16"),
    ],
)
def test_files_that_are_refused(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(data)
    with pytest.raises((BadInput, InvalidText), match=rf"in\.csv: .*{message}"):
        read(path, max_record_bytes=90)


@pytest.mark.parametrize("data", [b"", b"text\n", b"text"])
def test_no_rows(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(data)
    assert read(tmp_path / "in.csv")[0] == []
