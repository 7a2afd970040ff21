"""Conversions with events in random order. `pytest -m stress --points 200 --seed 1` tries many more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from injector import compiler
from race_runs import RUNS_OF_A_CORPUS, Races
from servers import moto_server

from bpe.threads import available_threads

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or compiler() is None, reason="needs Linux and a C compiler"
)


# Runs of seed 500. Corpus 3 has small files that are done before a large one: their shards shared files once, and four
# of these runs gave wrong data. Corpus 1 has files of all kinds; threads shared the memory that they read into.
@pytest.mark.slow
@pytest.mark.promise("deterministic")
@pytest.mark.parametrize(
    ("executors", "numbers"),
    [(["own"], [25, 26, 28, 30]), (["threads", "threads", "threads", "spawn-pool"], [8, 9, 10, 11, 12])],
)
def test_the_order_of_events_does_not_change_the_bytes(
    executors: list[str], numbers: list[int], tmp_path: Path
) -> None:
    races = Races(tmp_path, seed="500", executors=executors)
    found = [
        f"run {result.settings.number}, {result.settings.text}: {result.kind}: {result.problem}"
        for result in races.group(numbers[0] // RUNS_OF_A_CORPUS, numbers)
        if result.problem
    ]
    assert not found, "\n".join(found)


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    pytest.importorskip("obstore", reason="obstore is not installed")
    with moto_server() as address:
        yield address


# Runs of seed 501: requests wait, arrive twice or late, and a stopped driver continues after another took over.
@pytest.mark.slow
@pytest.mark.promise("stores")
def test_the_order_of_requests_does_not_change_the_bytes(moto: str, tmp_path: Path) -> None:
    races = Races(tmp_path, seed="501", executors=["own"], endpoint=moto, share=1.0)
    for result in races.group(804 // RUNS_OF_A_CORPUS, [804]):
        assert not result.problem, f"{result.settings.text}: {result.kind}: {result.problem}"


@pytest.mark.slow
def test_drivers_that_do_not_check_their_claim_are_found(moto: str, tmp_path: Path) -> None:
    planted = "no driver checks its claim"
    races = Races(tmp_path, seed="501", executors=["own"], endpoint=moto, share=1.0, planted=planted)
    assert any(result.problem for result in races.group(804 // RUNS_OF_A_CORPUS, [804]))


@pytest.mark.promise("deterministic")
@pytest.mark.stress
def test_campaign(request: pytest.FixtureRequest, moto: str, tmp_path: Path) -> None:
    """Half of the corpora are converted to a store. With `distributed` installed, dask is one of the executors."""
    races = Races(tmp_path, request.config.getoption("--seed"), endpoint=moto)
    groups = range(-(-request.config.getoption("--points") // RUNS_OF_A_CORPUS))
    with ThreadPoolExecutor(2 * available_threads()) as threads:
        results = [
            result for own in threads.map(lambda group: [*races.group(group)], groups) for result in own
        ]
    stopped = sum(result.stopped for result in results)
    problems = [
        f"run {result.settings.number}, {result.settings.text}: {result.kind}: {result.problem}"
        for result in results
        if result.problem
    ]
    print(f"{len(results)} runs, resumed {stopped} times, {len(problems)} wrong")
    assert not problems, "\n".join(problems)
