"""Some of the runs of scripts/check_races.py: the bytes do not depend on the order of events."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from injector import compiler
from race_runs import RUNS_OF_A_CORPUS, Races

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or compiler() is None, reason="needs Linux and a C compiler"
)


# Runs of seed 500. Corpus 3 has small files that are done before a large one: their shards shared files once, and four
# of these runs gave wrong data. Corpus 1 has files of all kinds; threads shared the memory that they read into.
@pytest.mark.parametrize(
    ("executors", "numbers"),
    [(["own"], [25, 26, 28, 30]), (["threads", "threads", "threads", "spawn-pool"], [8, 9, 10, 11, 12])],
)
def test_whatever_the_order_of_events_the_bytes_are_those_of_one_worker(
    executors: list[str], numbers: list[int], tmp_path: Path
) -> None:
    races = Races(tmp_path, seed=500, executors=executors)
    found = [
        f"run {result.settings.number}, {result.settings.text}: {result.kind}: {result.problem}"
        for result in races.group(numbers[0] // RUNS_OF_A_CORPUS, numbers)
        if result.problem
    ]
    assert not found, "\n".join(found)
