"""Some of the datasets of scripts/check_readers.py, and that it would notice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bounded_reading
import numpy as np
import pytest
from bounded_reading import Fuzzer, outcome_of, read_all
from hostile_datasets import CHANGES, write_sound

from flat_tokens.errors import DatasetError

ROOT = Path(__file__).resolve().parents[2]
SEEDS = 5

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits address space as Linux does"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),  # Python 3.12's, of fork
]


def test_readers_stay_within_their_limits() -> None:
    command = [sys.executable, "scripts/check_readers.py", "--seeds", str(SEEDS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(",")[0] for line in lines[:-1]] == [f"{kind}: {SEEDS} datasets" for kind in CHANGES]


@pytest.mark.parametrize("seed", range(5))
def test_a_sound_dataset_is_read(tmp_path: Path, seed: int) -> None:
    write_sound(tmp_path / "d", random.Random(seed))
    assert outcome_of(tmp_path / "d", read_all) == ""


def refuse(_: Path) -> None:
    raise DatasetError("a line")


def refuse_at_length(_: Path) -> None:
    raise DatasetError("a line\nand another")


READERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "takes memory": (lambda root: np.ones(2**30, np.uint8), "MemoryError"),
    "takes time": (lambda root: time.sleep(60), "took more than"),
    "writes": (lambda root: (root / "new").write_bytes(b"a"), "File too large"),
    "ends": (lambda root: os.kill(os.getpid(), signal.SIGKILL), "ended by a signal"),
    "another error": (lambda root: [][0], "IndexError"),
    "two lines": (refuse_at_length, "an error of several lines"),
    "refuses": (refuse, ""),
    "reads": (lambda root: None, ""),
}


@pytest.mark.parametrize("name", READERS)
def test_what_a_reader_must_not_do_is_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, expected = READERS[name]
    if name == "takes time":
        monkeypatch.setattr(bounded_reading, "MOST_SECONDS", 0.2)
    outcome = Fuzzer(tmp_path / "made", read).run(1, "bytes")
    assert expected in outcome
    assert bool(outcome) == bool(expected)


def test_a_link_that_is_followed_is_told(tmp_path: Path) -> None:
    assert Fuzzer(tmp_path / "made", lambda root: None).run(1, "link") == "a link was followed"


def test_a_seed_makes_the_same_dataset_again(tmp_path: Path) -> None:
    def content(kind: str) -> list[tuple[str, int, bytes]]:
        Fuzzer(tmp_path / "made", lambda root: None).run(3, kind)
        root = tmp_path / "made" / "d"
        return [(str(path.relative_to(root)), *start_of(path)) for path in sorted(root.rglob("*"))]

    def start_of(path: Path) -> tuple[int, bytes]:
        if not path.is_file():
            return -1, b""
        with path.open("rb") as file:
            return path.stat().st_size, file.read(4096)

    for kind in CHANGES:
        assert content(kind) == content(kind)
