"""Files on local and network disks: written whole, renamed, removed and synced, with faults of the system injected."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tokenmill.stores import AlreadyThere, open_store
from tokenmill.stores.durability import sync
from tokenmill.stores.local import TEMPORARY_PREFIX
from tokenmill.stores.names import remove_tree, rename


def failing(code: int) -> Any:
    def fail(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were synced."""
    paths: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda file: paths.append(str(Path(f"/proc/self/fd/{file}").readlink())))
    return paths


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_folder_that_cannot_be_synced(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "fsync", failing(code))
    sync(tmp_path)
    with pytest.raises(OSError, match=os.strerror(code)):
        sync(tmp_path / "file")


def test_listings_follow_links_and_skip_what_a_killed_put_left(tmp_path: Path) -> None:
    real, store = open_store(tmp_path / "real"), open_store(tmp_path / "store")
    real.put("x", b"1")
    store.put("a/x", b"1")
    (tmp_path / "store" / "a" / f"{TEMPORARY_PREFIX}0123").write_bytes(b"half")
    (tmp_path / "store" / "folder").symlink_to(tmp_path / "real")
    (tmp_path / "store" / "nowhere").symlink_to(tmp_path / "none")
    assert [entry.key for entry in store.list()] == ["a/x", "folder/x"]


def repeated(function: str, error: type[OSError]) -> Any:
    """A function of `os` as on NFS: the answer is lost, and the client repeats the request, which then fails."""
    do = getattr(os, function)

    def repeat(*paths: Any, **options: Any) -> None:
        do(*paths, **options)
        raise error(2, "repeated")

    return repeat


@pytest.mark.parametrize("disk", ["no links", "lost answers"])
def test_odd_disks(disk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if disk == "no links":
        monkeypatch.setattr(os, "link", failing(errno.EPERM))
    else:
        for function in ("replace", "rmdir"):
            monkeypatch.setattr(os, function, repeated(function, FileNotFoundError))
        monkeypatch.setattr(os, "link", repeated("link", FileExistsError))
    store = open_store(tmp_path / "store")
    store.put("x", b"1", if_absent=True)
    with pytest.raises(AlreadyThere):
        store.put("x", b"2", if_absent=True)
    assert [entry.key for entry in store.list()] == ["x"]
    assert bytes(store.read("x")) == b"1"
    (tmp_path / "a").write_bytes(b"1")
    rename(tmp_path / "a", tmp_path / "b")
    with pytest.raises(FileNotFoundError):
        rename(tmp_path / "a", tmp_path / "b")
    (tmp_path / "c" / "d" / "e").mkdir(parents=True)
    for _ in "12":
        remove_tree(tmp_path / "c")
        assert not (tmp_path / "c").exists()
