"""Fixtures of the tests of engines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the modules that the tests share, here and in workers

from engine_kinds import KINDS, Clusters, open_kind

from tokenmill.engines.engine import Engine


@pytest.fixture(scope="session")
def clusters() -> Iterator[Clusters]:
    with ExitStack() as stack:
        yield Clusters(stack)


@pytest.fixture
def notices() -> list[str]:
    """What the engine of the test said."""
    return []


@pytest.fixture(params=KINDS)
def engine(request: pytest.FixtureRequest, clusters: Clusters, notices: list[str]) -> Iterator[Engine]:
    """An engine of each kind with two workers, started."""
    with ExitStack() as stack:
        engine = open_kind(request.param, clusters, stack, notices)
        stack.callback(engine.shutdown)
        engine.start(100, bool)
        engine.kind = request.param  # type: ignore[attr-defined]
        yield engine
