"""Engines of all kinds for the contract tests."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the tasks, here and in workers
sys.path.insert(0, str(Path(__file__).parents[1] / "convert"))

from dask_cluster import Cluster
from inline_engine import InlineEngine

from tokenmill.engines import tasks
from tokenmill.engines.choose import EngineOptions, open_engine
from tokenmill.engines.engine import Engine


@pytest.fixture(scope="session")
def dask_cluster() -> Iterator[Cluster]:
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("distributed is not installed")
    cluster = Cluster(2, 1)
    yield cluster
    cluster.close()


@pytest.fixture(autouse=True)
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "RETRY_SECONDS", 0.02)


@pytest.fixture
def notices() -> list[str]:
    """The messages of the engine."""
    return []


@pytest.fixture(params=["inline", "threads", "pool", "fork", "spawn", "dask"])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of `engine`."""
    return str(request.param)


@pytest.fixture
def open_kind(request: pytest.FixtureRequest, notices: list[str]) -> Iterator[Callable[[str], Engine]]:
    """open_kind(kind): an engine with two workers, not started."""
    with ExitStack() as stack:

        def opened(kind: str) -> Engine:
            if kind == "inline":
                return InlineEngine()
            if kind == "dask":
                options = EngineOptions("dask", scheduler=request.getfixturevalue("dask_cluster").address)
            elif kind == "threads":
                options = EngineOptions(stack.enter_context(ThreadPoolExecutor(2)), 2)
            elif kind == "pool":
                pool = stack.enter_context(ProcessPoolExecutor(2, get_context("spawn")))
                options = EngineOptions(pool, 2)
            else:
                options = EngineOptions(workers=2, start_method=kind)
            engine = open_engine(options, notices.append)
            stack.callback(engine.shutdown)
            if kind == "dask" and engine.worker_count < 2:  # dask gave up a worker that a test had killed
                for workers in (0, 2):
                    request.getfixturevalue("dask_cluster").ask(f"scale {workers}")
                deadline = time.monotonic() + 60
                while engine.worker_count < 2 and time.monotonic() < deadline:
                    time.sleep(0.1)
            return engine

        yield opened


@pytest.fixture
def engine(kind: str, open_kind: Callable[[str], Engine]) -> Engine:
    """An engine of each kind with two workers, started."""
    engine = open_kind(kind)
    engine.start(100, bool)
    return engine
