"""Check that conversions give the same bytes on clusters of several sizes, even if workers are killed.

    python tools/check_engines.py [--runs 2] [--engine dask] [--engine ray]

Clusters run on this machine: dask with 2 and 4 workers of 1 and 2 threads, Ray with 2 and 4 CPUs. Each runs several
conversions. In every second one a worker is killed halfway. The output must equal a conversion in one process, without
leftover files. Prints one line per cluster. Exit status 1 for a difference. Needs Linux and the extra `cluster`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("", "tests", "tests/convert/contract", "tests/inputs")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))

from input_kinds import KINDS, write_kind  # noqa: E402 - found on the path above
from runs import sample_documents, tokenizer_bytes, tree  # noqa: E402

from convert import ConvertOptions, convert  # noqa: E402
from tokenmill.engines.engine import package_of  # noqa: E402
from tokenmill.engines.inline_engine import InlineEngine  # noqa: E402

Cluster = tuple[str, dict[str, Any], Callable[[], list[int]]]  # name, options, process IDs of the workers


@contextmanager
def dask(workers: int, threads: int) -> Iterator[Cluster]:
    with package_of("dask", "distributed").LocalCluster(
        n_workers=workers, threads_per_worker=threads, dashboard_address=None, silence_logs=50
    ) as cluster:
        options = {"executor": "dask", "scheduler": cluster.scheduler_address}
        yield (
            f"dask, {workers} workers of {threads}",
            options,
            lambda: [nanny.pid for nanny in cluster.workers.values() if nanny.pid],
        )


@contextmanager
def ray(cpus: int) -> Iterator[Cluster]:
    package = package_of("ray", "ray")
    package.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False, logging_level="CRITICAL")
    try:
        yield f"ray, {cpus} CPUs", {"executor": "ray", "address": "auto"}, ray_workers
    finally:
        package.shutdown()


def ray_workers() -> list[int]:
    """Return busy workers of the cluster that this process started. A shared machine can have others."""
    parents, named = {}, []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            title = (path / "cmdline").read_bytes()
            if title.startswith(b"ray::") and b"IDLE" not in title:
                named.append(int(path.name))
    return [pid for pid in named if os.getpid() in ancestors(pid, parents)]


def ancestors(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while (pid := parents.get(pid, 0)) > 1:
        yield pid


def kill_one(
    output: str, workers: Callable[[], list[int]], ended: threading.Event, killed: list[int]
) -> None:
    """Kill a worker once the first shards exist."""
    while not ended.is_set():
        if any(Path(f"{output}.partial/shards").glob("*.*-*")) and (found := workers()):
            with suppress(OSError):
                os.kill(found[0], signal.SIGKILL)
                killed.append(found[0])
            return
        time.sleep(0.002)


def check(cluster: Cluster, runs: int, base: dict[str, Any], expected: dict[str, bytes]) -> int:
    """Return the number of failed runs."""
    name, options, workers = cluster
    wrong, started = 0, time.monotonic()
    killed: list[int] = []
    for number in range(runs):
        output, ended = f"{name.replace(' ', '-')}-{number}", threading.Event()
        killer = threading.Thread(target=kill_one, args=(output, workers, ended, killed))
        if number % 2:
            killer.start()
        problem = ""
        try:
            convert(ConvertOptions(output=output, **base, **options))
            if tree(Path(output)) != expected:
                problem = "other bytes"
            if Path(f"{output}.partial").exists():
                problem += " something is left"
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        ended.set()
        if number % 2:
            killer.join()
        if problem:
            wrong += 1
            print(f"  run {number}: {problem}", flush=True)
    if runs > 1 and not killed:
        wrong += 1
        print("  no worker was killed: nothing is shown by that")
    seconds = time.monotonic() - started
    print(f"{name}: {runs} runs, {len(killed)} workers killed, {wrong} wrong, {seconds:.0f} s", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2, help="number of conversions per cluster (default: 2)")
    parser.add_argument(
        "--engine",
        action="append",
        choices=("dask", "ray"),
        help="engine to check, repeatable (default: both)",
    )
    parsed = parser.parse_args()
    clusters: dict[str, list[Any]] = {
        "dask": [lambda w=w, t=t: dask(w, t) for w in (2, 4) for t in (1, 2)],
        "ray": [lambda cpus=cpus: ray(cpus) for cpus in (2, 4)],
    }
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("tok.json").write_bytes(tokenizer_bytes())
        Path("in").mkdir()
        for number, kind in enumerate(KINDS):
            write_kind(Path("in") / f"{number}", sample_documents(200, seed=number), kind)
        base: dict[str, Any] = {
            "inputs": [Path(folder) / "in" / "*"],
            "tokenizer": "tok.json",
            "progress": "none",
        }
        base |= {"text_chunk_bytes": 3000, "chunk_tokens": 64, "validation_fraction": 0.2}
        convert(ConvertOptions(output="expected", **base), InlineEngine())
        expected = tree(Path("expected"))
        for engine in parsed.engine or clusters:
            for make in clusters[engine]:
                with make() as cluster:
                    wrong += check(cluster, parsed.runs, base, expected)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
