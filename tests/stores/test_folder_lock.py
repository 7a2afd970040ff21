"""What a lock of a folder writes, and when others can read it."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from tokenmill.stores import folder_lock, system
from tokenmill.stores.folder_lock import FolderLock


def lock_of(folder: Path) -> FolderLock:
    return FolderLock(folder / "lock", folder, ValueError)


def test_on_nfs_other_hosts_read_nothing_of_the_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of NFS keeps what is written until it is synced or closed; a lock is open while its holder works."""
    synced: list[bytes] = []

    def sync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").read_bytes())

    monkeypatch.setattr(os, "fsync", sync)
    lock = lock_of(tmp_path)
    lock.acquire()
    assert [json.loads(data)["process"] for data in synced] == [os.getpid()]
    with pytest.raises(ValueError, match=f"{os.getpid()}"):
        lock_of(tmp_path).acquire()
    lock.remove_folder()
    assert not tmp_path.exists()


def test_a_disk_that_refuses_what_it_says_leaves_it_unlocked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    lock = lock_of(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        with pytest.raises(OSError, match="Disk quota exceeded: '.*lock'"):
            lock.acquire()
    assert not lock.is_held
    lock.acquire()
    assert lock.is_held
    lock.release()


def test_after_an_orderly_stop_another_host_was_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = lock_of(tmp_path)
    lock.acquire()
    lock.release()
    monkeypatch.setattr(system, "host_name", lambda: "another")
    monkeypatch.setattr(folder_lock, "boot_id", lambda: "another")
    other = lock_of(tmp_path)
    other.acquire()
    assert other.is_held
    other.release()
