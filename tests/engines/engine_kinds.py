"""Engines of all kinds for the contract tests."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path

import pytest

from tokenmill.engines.choose import EngineOptions, open_engine
from tokenmill.engines.engine import Engine
from tokenmill.engines.inline_engine import InlineEngine

KINDS = ("inline", "threads", "pool", "fork", "spawn", "dask")


class DaskCluster:
    """A cluster of two workers in processes of its own (tests/convert/dask_cluster.py)."""

    def __init__(self) -> None:
        script = Path(__file__).parents[1] / "convert" / "dask_cluster.py"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(
            [sys.executable, str(script), "2", "1"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.address = self._line()

    def scale(self, workers: int) -> None:
        assert self._process.stdin is not None
        print(f"scale {workers}", file=self._process.stdin, flush=True)
        self._line()

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


class Clusters:
    """A dask cluster with two workers, started when it is first used."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    @cached_property
    def dask(self) -> DaskCluster:
        cluster = DaskCluster()
        self._stack.callback(cluster.close)
        return cluster


def open_kind(kind: str, clusters: Clusters, stack: ExitStack, notices: list[str]) -> Engine:
    """An engine with two workers, not started."""
    if kind == "inline":
        return InlineEngine()
    if kind == "dask":
        if importlib.util.find_spec("distributed") is None:
            pytest.skip("distributed is not installed")
        return open_engine(EngineOptions("dask", scheduler=clusters.dask.address), notices.append)
    if kind == "threads":
        return open_engine(EngineOptions(stack.enter_context(ThreadPoolExecutor(2)), 2), notices.append)
    if kind == "pool":
        pool = stack.enter_context(ProcessPoolExecutor(2, get_context("spawn")))
        return open_engine(EngineOptions(pool, 2), notices.append)
    return open_engine(EngineOptions(workers=2, start_method=kind), notices.append)
