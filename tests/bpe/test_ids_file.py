"""Files of IDs: three formats, round trips in blocks; a bad file gives one line that names the ID."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from cli_calls import failed, run

from bpe.cli.ids_file import format_of, read_ids, write_ids
from bpe.errors import InvalidText


@pytest.mark.parametrize("form", ["text", "npy", "bin"])
@pytest.mark.parametrize("lists", [[], [[]], [[7]], [[1, 2], [], [3], [2**31 - 1]]], ids=len)
def test_ids_round_trip(form, lists):
    file = io.BytesIO()
    expected = [id_ for ids in lists for id_ in ids]
    assert write_ids(file, [lists], form, [3]) == len(expected)
    file.seek(0)
    assert [int(id_) for block in read_ids(file, form, "f") for id_ in block] == expected


def test_a_line_of_text_ends_after_an_end_token_and_a_document():
    file = io.BytesIO()
    assert write_ids(file, [[[1, 2], [3, 4]], [], [[5]]], "text", [3]) == 5
    assert file.getvalue() == b"1 2 3\n4\n5\n"


def test_a_record_without_ids_had_no_line_so_that_lines_were_not_those_of_the_records():
    file = io.BytesIO()
    assert write_ids(file, [[], [[1, 2], [3, 4]], [], [[5]], [[]]], "text", None) == 5
    assert file.getvalue() == b"\n1 2 3 4\n\n5\n\n"


def test_text_ids_across_blocks(monkeypatch):
    monkeypatch.setattr("bpe.cli.ids_file._BLOCK", 3)
    file = io.BytesIO(b" 1 22 333\n4444 55555 ")
    assert [id_ for block in read_ids(file, "text", "f") for id_ in block] == [1, 22, 333, 4444, 55555]


def test_formats_by_name():
    assert [format_of(name) for name in ("a.npy", "a.bin", "a.txt", "-")] == ["npy", "bin", "text", "text"]


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"x 1 2", "ids", "ids: ID number 0 "),
        (b"-2 1", "ids", "ID number 0 .*'-2'"),
        (b"99999", "ids", "99999"),
        (b"12345", "ids.bin", r"ids\.bin: .*5"),
        (b"abc", "ids.npy", r"ids\.npy: "),
    ],
)
def test_bad_ids(capfdbinary, tokenizer_file, tmp_path, data, name, message):
    (tmp_path / name).write_bytes(data)
    failed(capfdbinary, 3, message, "decode", "--tokenizer", tokenizer_file, tmp_path / name)


HEADER = b"\x93NUMPY\x01\x00\x46\x00"


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<u4', 'fortran_order': False, 'shape': (5,",
        b"{'descr': '<u4', 'fortran_order': False, 'shape': ((((((((((",
        b"{'descr': '<u4', 'fortran_order': False, 'shape': (9000000000000000,)}",
        b"{'descr': '<x4', 'fortran_order': False, 'shape': (1,)}",
        b"{'descr': [], 'fortran_order': False, 'shape': (1,)}",
        b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        b"\x00\xff",
    ],
)
def test_damaged_npy_headers(capfdbinary, tokenizer_file, tmp_path, header):
    """For some headers, numpy raises errors of Python's tokenizer."""
    (tmp_path / "ids.npy").write_bytes(HEADER + header.ljust(69) + b"\n")
    failed(capfdbinary, 3, "ids.npy: ", "decode", "--tokenizer", tokenizer_file, tmp_path / "ids.npy")


def test_npy_through_a_pipe(tokenizer_file, tmp_path):
    np.save(tmp_path / "ids.npy", np.array([97, 98], np.uint32))
    command = [sys.executable, "-m", "bpe", "decode", "--tokenizer", tokenizer_file]
    expected = subprocess.run([*command, tmp_path / "ids.npy"], capture_output=True, check=True).stdout
    with subprocess.Popen(["cat", tmp_path / "ids.npy"], stdout=subprocess.PIPE) as cat:
        piped = subprocess.run(
            [*command, "--format", "npy"], stdin=cat.stdout, capture_output=True, check=False
        )
    assert (piped.returncode, piped.stdout, piped.stderr) == (0, expected, b"")


def test_bad_npy(capfdbinary, tokenizer_file, tmp_path):
    np.save(tmp_path / "ids.npy", np.zeros((2, 2), np.float32))
    failed(
        capfdbinary,
        3,
        r"/ids\.npy: .*2-dimensional float32",
        "decode",
        "--tokenizer",
        tokenizer_file,
        tmp_path / "ids.npy",
    )


def test_bad_ids_in_a_later_block(monkeypatch, capfdbinary, tokenizer_file, tmp_path):
    """The IDs before it are written, and the error gives the index from the start."""
    monkeypatch.setattr("bpe.cli.ids_file._BLOCK", 4)
    (tmp_path / "ids").write_bytes(b"97 98 99 x")
    code, out, err = run(capfdbinary, "decode", "--tokenizer", tokenizer_file, tmp_path / "ids")
    assert (code, out) == (3, b"abc")
    assert "ids: ID number 3 " in err
    (tmp_path / "ids").write_bytes(b"97 98 99 9999")
    code, out, err = run(capfdbinary, "decode", "--tokenizer", tokenizer_file, tmp_path / "ids")
    assert (code, out) == (3, b"abc")
    assert "9999" in err
    assert "number 3 of" in err


def test_a_number_without_an_end_is_not_waited_for(monkeypatch):
    """/dev/zero passed as a file of IDs was read forever, each block together with all earlier ones."""
    monkeypatch.setattr("bpe.cli.ids_file._BLOCK", 8)
    file = io.BytesIO(b"12 " + b"\0" * 1000)
    with pytest.raises(InvalidText, match="f: ID number 1 "):
        list(read_ids(file, "text", "f"))
    assert file.tell() <= 32
