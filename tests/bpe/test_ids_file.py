"""Files of IDs: three formats, read in blocks; a bad file gives one line that names the ID."""

from __future__ import annotations

import io

import pytest

from bpe.cli.ids_file import IdsFormat, format_of, read_ids, write_ids
from bpe.errors import InvalidText


@pytest.mark.parametrize("form", ["text", "npy", "bin"])
@pytest.mark.parametrize("lists", [[], [[]], [[7]], [[1, 2], [], [3], [2**31 - 1]]], ids=len)
def test_ids_round_trip(form: IdsFormat, lists: list[list[int]]) -> None:
    file = io.BytesIO()
    expected = [id_ for ids in lists for id_ in ids]
    assert write_ids(file, [lists], form, [3]) == len(expected)
    file.seek(0)
    assert [int(id_) for block in read_ids(file, form, "f") for id_ in block] == expected


def test_lines_of_text() -> None:
    """A line ends after an end token and after a document. A record without IDs had no line."""
    file = io.BytesIO()
    assert write_ids(file, [[[1, 2], [3, 4]], [], [[5]]], "text", [3]) == 5
    assert file.getvalue() == b"1 2 3\n4\n5\n"
    file = io.BytesIO()
    assert write_ids(file, [[], [[1, 2], [3, 4]], [], [[5]], [[]]], "text", None) == 5
    assert file.getvalue() == b"\n1 2 3 4\n\n5\n\n"


def test_formats_by_name() -> None:
    assert [format_of(name) for name in ("a.npy", "a.bin", "a.txt", "-")] == ["npy", "bin", "text", "text"]


@pytest.mark.parametrize("block", [1, 3, 4, 1 << 20])
def test_text_in_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The IDs before a bad one are read, and the error gives its index from the start."""
    monkeypatch.setattr("bpe.cli.ids_file._BLOCK", block)
    expected = [1, 22, 333, 4444, 55555]
    blocks = read_ids(io.BytesIO(b" 1 22 333\n4444 55555 "), "text", "f")
    assert [id_ for ids in blocks for id_ in ids] == expected
    for bad in (b"x", b"-2", b"1.5", b"1,2", b"99999999999"):
        with pytest.raises(InvalidText, match="f: ID number 5 "):
            list(read_ids(io.BytesIO(b" 1 22 333\n4444 55555 " + bad), "text", "f"))


def test_a_number_without_an_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """/dev/zero passed as a file of IDs was read forever, each block together with all earlier ones."""
    monkeypatch.setattr("bpe.cli.ids_file._BLOCK", 8)
    file = io.BytesIO(b"12 " + b"\0" * 1000)
    with pytest.raises(InvalidText, match="f: ID number 1 "):
        list(read_ids(file, "text", "f"))
    assert file.tell() <= 32
