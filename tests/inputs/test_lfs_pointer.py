"""A Git LFS pointer instead of the data is named as one, whatever kind the file should be."""

from __future__ import annotations

from pathlib import Path

import pytest
from readings import find_sources, read

from bpe import count_pretokens
from tokenmill.errors import TokenmillError
from tokenmill.inputs.chunks import Chunks
from tokenmill.inputs.kinds import FORMATS
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.samples import samples_of
from tokenmill.inputs.utf8 import LFS_ADVICE

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0f" * 32 + b"\nsize 12345\n"
SUFFIXES = [".txt", *(suffix for form in FORMATS.values() for suffix in form.suffixes)]
SUFFIXES += [
    f"{suffix}.{packed}" for suffix in (".txt", ".csv", ".tar") for packed in ("gz", "zst", "bz2", "xz")
]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_pointer_was_text_or_damaged_data(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"pointer{suffix}"
    path.write_bytes(POINTER)
    with pytest.raises(TokenmillError, match=f"{LFS_ADVICE}"):
        read(path)
    with pytest.raises(TokenmillError):
        count_pretokens([path])
    documents, intake = read(path, 3, on_error="skip")
    assert documents == []
    assert {error for _, error in intake.unreadable} == {f"{path}: {LFS_ADVICE}"}
    assert count_pretokens([path], on_error="skip").as_dict() == {}
    sources = find_sources([str(path)])
    faults: dict[int, str] = {}
    assert list(samples_of(Chunks(sources, 1 << 20, sources.starts()), IntakeRules(), b"|", faults)) == []
    assert LFS_ADVICE in faults[0]


def test_a_text_about_pointers_is_text(tmp_path: Path) -> None:
    path = tmp_path / "about.txt"
    path.write_bytes(b"A pointer begins with: " + POINTER)
    assert read(path)[0] == [path.read_text()]
