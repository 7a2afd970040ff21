"""Temporary files go with their process, or with the next one; never while their process lives."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bpe.pretoken_counts import workspace as workspace_module
from bpe.pretoken_counts.workspace import LOCK_NAME, PREFIX, Workspace

HOLDER = """
import sys, time
from bpe.pretoken_counts.workspace import Workspace
with Workspace(sys.argv[1]) as workspace:
    workspace.new_file().write_bytes(b"counts")
    print("ready", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """A process that holds a workspace until it is told to end, or killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(f"{PREFIX}*/*.counts"))


def test_it_is_made_when_it_is_used_and_gone_afterwards(tmp_path: Path) -> None:
    with Workspace(tmp_path) as workspace:
        assert list(tmp_path.iterdir()) == []
        first = workspace.new_file()
        first.write_bytes(b"1")
        assert workspace.new_file() != first
        assert first.parent.name.startswith(PREFIX)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_stayed_after_a_kill(tmp_path: Path) -> None:
    """The next run removes it, and none of a process that lives, one of this very process included."""
    dead, alive = holder(tmp_path), holder(tmp_path)
    dead.send_signal(signal.SIGKILL)
    dead.communicate()
    assert kept(tmp_path) == ["1.counts", "1.counts"]
    with Workspace(tmp_path) as own:
        assert kept(tmp_path) == ["1.counts"]
        own.new_file().write_bytes(b"")
        with Workspace(tmp_path):
            assert kept(tmp_path) == ["1.counts", "1.counts"]
    assert kept(tmp_path) == ["1.counts"]
    alive.communicate()
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}file").write_bytes(b"x")
    foreign = tmp_path / f"{PREFIX}without-lock"
    foreign.mkdir()
    (foreign / "1.counts").write_bytes(b"x")
    other = tmp_path / "other"
    other.mkdir()
    (other / LOCK_NAME).write_bytes(b"")
    (tmp_path / f"{PREFIX}link").symlink_to(other)
    begun = tmp_path / f"{PREFIX}begun"  # its process was killed before it had a lock
    begun.mkdir()
    with Workspace(tmp_path):
        pass
    names = {path.name.removeprefix(PREFIX) for path in tmp_path.iterdir()}
    assert names == {"file", "without-lock", "other", "link"}
    assert (other / LOCK_NAME).exists()


def test_a_folder_is_taken_for_left_behind_before_its_lock_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process looks at each step of the making: the folder that counts are written to is there afterwards."""
    look = workspace_module._remove_if_left
    real = {"mkdtemp": workspace_module.tempfile.mkdtemp, "flock": fcntl.flock}
    looks = 0

    def with_look(name: str, before: bool) -> None:
        def call(*arguments: object, **named: object) -> object:
            nonlocal looks
            if before and looks < 4:
                looks += 1
                monkeypatch.setattr(fcntl, "flock", real["flock"])
                for folder in tmp_path.glob(f"{PREFIX}*"):
                    look(folder)
                with_look("flock", before=True)
            made = real[name](*arguments, **named)  # type: ignore[operator]
            if not before and looks < 2:
                looks += 1
                look(Path(str(made)))
            return made

        target = fcntl if name == "flock" else workspace_module.tempfile
        monkeypatch.setattr(target, name, call)

    with_look("mkdtemp", before=False)
    with_look("flock", before=True)
    with Workspace(tmp_path) as workspace:
        file = workspace.new_file()
        file.write_bytes(b"counts")
        assert looks == 4
        look(file.parent)
        assert file.exists()
    assert list(tmp_path.iterdir()) == []


def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(30):
                with Workspace(tmp_path) as workspace:
                    file = workspace.new_file()
                    file.write_bytes(b"x")
                    assert file.exists()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of anybody is removed, since nobody can say that he is at work."""

    def no_locks(*_: object) -> None:
        raise OSError(37, os.strerror(37))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with Workspace(tmp_path) as workspace:
        file = workspace.new_file()
        file.write_bytes(b"x")
        with Workspace(tmp_path):
            assert file.exists()
    assert list(tmp_path.iterdir()) == []


def test_on_a_network_disk_a_folder_was_left(tmp_path: Path, open_files_keep_names: None) -> None:
    """Its lock, open still, kept a name in it."""
    with Workspace(tmp_path) as workspace:
        workspace.new_file().write_bytes(b"counts")
    assert not list(tmp_path.iterdir())
    with holder(tmp_path) as left:
        left.kill()
    with Workspace(tmp_path):
        assert not list(tmp_path.iterdir())
