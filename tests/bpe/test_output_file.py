"""Files that appear whole or not at all, and never replace a path that is not a regular file."""

from __future__ import annotations

import os
import re
import stat
import threading
from pathlib import Path

import pytest

from bpe.errors import BadArgument, EnvironmentFailure
from bpe.output_file import check_output, open_output_file, write_file


def test_a_pipe_was_replaced_by_a_file(tmp_path: Path) -> None:
    """As root, `--output /dev/null` replaced the device with a regular file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"all of it")
    reader.join(timeout=10)
    assert read == [b"all of it"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


def test_nothing_is_left_of_a_failure(tmp_path: Path) -> None:
    def fail_half_way() -> None:
        with open_output_file(tmp_path / "file") as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match="file"):
        write_file(tmp_path / "none" / "file", b"")


@pytest.mark.parametrize("name", ["", ".", "/", "none/file"])
def test_an_impossible_output_was_noticed_after_the_training(name: str) -> None:
    with pytest.raises(BadArgument, match=re.escape(f"--output {name}".strip() + ": ")):
        check_output(name)
