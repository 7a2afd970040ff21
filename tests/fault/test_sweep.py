"""Some of the points of the sweep; tools/check_faults.py takes them all."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from injector import Injector, compiler
from sweep import FAULTS, Sweep

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or compiler() is None, reason="needs Linux and a C compiler"
)
POINTS = 3


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    return Sweep(tmp_path_factory.mktemp("sweep"), documents=12)


@pytest.mark.parametrize("name", list(FAULTS))
def test_a_conversion_broken_anywhere_goes_on_to_the_same_bytes(name: str, sweep: Sweep) -> None:
    fault = FAULTS[name]
    rng = random.Random(f"points {name}")
    for at in rng.sample(range(1, sweep.points(fault) + 1), POINTS):
        assert sweep.point(at, fault) is None


def test_a_second_fault_in_the_resumed_run(sweep: Sweep) -> None:
    rng = random.Random("two faults")
    for _ in range(3):
        first, second = rng.choice(list(FAULTS.values())), FAULTS["group killed"]
        places = [rng.randrange(1, sweep.points(fault) + 1) for fault in (first, second)]
        assert sweep.point(places[0], first, (places[1], second)) is None


def test_the_shim_counts_the_operations_below_its_folder_and_no_others(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    script = f"""
import os
with open("a", "wb", buffering=0) as file:
    file.write(b"abc")
    os.fsync(file.fileno())
os.rename("a", "b")
os.mkdir("c")
os.rmdir("c")
os.truncate("b", 1)
open("b").read()
os.unlink("b")
open({str(tmp_path / "elsewhere")!r}, "w").write("x")
"""
    log = tmp_path / "log"
    injector = Injector(tmp_path, root)
    outcome = injector.start([sys.executable, "-c", script], log=log).wait()
    assert (outcome.code, outcome.output) == (0, "")
    found = [line.split() for line in log.read_text().splitlines()]
    expected = ["open /a", "write /a", "fsync /a", "rename /b", "mkdir /c", "rmdir /c", "unlink /b"]
    assert [" ".join(line[2:]) for line in found] == expected
    assert outcome.operations == len(expected)
    for at, mode, error, code, message in [
        (2, "errno", 28, 1, "No space left"),
        (4, "sticky", 5, 1, "Input/output error: 'a'"),
        (3, "kill", 0, -9, ""),
        (2, "short", 0, 0, ""),
    ]:
        outcome = injector.start([sys.executable, "-c", script], at, mode, error).wait()
        assert (outcome.code, message in outcome.output) == (code, True), outcome
        subprocess.run(["rm", "-rf", "a", "b", "c"], cwd=root, check=True)
