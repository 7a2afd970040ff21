"""What a folder does beyond the suite of all stores: temporary names, file systems without links, processes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tokenmill.stores import AlreadyThere, open_store
from tokenmill.stores.local import TEMPORARY_PREFIX


def test_a_put_that_was_killed_leaves_nothing_to_list(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put("a/x", b"1")
    (tmp_path / "a" / f"{TEMPORARY_PREFIX}0123").write_bytes(b"half")
    assert [entry.key for entry in store.list()] == ["a/x"]
    store.put("a/x", b"2")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [f"{TEMPORARY_PREFIX}0123", "x"]


def test_if_absent_where_there_are_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    store = open_store(tmp_path)
    store.put("x", b"1", if_absent=True)
    with pytest.raises(AlreadyThere):
        store.put("x", b"2", if_absent=True)
    assert bytes(store.read("x")) == b"1"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def _put(folder: str, writer: int, results: multiprocessing.SimpleQueue[int]) -> None:
    for turn in range(50):
        try:
            open_store(folder).put(f"{turn}", b"%d" % writer, if_absent=True)
            results.put(turn)
        except AlreadyThere:
            pass


def test_of_many_processes_one_wins(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    processes = [context.Process(target=_put, args=(str(tmp_path), writer, results)) for writer in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    won = []
    while not results.empty():
        won.append(results.get())
    assert sorted(won) == list(range(50))
    assert len(list(tmp_path.iterdir())) == 50


def test_links_to_files_and_folders_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").write_bytes(b"1")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "folder").symlink_to(tmp_path / "real")
    (tmp_path / "store" / "nowhere").symlink_to(tmp_path / "none")
    assert [entry.key for entry in open_store(tmp_path / "store").list()] == ["folder/x"]


FORKED = """
import os
from tokenmill.stores import StoreError, open_store
store = open_store("memory://forked")
store.put("x", b"1")
child = os.fork()
if not child:
    try:
        store.read("x")
    except StoreError as error:
        os._exit(7 if "spawn" in str(error) else 1)
    os._exit(2)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_is_told_and_does_not_hang() -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=60, check=False).returncode == 7


def test_remote_libraries_are_imported_late() -> None:
    program = (
        "import sys; from tokenmill import stores; stores.open_store('.'); "
        "assert not {'obstore', 'fsspec', 'huggingface_hub', 'concurrent.futures'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
