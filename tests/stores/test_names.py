"""Names as network disks treat them: answers that are lost, open files that keep a name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tokenmill.stores import AlreadyThere, open_store, system
from tokenmill.stores.durability import write_lasting
from tokenmill.stores.folder_lock import FolderLock
from tokenmill.stores.names import remove_empty, remove_tree, rename


class RefusedError(Exception):
    pass


@pytest.fixture
def lost_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renames and links are done, and say what their repeat would."""
    do_replace, do_link = os.replace, os.link

    def replace(source: str | Path, target: str | Path) -> None:
        do_replace(source, target)
        raise FileNotFoundError(2, "No such file or directory", str(source), None, str(target))

    def link(source: str, target: str) -> None:
        do_link(source, target)
        raise FileExistsError(17, "File exists", source, None, target)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "link", link)


@pytest.mark.usefixtures("lost_answers")
def test_a_rename_that_was_done_said_that_it_was_not(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"2")
    rename(tmp_path / "a", tmp_path / "b")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"b": b"1"}
    with pytest.raises(FileNotFoundError):
        rename(tmp_path / "a", tmp_path / "b")
    write_lasting(tmp_path / "plan", [b"3"])
    assert (tmp_path / "plan").read_bytes() == b"3"


@pytest.mark.usefixtures("lost_answers")
def test_a_put_if_absent_that_was_done_was_taken_for_that_of_another_run(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put("x", b"1", if_absent=True)
    with pytest.raises(AlreadyThere):
        store.put("x", b"2", if_absent=True)
    assert [entry.key for entry in store.list()] == ["x"]
    assert bytes(store.read("x")) == b"1"


def test_a_tree_in_which_something_is_gone_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    do_rmdir = os.rmdir

    def rmdir(path: str, *, dir_fd: int | None = None) -> None:
        do_rmdir(path, dir_fd=dir_fd)
        raise FileNotFoundError(2, "No such file or directory", path)

    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    monkeypatch.setattr(os, "rmdir", rmdir)
    remove_tree(tmp_path / "a")
    assert not (tmp_path / "a").exists()
    remove_tree(tmp_path / "a")


def test_the_folder_of_a_lock_whose_file_keeps_a_name(tmp_path: Path, open_files_keep_names: None) -> None:
    """A run ended with "Directory not empty" on NFS, after all was done."""
    folder = tmp_path / "out.partial"
    folder.mkdir()
    lock = FolderLock(folder / "lock", tmp_path / "out", RefusedError)
    lock.acquire()
    lock.remove_folder()
    assert not folder.exists()
    remove_empty(folder)


def test_a_lock_whose_file_another_run_removed_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_files_keep_names: None
) -> None:
    """It has a name still on NFS."""
    path, do_lock = tmp_path / "lock", system.lock

    def lock(descriptor: int) -> None:
        do_lock(descriptor)
        path.unlink()

    monkeypatch.setattr(system, "lock", lock)
    with pytest.raises(RefusedError):
        FolderLock(path, tmp_path / "out", RefusedError).acquire()


@pytest.mark.parametrize("error", [22, 38, 95])
def test_a_folder_that_cannot_be_synced(error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()

    def fsync(_: int) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "fsync", fsync)
    system.sync(tmp_path)
    with pytest.raises(OSError, match=os.strerror(error)):
        system.sync(tmp_path / "file")
