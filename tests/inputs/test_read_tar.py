"""Tar archives against Python's writer: all three forms, whatever is no file, and archives that are damaged."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from readings import read
from strategies import TAR_FORMATS, compressed, tar_bytes

from tokenmill.inputs.errors import BadInput, InvalidText
from tokenmill.inputs.intake import INVALID_UTF8, MALFORMED


def archive(files: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def test_bad_files_are_told_by_name(tmp_path: Path) -> None:
    files = {
        "in/0.txt": b"good",
        "in/1.txt": b"caf\xe9",
        "in/2.jsonl": b'{"text": "a"}\n',
        "in/3_data.xz": compressed(b"a", "xz"),
        "in/4.txt": b"too long" * 20,
        "in/5.json": b'{"a": 1}',
        "in/6.txt": archive({"a": b"a"}),
    }
    path = tmp_path / "in.tar"
    path.write_bytes(archive(files))
    documents, intake = read(path, on_error="quarantine", max_record_bytes=90)
    assert documents == ["good", '{"a": 1}']
    assert [(record.reason, record.place) for record in intake.kept] == [
        (INVALID_UTF8, 1),
        (MALFORMED, 2),
        (MALFORMED, 3),
        (MALFORMED, 4),
        (MALFORMED, 6),
    ]
    with pytest.raises(BadInput, match=r"in\.tar.*row 1.*in/1\.txt.*byte 3"):
        read(path)
    documents, _ = read(path, on_error="skip", invalid="replace")
    assert documents == ["good", "caf\ufffd", "too long" * 20, '{"a": 1}']
    path.write_bytes(archive({"3_data.xz": files["in/3_data.xz"]}))
    with pytest.raises(BadInput, match=r"3_data\.xz"):
        read(path, invalid="replace")


@pytest.mark.parametrize("form", TAR_FORMATS)
def test_an_archive_that_was_cut_off_is_never_short(form: int, tmp_path: Path) -> None:
    whole = tar_bytes([b"a", b"b" * 600, b"c"], form)
    files = whole.rstrip(b"\0")
    end = -(-len(files) // 512) * 512
    path = tmp_path / "a.tar"
    for size in [0, 100, *range(512, end + 1, 512), end + 100]:
        path.write_bytes(whole[:size])
        with pytest.raises(BadInput, match=r"a\.tar"):
            read(path)
    path.write_bytes(whole[: end + 512])  # one block of zeros is an end mark, too
    assert read(path)[0] == ["a", "b" * 600, "c"]


def test_damage_is_told_with_its_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    whole = bytearray(archive({"a": b"a", "b": b"b"}, tarfile.USTAR_FORMAT))
    path.write_bytes(whole + archive({"c": b"c"}))
    with pytest.raises(BadInput, match="--ignore-zeros"):
        read(path)
    whole[1024] ^= 1
    path.write_bytes(whole)
    with pytest.raises(BadInput, match=r"a\.tar"):
        read(path)
    path.write_bytes(b"no archive at all" * 100)
    with pytest.raises(BadInput, match=r"a\.tar"):
        read(path)
    member = tarfile.TarInfo("a")
    member.type, member.size = tarfile.XHDTYPE, 1 << 40
    path.write_bytes(member.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(BadInput):
        read(path)


@pytest.mark.parametrize("suffix", ["txt", "xz"])
def test_an_archive_that_is_named_as_text_is_refused(suffix: str, tmp_path: Path) -> None:
    """All of it is UTF-8: read as text it would be one document with the headers in it."""
    path = tmp_path / f"urlsf_subset00-1_data.{suffix}"
    path.write_bytes(
        compressed(tar_bytes([b"a", b"b"], tarfile.GNU_FORMAT), "none" if suffix == "txt" else suffix)
    )
    with pytest.raises(InvalidText, match=r"\.tar.*--input-format"):
        read(path, 3)
    assert read(path, 3, input_format="tar")[0] == ["a", "b"]
