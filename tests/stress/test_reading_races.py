"""Readers that threads, forks and processes share. `pytest -m stress --points 200 --seed 1` tries many more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from injector import compiler
from reading_races import ReadingRaces
from web_server import WebServer, web_server

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def server() -> Iterator[WebServer]:
    pytest.importorskip("obstore", reason="obstore is not installed")
    with web_server() as server:
        yield server


@pytest.mark.slow
def test_shared_and_forked_readers(server: WebServer, tmp_path: Path) -> None:
    races = ReadingRaces(tmp_path, "1", server)
    for number in range(4):
        run = races.run(number)
        assert not run.problem, f"run {number}, {run.text}: {run.problem}"
        assert run.batches


@pytest.mark.slow
def test_memory_in_use_is_noticed(tmp_path: Path) -> None:
    races = ReadingRaces(tmp_path, "0", is_careless=True)
    assert any(races.run(number).problem for number in range(4))


@pytest.mark.stress
def test_campaign(request: pytest.FixtureRequest, server: WebServer, tmp_path: Path) -> None:
    races = ReadingRaces(tmp_path, request.config.getoption("--seed"), server)
    runs = [races.run(number) for number in range(request.config.getoption("--points"))]
    print(f"{len(runs)} runs, {sum(run.batches for run in runs):,} batches")
    problems = [f"run {number}, {run.text}: {run.problem}" for number, run in enumerate(runs) if run.problem]
    assert not problems, "\n".join(problems)
