"""Some of the states of tools/check_power_loss.py, which tries them by thousands; and that it finds a sync that is
left out."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from injector import compiler
from power_loss import Record, compile_recorder, tree

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or compiler() is None, reason="needs Linux and a C compiler"
)
SCRIPT = """
import os
def put(path, *blocks, flags=os.O_CREAT | os.O_TRUNC):
    file = os.open(path, os.O_WRONLY | flags)
    for block in blocks:
        os.write(file, block)
    os.fsync(file)
    os.close(file)
put("a", b"1" * 600, b"2")
os.mkdir("b")
os.rename("a", "b/c")
folder = os.open("b", os.O_RDONLY)
os.fsync(folder)
with open("log", "ab") as file:
    file.write(b"+more")
os.link("log", "b/log")
os.unlink("old")
"""


def check(*options: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "tools/check_power_loss.py", *options], cwd=ROOT, capture_output=True, text=True
    )
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def test_states_are_those_that_the_syncs_leave_open(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "old").write_bytes(b"old")
    (root / "log").write_bytes(b"log")
    library = compile_recorder(tmp_path)
    assert library is not None
    record = Record(root)
    assert record.run(library, [sys.executable, "-c", SCRIPT]) == ""
    assert record.whole().files == tree(root)
    assert record.least(record.operations).files == {
        "old": b"old",
        "log": b"log",
    }  # the name of b was not synced
    rng, logs, names = random.Random(0), set(), set()
    for _ in range(300):
        files = record.state(record.operations, rng).files
        logs.add(files["log"])
        names.add(frozenset(files) - {"log"})
        if "b" in files:
            assert files["b/c"] == b"1" * 600 + b"2"  # its bytes and its name were
        assert "a" not in files or "b" not in files
    assert {b"log", b"log+more", b"log+m", b"log" + bytes(5)} <= logs
    assert all(
        log and log[:3] == b"log" and b"+more\0\0\0\0\0".startswith(log[3:].rstrip(b"\0")) for log in logs
    )
    assert {frozenset(each) for each in (["old"], ["b", "b/c"], ["b", "b/c", "b/log", "old"])} <= names


def test_a_failure_of_the_power_leaves_the_former_or_the_new_one() -> None:
    status, told = check("--states", "4", "--only", "train", "compact")
    assert (status, told.count("; 0 wrong")) == (0, 2), told


@pytest.mark.parametrize(("job", "forgotten"), [("train", ".json"), ("train", ".")])
def test_a_sync_that_is_left_out_is_found(job: str, forgotten: str) -> None:
    status, told = check("--states", "1", "--only", job, "--forget", forgotten)
    assert status == 1, told
    assert "at the end: " in told
