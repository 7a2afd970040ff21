"""Conversions on clusters of several sizes have the bytes of one process, even if a worker is killed halfway."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from input_kinds import KINDS, write_kind
from runs import sample_documents, tokenizer_bytes, tree

from convert import ConvertOptions, convert

pytestmark = pytest.mark.stress
Pids = Callable[[], list[int]]


@contextmanager
def dask(workers: int, threads: int) -> Iterator[tuple[dict[str, Any], Pids]]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=threads, dashboard_address=None, silence_logs=50
    ) as cluster:
        options = {"executor": "dask", "scheduler": cluster.scheduler_address}
        yield options, lambda: [nanny.pid for nanny in cluster.workers.values() if nanny.pid]


@contextmanager
def ray(cpus: int, _: int) -> Iterator[tuple[dict[str, Any], Pids]]:
    package = pytest.importorskip("ray")
    package.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False, logging_level="CRITICAL")
    try:
        yield {"executor": "ray", "address": "auto"}, ray_workers
    finally:
        package.shutdown()


def ray_workers() -> list[int]:
    """Return the busy Ray workers of this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            title = path.read_bytes()
            if title.startswith(b"ray::") and b"IDLE" not in title:
                found.append(int(path.parent.name))
    return found


def kill_one(partial: Path, workers: Pids, ended: threading.Event, killed: list[int]) -> None:
    """Kill a worker once the first shards exist."""
    while not ended.wait(0.002):
        if any((partial / "shards").glob("*")) and (found := workers()):
            with suppress(OSError):
                os.kill(found[0], signal.SIGKILL)
                killed.append(found[0])
            return


@pytest.mark.promise("clusters")
@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize(("cluster", "threads"), [(dask, 1), (dask, 2), (ray, 1)])
def test_the_same_bytes(cluster: Any, workers: int, threads: int, tmp_path: Path) -> None:
    (tmp_path / "tok.json").write_bytes(tokenizer_bytes())
    (tmp_path / "in").mkdir()
    for number, kind in enumerate(KINDS):
        write_kind(tmp_path / "in" / f"{number}", sample_documents(200, seed=number), kind)
    base: dict[str, Any] = {
        "inputs": [tmp_path / "in" / "*"],
        "tokenizer": tmp_path / "tok.json",
        "progress": "none",
    }
    base |= {"text_chunk_bytes": 3000, "chunk_tokens": 64, "validation_fraction": 0.2}
    convert(ConvertOptions(output=tmp_path / "expected", workers=1, **base))
    killed: list[int] = []
    with cluster(workers, threads) as (options, pids):
        for number in range(2):
            output, ended = tmp_path / f"out-{number}", threading.Event()
            partial = tmp_path / f"out-{number}.partial"
            killer = threading.Thread(target=kill_one, args=(partial, pids, ended, killed))
            if number == 1:
                killer.start()
            convert(ConvertOptions(output=output, **base, **options))
            ended.set()
            assert tree(output) == tree(tmp_path / "expected")
            assert not partial.exists()
            time.sleep(0.1)
    assert killed, "the conversion ended before a worker was killed"
