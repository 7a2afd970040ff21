"""Run a slice of each target of tools/fuzz, and check that the limits detect every forbidden action."""

from __future__ import annotations

import ctypes
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bounded_run
import numpy as np
import pytest
from bounded_run import Tally, Target, fuzz
from hostile_datasets import write_sound
from targets import TARGETS
from targets_datasets import read_all

from flat_tokens.errors import DatasetError

ROOT = Path(__file__).resolve().parents[2]
EXECUTIONS = 6

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits address space as Linux does"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),  # Python 3.12 warns about fork
]


def run(target: Target, executions: int = 1) -> Tally:
    tally = Tally()
    for tally in fuzz([target], 1, 0, executions, None, 1):  # noqa: B007 - the last one is whole
        pass
    return tally


def test_readers_stay_within_their_limits(tmp_path: Path) -> None:
    command = [sys.executable, "tools/fuzz", "--executions", str(EXECUTIONS), "--seed", "11"]
    command += ["--findings", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert {line[:26].strip() for line in lines[:-1]} == set(TARGETS)
    assert lines[-1].startswith(f"{EXECUTIONS * len(TARGETS):,} inputs")


@pytest.mark.parametrize("seed", range(5))
def test_a_sound_dataset_is_read(tmp_path: Path, seed: int) -> None:
    write_sound(tmp_path / "d", random.Random(seed))
    read_all(tmp_path / "d")


def test_a_sound_input_is_read() -> None:
    """Some mutants stay valid or nearly valid, and each target reads some of them without an error."""
    for name in ("tokenizer.json", "SentencePiece model", "counts file", "manifest", "import: megatron"):
        tally = run(TARGETS[name], 40)
        assert not tally.findings
        assert 0 < tally.refused[name] < 40


def refuse(_: object) -> None:
    raise DatasetError("a line")


def refuse_at_length(_: object) -> None:
    raise DatasetError("a line\nand another")


def write(made: Any) -> None:
    (made / "new").write_bytes(b"a")


def take_time(_: object) -> None:
    while True:
        pass


# Action of a reader -> the reported violation.
READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "takes memory": (lambda _: np.ones(2**30, np.uint8), "MemoryError"),
    "takes time": (take_time, "took more than"),
    "writes": (write, "Forbidden: open"),
    "ends": (lambda _: os.kill(os.getpid(), signal.SIGKILL), "ended with -9"),
    "crashes": (lambda _: ctypes.string_at(0), "ended with -11"),
    "another error": (lambda _: [][0], "IndexError"),
    "two lines": (refuse_at_length, "an error that is no line"),
    "starts a process": (lambda _: os.system("true"), "Forbidden: os.system"),
    "runs code": (lambda _: exec("pass"), "Forbidden: exec"),
    "unpickles": (lambda _: pickle.loads(b"cos\nsystem\n."), "Forbidden: pickle.find_class"),
    "opens a sibling file": (lambda made: (made.parent / "outside").read_bytes(), "Forbidden: open"),
    "refuses": (refuse, ""),
    "reads": (lambda _: None, ""),
}


@pytest.mark.parametrize("name", READERS)
def test_forbidden_actions_are_reported(name: str) -> None:
    read, expected = READERS[name]
    errors = (DatasetError,)
    target = Target(name, lambda _, folder: folder, read, errors, base_bytes=1 << 28, base_seconds=0.3)
    found = [finding.what for finding in run(target).findings]
    assert len(found) == bool(expected)
    assert not expected or expected in found[0]


def test_a_reader_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_run, "MOST_SILENT_SECONDS", 0.3)
    (finding,) = run(Target("sleeps", lambda *_: b"", lambda _: time.sleep(60))).findings
    assert finding.what == "did not answer for 0 s"


def test_after_a_child_that_ended_the_others_are_run() -> None:
    def read(made: bytes) -> None:
        if made[0] % 4 == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    tally = run(Target("ends at times", lambda rng, _: rng.randbytes(1), read), 20)
    wrong = [
        number for number in range(20) if random.Random(f"ends at times 1 {number}").randbytes(1)[0] % 4 == 0
    ]
    assert [finding.number for finding in tally.findings] == wrong
    assert tally.executions == {"ends at times": 20}


def test_a_followed_link_is_reported() -> None:
    target = Target("link", TARGETS["dataset: link"].make, lambda _: None, must_refuse=True)
    assert [finding.what for finding in run(target).findings] == ["a result of what must be refused"]


@pytest.mark.parametrize("name", TARGETS)
def test_a_seed_makes_the_same_input_again(tmp_path: Path, name: str) -> None:
    def content(folder: Path) -> Any:
        folder.mkdir()
        made = TARGETS[name].make(random.Random(f"{name} 3"), folder)
        if not isinstance(made, Path):
            return made
        return [(str(path.relative_to(folder)), start_of(path)) for path in sorted(folder.rglob("*"))]

    def start_of(path: Path) -> bytes | None:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return file.read(4096)

    assert content(tmp_path / "a") == content(tmp_path / "b")
