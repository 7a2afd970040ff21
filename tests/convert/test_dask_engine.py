"""--scheduler: the same bytes while workers come and go, and one line for a cluster that cannot do the work."""

from __future__ import annotations

import importlib
import importlib.util
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dask_cluster import Cluster
from runs import ENVIRONMENT, Inline, convert, finish, sample_documents, sample_text, start, tree, words

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or importlib.util.find_spec("distributed") is None,
    reason="needs Linux and the extra cluster (distributed)",
)
SMALL: dict[str, Any] = {"text_chunk_bytes": 3000, "chunk_tokens": 64, "validation_fraction": 0.2}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two workers with two threads each."""
    cluster = Cluster(2, 2)
    yield cluster
    cluster.close()


@pytest.fixture
def inputs(folder: Path) -> list[str]:
    """Files of several kinds by their full paths, because workers run in another folder. `clean` is their dataset."""
    (folder / "in").mkdir()
    for number in range(4):
        (folder / f"in/{number}.txt").write_bytes(sample_text(100, seed=number))
    lines = "".join(json.dumps({"text": text}) + "\n" for text in sample_documents(100))
    (folder / "in/lines.jsonl").write_text(lines)
    convert(Inline(), inputs=[str(folder / "in/*")], output="clean", **SMALL)
    return [str(folder / "in/*")]


def begin(address: str, inputs: list[str], **more: Any) -> subprocess.Popen[str]:
    return start(words(*inputs, scheduler=address, **{"progress": "none", **SMALL, **more}))


def wait_for_work() -> None:
    stop = time.monotonic() + 60
    while not Path("out.partial/journal").exists():
        assert time.monotonic() < stop
        time.sleep(0.005)


def fails(process: subprocess.Popen[str], code: int, *parts: str) -> None:
    found, out, err = finish(process)
    assert (found, out, err.count("\n")) == (code, "", 1), err
    assert all(part in err for part in parts), err


@pytest.mark.slow
@pytest.mark.promise("clusters")
def test_the_same_bytes_while_workers_come(cluster: Cluster, inputs: list[str]) -> None:
    process = begin(cluster.address, inputs)
    assert cluster.ask("scale 4") == "OK"
    assert finish(process)[::2] == (0, "")
    assert tree("out") == tree("clean")
    cluster.ask("scale 2")
    Path("scratch").mkdir()
    more = {"scratch": "scratch", "on_error": "quarantine", "output": "again"}
    assert finish(begin(cluster.address, inputs, **more))[::2] == (0, "")
    assert not list(Path("scratch").iterdir())
    assert not list(Path().glob("*partial*"))


@contextmanager
def one_more_worker(cluster: Cluster, preload: str = "") -> Iterator[subprocess.Popen[str]]:
    """A worker with eight threads that is not started again. preload: code that it runs first."""
    line = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.address, "--no-nanny"]
    line += ["--nthreads", "8", "--no-dashboard", *(["--preload", preload + "\n"] if preload else [])]
    worker = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        assert worker.stderr is not None
        while "Registered to" not in (line_of_log := worker.stderr.readline()):
            assert line_of_log
        yield worker
    finally:
        worker.kill()
        worker.communicate()


@pytest.mark.slow
@pytest.mark.promise("clusters")
def test_a_worker_that_continues_after_it_was_declared_lost(cluster: Cluster, inputs: list[str]) -> None:
    with one_more_worker(cluster) as worker:
        process = begin(cluster.address, inputs)
        wait_for_work()
        worker.send_signal(signal.SIGSTOP)
        assert finish(process)[::2] == (0, "")
        worker.send_signal(signal.SIGCONT)
        time.sleep(1)
    assert tree("out") == tree("clean")
    assert not Path("out.partial").exists()


@pytest.mark.slow
def test_a_scheduler_that_ends(cluster: Cluster, inputs: list[str]) -> None:
    other = Cluster(1, 1)
    process = begin(other.address, inputs)
    wait_for_work()
    other.process.kill()
    other.close()
    fails(process, 5, f"dask scheduler {other.address}: ")
    assert finish(begin(cluster.address, inputs))[::2] == (0, "")
    assert tree("out") == tree("clean")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preload", "text"),
    [
        (
            "from tokenmill.engines import job\njob.program_version = lambda: 'tokenmill 0.0 with Python 3.8'",
            "tokenmill 0.0 with Python 3.8,",
        ),
        (
            "import sys\nsys.modules['convert'] = sys.modules['tokenmill.engines'] = None",
            "dask worker tcp://",
        ),
    ],
    ids=["version", "not installed"],
)
def test_a_worker_that_cannot_do_the_work(
    preload: str, text: str, cluster: Cluster, inputs: list[str]
) -> None:
    with one_more_worker(cluster, preload):
        fails(begin(cluster.address, inputs), 5, text)
