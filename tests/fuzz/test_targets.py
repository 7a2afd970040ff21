"""Run a few inputs of each fuzz target, and check that the limits detect every forbidden action."""

from __future__ import annotations

import ctypes
import os
import pickle
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bounded_run
import numpy as np
import pytest
from bounded_run import Target, run_inputs
from hostile_datasets import write_sound
from targets import TARGETS
from targets_datasets import read_all

from flat_tokens.errors import DatasetError

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits address space as Linux does"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),  # Python 3.12 warns about fork
]


@pytest.mark.slow
@pytest.mark.promise("untrusted")
@pytest.mark.parametrize("name", TARGETS)
def test_readers_stay_within_their_limits(name: str) -> None:
    assert run_inputs(TARGETS[name], "11", range(6))[0] == []


@pytest.mark.promise("untrusted")
@pytest.mark.stress
@pytest.mark.parametrize("name", TARGETS)
def test_campaign(name: str, request: pytest.FixtureRequest) -> None:
    """`pytest tests/fuzz -m stress --points 10000 --seed S` runs 10,000 inputs of each target."""
    seed, count = request.config.getoption("--seed"), request.config.getoption("--points")
    violations, refused = run_inputs(TARGETS[name], seed, range(count))
    print(f"{name}: {count} inputs, {refused} refused, {len(violations)} wrong")
    assert violations == []


@pytest.mark.parametrize("seed", range(5))
def test_a_sound_dataset_is_read(tmp_path: Path, seed: int) -> None:
    write_sound(tmp_path / "d", random.Random(seed))
    read_all(tmp_path / "d")


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "SentencePiece model", "counts file", "manifest", "import: megatron"]
)
def test_some_inputs_are_read_and_others_refused(name: str) -> None:
    violations, refused = run_inputs(TARGETS[name], "1", range(40))
    assert violations == []
    assert 0 < refused < 40


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
    found, _ = run_inputs(target, "1", range(2))  # the second runs after a child has ended
    assert len(found) == 2 * bool(expected)
    assert all(expected in each for each in found)


def test_a_reader_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_run, "MAX_SILENT_SECONDS", 0.3)
    found, _ = run_inputs(Target("sleeps", lambda *_: b"", lambda _: time.sleep(60)), "1", range(1))
    assert found == ["seed 1, number 0: the process ended with -9"]


def test_a_followed_link_is_reported() -> None:
    target = Target("link", TARGETS["dataset: link"].make, lambda _: None, must_refuse=True)
    assert "a result of what must be refused" in run_inputs(target, "1", range(1))[0][0]
