"""`--executor dask`: the same bytes, whoever comes and goes; one line for what is not there or does not fit."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from input_kinds import write_kind
from naive_conversion import make_documents, tree

from convert import ConvertOptions
from convert import convert as run_conversion
from tokenmill.engines.inline_engine import InlineEngine

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or importlib.util.find_spec("distributed") is None,
    reason="needs Linux and the extra cluster (distributed)",
)

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
SMALL = {"text_chunk_bytes": 3000, "chunk_tokens": 64, "validation_fraction": 0.2}


class Cluster:
    """That of dask_cluster.py."""

    def __init__(self, workers: int, threads: int) -> None:
        command = [
            sys.executable,
            str(Path(__file__).with_name("dask_cluster.py")),
            f"{workers}",
            f"{threads}",
        ]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
        )
        self.address = self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, line: str) -> str:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)
        return self._line()

    def close(self) -> None:
        self.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two workers of two threads."""
    cluster = Cluster(2, 2)
    yield cluster
    cluster.close()


@pytest.fixture
def corpus(here: Path) -> Path:
    """Files of several kinds, and what becomes of them in one process."""
    (here / "in").mkdir()
    for number, kind in enumerate(("txt.none", "jsonl.none", "txt.gz", "parquet.none")):
        write_kind(here / "in" / f"{number}", make_documents(100, seed=number), kind)
    run_conversion(
        ConvertOptions([here / "in" / "*"], "tok.json", "expected", progress="none", **SMALL), InlineEngine()
    )
    return here


def begin(address: str, *more: str, output: str = "out", inputs: str = "") -> subprocess.Popen[str]:
    """Workers run in another folder, so inputs have whole paths."""
    inputs = inputs or str(Path("in").absolute() / "*")
    command = [sys.executable, "-m", "convert", inputs, "--tokenizer", "tok.json", "--output", output]
    command += ["--text-chunk-bytes", "3000", "--chunk-tokens", "64", "--validation-fraction", "0.2"]
    command += ["--scheduler", address, "--quiet", *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code, and what was said."""
    _, said = process.communicate(timeout=120)
    print(said)
    return process.returncode, said


def wait_for_shards(here: Path) -> None:
    stop = time.monotonic() + 60
    journal = here / "out.partial/journal"
    while not journal.exists():
        assert time.monotonic() < stop
        time.sleep(0.005)


def test_the_same_bytes_while_workers_come(corpus: Path, cluster: Cluster) -> None:
    process = begin(cluster.address)
    assert cluster.ask("scale 4") == "OK"
    assert ended(process) == (0, "")
    assert tree(corpus / "out") == tree(corpus / "expected")
    cluster.ask("scale 2")
    (corpus / "scratch").mkdir()
    more = ["--scratch", "scratch", "--on-error", "quarantine"]
    assert ended(begin(cluster.address, *more, output="again")) == (0, "")
    assert not list((corpus / "scratch").iterdir())
    assert sorted(path.name for path in corpus.iterdir() if "partial" in path.name) == []


def test_a_client_of_the_caller_and_its_loggers(corpus: Path, cluster: Cluster) -> None:
    """The loggers were silenced for good."""
    distributed = importlib.import_module("distributed")  # which sets levels, once
    loggers = [
        logging.getLogger(name) for name in ("distributed", "distributed.client", "distributed.scheduler")
    ]
    before = [logger.level for logger in loggers]
    options = ConvertOptions(
        [Path("in").absolute() / "*"],
        "tok.json",
        "out",
        progress="none",
        executor_options={"priority": 1},
        **SMALL,
    )
    with distributed.Client(cluster.address, set_as_default=False) as client:
        run_conversion(options, client)
        assert client.status == "running"
    assert [logger.level for logger in loggers] == before
    assert tree(corpus / "out") == tree(corpus / "expected")


def test_masks_are_made_there_too(corpus: Path, cluster: Cluster) -> None:
    """Datasets with a loss mask were refused for a number of workers that nobody had given."""
    records = [{"prompt": text, "completion": text[::-1]} for text in make_documents(60, seed=9)]
    path = corpus / "prompts.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    fields = {"prompt_field": "prompt", "completion_field": "completion"}
    common: dict[str, Any] = {"progress": "none", **SMALL, **fields}
    run_conversion(ConvertOptions([path], "tok.json", "masks", **common), InlineEngine())
    words = [word for name in fields for word in (f"--{name.replace('_', '-')}", fields[name])]
    assert ended(begin(cluster.address, *words, output="out", inputs=str(path))) == (0, "")
    assert tree(corpus / "out") == tree(corpus / "masks")


@contextmanager
def one_more_worker(cluster: Cluster, preload: str = "") -> Iterator[subprocess.Popen[str]]:
    """Of eight threads, which nobody starts again; preload: what it does first."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.address, "--no-nanny"]
    command += ["--nthreads", "8", "--no-dashboard", *(["--preload", preload + "\n"] if preload else [])]
    worker = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        assert worker.stderr is not None
        while "Registered to" not in (line := worker.stderr.readline()):
            assert line
        yield worker
    finally:
        worker.kill()
        worker.communicate()


def test_a_worker_that_is_killed(corpus: Path, cluster: Cluster) -> None:
    process = begin(cluster.address)
    wait_for_shards(corpus)
    os.kill(int(cluster.ask("pids").split()[0]), signal.SIGKILL)
    assert ended(process) == (0, "")
    assert tree(corpus / "out") == tree(corpus / "expected")


def test_a_worker_that_counts_as_lost_and_goes_on_late(corpus: Path, cluster: Cluster) -> None:
    with one_more_worker(cluster) as worker:
        process = begin(cluster.address)
        wait_for_shards(corpus)
        worker.send_signal(signal.SIGSTOP)
        assert ended(process) == (0, "")
        worker.send_signal(signal.SIGCONT)  # it goes on with what it was at
        time.sleep(1)
    assert tree(corpus / "out") == tree(corpus / "expected")
    assert not (corpus / "out.partial").exists()


def test_ctrl_c_ends_it_and_the_same_command_goes_on(corpus: Path, cluster: Cluster) -> None:
    process = begin(cluster.address)
    wait_for_shards(corpus)
    process.send_signal(signal.SIGINT)
    code, said = ended(process)
    assert (code, said.count("\n")) == (130, 1), said
    assert "out.partial" in said
    assert ended(begin(cluster.address)) == (0, "")
    assert tree(corpus / "out") == tree(corpus / "expected")


def test_an_error_of_a_task_is_one_line_and_an_exit_code(corpus: Path, cluster: Cluster) -> None:
    (corpus / "in/z.jsonl").write_text('{"text": 5}\n')
    code, said = ended(begin(cluster.address))
    assert (code, said.count("\n")) == (3, 1), said
    assert "in/z.jsonl: line 1" in said


def test_a_scheduler_that_is_not_there_is_one_line(corpus: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
        started = time.monotonic()
        code, said = ended(begin(address))
    assert (code, said.count("\n")) == (5, 1), said
    assert f"dask scheduler {address}: " in said
    assert time.monotonic() - started < 40
    assert not (corpus / "out.partial").exists()


def test_a_scheduler_that_ends_is_one_line_and_the_same_command_goes_on(
    corpus: Path, cluster: Cluster
) -> None:
    other = Cluster(1, 1)
    process = begin(other.address)
    wait_for_shards(corpus)
    other.process.kill()
    other.close()
    code, said = ended(process)
    assert (code, said.count("\n")) == (5, 1), said
    assert f"dask scheduler {other.address}: " in said
    assert ended(begin(cluster.address)) == (0, "")
    assert tree(corpus / "out") == tree(corpus / "expected")


def test_inputs_that_workers_would_look_for_elsewhere_are_one_line(corpus: Path, cluster: Cluster) -> None:
    code, said = ended(begin(cluster.address, inputs="in/*"))
    assert (code, said.count("\n")) == (5, 1), said
    assert f" {corpus}. " in said


@pytest.mark.parametrize(
    ("preload", "said"),
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
def test_a_worker_that_can_not_do_the_work_is_one_line(
    preload: str, said: str, corpus: Path, cluster: Cluster
) -> None:
    with one_more_worker(cluster, preload):
        code, found = ended(begin(cluster.address))
    assert (code, found.count("\n")) == (5, 1), found
    assert said in found
