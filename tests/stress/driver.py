"""The `tokenmill` command with small shards, short leases and other executors.

    python driver.py '{"shard_bytes": 700, "executor": "threads", "workers": 3}' convert a.txt ...

shard_bytes: text per shard, so that a few kilobytes of text need many of them.
merge_tokens: tokens per task of the merge.
lease_seconds: a run on a store that is silent for longer is taken over; 0 also stores each batch of results at once.
executor: "own", "inline", or one of EXECUTORS.
workers: of the executor, if it is not "own".
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import convert.driver.conversion as conversion
from convert.planning import plan
from convert.shards import merge
from convert.workdir import journal
from tokenmill.__main__ import main
from tokenmill.cli.standard_streams import flush_and_leave
from tokenmill.engines import stop_signals
from tokenmill.stores import lease


class TwiceExecutor(ThreadPoolExecutor):
    """Runs many tasks twice at the same time, and returns either result."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return the future of one of them."""
        submit = super().submit
        return random.choice([submit(fn, *args, **kwargs) for _ in range(random.choice([1, 2]))])


def _pool(method: str, workers: int) -> Executor:
    return ProcessPoolExecutor(workers, multiprocessing.get_context(method))


def _dask(processes: bool, workers: int) -> Executor:
    """Return the executor of a client. Other tests run `--executor dask`."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=-(-workers // 2),
        processes=processes,
        dashboard_address=None,
        silence_logs=50,
    )
    executor: Executor = Client(cluster).get_executor()
    return executor


def _inline(workers: int) -> Any:
    sys.path.append(str(Path(__file__).parents[1]))
    from inline_engine import InlineEngine

    return InlineEngine()


EXECUTORS: dict[str, Callable[[int], Any]] = {
    "inline": _inline,
    "threads": ThreadPoolExecutor,
    "twice": lambda workers: TwiceExecutor(2 * workers),
    "fork-pool": partial(_pool, "fork"),
    "spawn-pool": partial(_pool, "spawn"),
    "dask-threads": partial(_dask, False),
    "dask-processes": partial(_dask, True),
}


def run(
    words: list[str],
    shard_bytes: int = 700,
    merge_tokens: int = 0,
    lease_seconds: float | None = None,
    executor: str = "own",
    workers: int = 2,
) -> int:
    """Run the command and return its exit code."""
    plan.MIN_GIVEN_SHARD_BYTES = shard_bytes
    merge.MERGE_ITEMS = merge_tokens or merge.MERGE_ITEMS
    if lease_seconds is not None:
        lease.TAKEN_OVER_SECONDS, lease.WATCHED_SECONDS = lease_seconds, lease_seconds / 4
        lease.RENEWAL_SECONDS = lease_seconds / 6 or lease.RENEWAL_SECONDS
        journal.PUT_SECONDS = 0.0
    if executor == "own":
        return main(words)
    made = EXECUTORS[executor](workers)
    conversion.convert = partial(conversion.convert, executor=made)
    if executor != "inline":
        # A worker that is being forked would lose a signal that has a handler, such as the one from a broken pool.
        stop_signals.stop_signals = nullcontext
    code = main(words)
    if executor.endswith("pool"):
        made.shutdown(cancel_futures=True)
    if executor.startswith("dask"):
        from distributed import default_client

        with suppress(ValueError):  # there is none: it ended before it was needed
            client = default_client()
            client.cluster.close()
            client.close()
    return code


if __name__ == "__main__":
    flush_and_leave(run(sys.argv[2:], **json.loads(sys.argv[1])))  # threads may still run interrupted tasks
