"""Files are synced in the background, errors are told at the end."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tokenmill.stores import system
from tokenmill.stores.durability import Syncer, sync, sync_folders


def test_all_files_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(str(Path(f"/proc/self/fd/{fd}").readlink())))
    for name in "abcdefgh":
        (tmp_path / name).touch()
    syncer = Syncer()
    syncer.add(tmp_path / name for name in "abcdefgh")
    syncer.add([tmp_path / "gone"])
    syncer.wait()
    assert sorted(synced) == [str(tmp_path / name) for name in "abcdefgh"]
    syncer.wait()  # nothing more to do
    (tmp_path / "folder").mkdir()
    synced.clear()
    sync_folders(tmp_path)
    assert synced == [str(tmp_path), str(tmp_path / "folder")]


def test_a_file_that_could_not_be_synced_is_named_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(OSError, match="file"):
        sync(path)
    syncer = Syncer()
    syncer.add([path])
    with pytest.raises(OSError, match="Input/output"):
        syncer.wait()
    assert not path.exists()


def test_a_thread_without_memory_left_files_that_were_not_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_memory(path: Path) -> None:
        raise MemoryError

    monkeypatch.setattr(system, "sync", without_memory)
    syncer = Syncer()
    syncer.add([tmp_path])
    with pytest.raises(MemoryError):
        syncer.wait()


def test_nothing_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []
    close = os.close
    monkeypatch.setattr(os, "close", lambda descriptor: (closed.append(descriptor), close(descriptor)))
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    sync(tmp_path)
    assert closed == synced != []
