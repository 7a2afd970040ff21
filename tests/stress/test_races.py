"""Conversions with events in random order. `pytest -m stress --points 200 --seed 1` tries many more."""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from bench import Bench
from injector import Injector, compiler
from races import corpus_job, draw_race, executors
from servers import moto_server

from bpe.threads import available_threads

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or compiler() is None, reason="needs Linux and a C compiler"
)
RUNS_OF_A_CORPUS = 8


def races(
    folder: Path, seed: str, number: int, count: int, names: list[str], endpoint: str = ""
) -> list[str]:
    """Convert corpus `number` with `count` settings, and return the problems."""
    rng, found = random.Random(f"{seed} corpus {number}"), list[str]()
    job = corpus_job(rng, number, folder / f"files-{number}", for_store=bool(endpoint))
    bench = Bench(job, folder, endpoint)
    if not endpoint and (difference := job.difference(bench.root)):
        return [f"corpus {number}: not the naive conversion: {difference}"]
    for run in range(count):
        rng = random.Random(f"{seed} corpus {number} run {run}")
        strikes = draw_race(rng, bench, names)
        if problem := bench.problem(strikes, rng):
            faults = [(fault.name, at) for fault, at in strikes]
            found.append(f"corpus {number} run {run}, {bench.settings}, {bench.delays}, {faults}: {problem}")
    bench.close()
    shutil.rmtree(bench.root.parent)
    return found


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    pytest.importorskip("obstore", reason="obstore is not installed")
    with moto_server() as address:
        yield address


@pytest.mark.slow
@pytest.mark.promise("deterministic")
@pytest.mark.parametrize("names", [["own"], ["threads", "spawn-pool"]])
def test_the_order_of_events_does_not_change_the_bytes(names: list[str], tmp_path: Path) -> None:
    assert races(tmp_path, "commit", len(names), 4, names) == []


@pytest.mark.slow
@pytest.mark.promise("stores")
def test_the_order_of_requests_does_not_change_the_bytes(moto: str, tmp_path: Path) -> None:
    assert races(tmp_path, "commit", 2, 2, ["own"], moto) == []


@pytest.mark.promise("deterministic")
@pytest.mark.stress
def test_campaign(request: pytest.FixtureRequest, moto: str, tmp_path: Path) -> None:
    """Half of the corpora are converted to a store. With `distributed` installed, dask is one of the executors."""
    seed, count = request.config.getoption("--seed"), request.config.getoption("--points")
    Injector(tmp_path, tmp_path)  # compiled before threads need it at once

    def group(number: int) -> list[str]:
        return races(tmp_path, seed, number, RUNS_OF_A_CORPUS, executors(), moto if number % 2 else "")

    with ThreadPoolExecutor(2 * available_threads()) as threads:
        problems = sum(threads.map(group, range(-(-count // RUNS_OF_A_CORPUS))), list[str]())
    print(f"{count} runs, {len(problems)} wrong")
    assert not problems, "\n".join(problems)
