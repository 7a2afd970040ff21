"""CSV and TSV against Python's csv writer, and what is no good row told with file and row."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest
from input_kinds import compressed
from readings import read

from tokenmill.inputs.errors import BadInput, InvalidText
from tokenmill.inputs.intake import INVALID_UTF8, MALFORMED

TEXTS = [
    "",
    "a",
    'say "hi"',
    '"',
    '""',
    "a,b\tc",
    "two\nlines",
    "cr\rlf\r\n",
    "größer 🙂",
    " x ",
    "\n",
    "\x00",
]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "tsv.zst"])
def test_rows_as_they_were_written(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenmill.inputs.documents.MAX_BATCH_ROWS", 3)
    rng = random.Random(suffix)
    for number, ends in enumerate(["\r\n", "\n"]):
        texts = [*TEXTS, *("".join(rng.choices(TEXTS, k=5)) for _ in range(30))]
        path = tmp_path / f"{number}.{suffix}"
        plain = tmp_path / "plain"
        with plain.open("w", newline="", encoding="utf-8") as file:
            if number:
                file.write("\ufeff")
            delimiter = "," if suffix.startswith("csv") else "\t"
            quoting = csv.QUOTE_ALL if number else csv.QUOTE_MINIMAL
            writer = csv.writer(file, delimiter=delimiter, lineterminator=ends, quoting=quoting)
            writer.writerows([("id", "text", "more"), *((n, text, "x") for n, text in enumerate(texts))])
        _, _, compression = suffix.partition(".")
        path.write_bytes(compressed(plain.read_bytes(), compression or "none", 3))
        for pieces in (1, 2, 7):
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
