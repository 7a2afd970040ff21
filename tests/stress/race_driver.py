"""`python -m convert` with tasks, shards and merge tasks of given sizes, on any executor:

    python race_driver.py '{"executor": "threads", "shard_bytes": 700, "run_tokens": 512}' ARGUMENTS

executor: own, or one of EXECUTORS, with --workers workers.
lease_seconds: a run that is silent for longer is taken over.
planted: "", or one of PLANTED, a deliberate fault that the races must find.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import convert.driver.conversion
from convert.__main__ import flush_and_leave, main
from convert.planning.plan import Plan
from convert.shards import merge, shard_store
from convert.workdir import journal
from tokenmill.engines import stop_signals
from tokenmill.stores import lease


class TwiceExecutor(ThreadPoolExecutor):
    """Runs many tasks twice at the same time, and returns either result."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return the future of one of them."""
        futures = [
            super(TwiceExecutor, self).submit(fn, *args, **kwargs) for _ in range(random.choice([1, 2]))
        ]
        return random.choice(futures)


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


EXECUTORS: dict[str, Callable[[int], Executor]] = {
    "threads": ThreadPoolExecutor,
    "twice": lambda workers: TwiceExecutor(2 * workers),
    "fork-pool": partial(_pool, "fork"),
    "spawn-pool": partial(_pool, "spawn"),
    "dask-threads": partial(_dask, False),
    "dask-processes": partial(_dask, True),
}


def _replaces(is_chosen: Callable[[str], bool]) -> None:
    """Make puts of some keys replace existing objects."""
    from tokenmill.stores.object import ObjectStore

    put = ObjectStore.put

    def replace_it(self: Any, key: str, data: Any, if_absent: bool = False) -> Any:
        return put(self, key, data, if_absent and not is_chosen(key))

    ObjectStore.put = replace_it  # type: ignore[method-assign]


def _without_claims() -> None:
    _replaces(lambda key: True)
    journal.StoreJournal._check_claim = lambda self: None  # type: ignore[method-assign]


def _one_name() -> None:
    @contextmanager
    def one_folder(self: shard_store.ShardStore, temporary: Path) -> Iterator[Path]:
        yield self.store.path if self.store.is_local else temporary

    shard_store.ShardStore.folder = one_folder  # type: ignore[method-assign,assignment]


PLANTED: dict[str, Callable[[], None]] = {
    "the manifest replaces another": lambda: _replaces(lambda key: key == "manifest.json"),
    "the journal replaces another": lambda: _replaces(lambda key: key.startswith("journal/")),
    "no driver checks its claim": _without_claims,
    "attempts at a shard share its files": _one_name,
}


def _set(settings: dict[str, Any]) -> None:
    if settings.get("planted"):
        PLANTED[settings["planted"]]()
    if settings["run_tokens"]:
        merge.MERGE_ITEMS = settings["run_tokens"]
    if seconds := settings.get("lease_seconds"):
        lease.TAKEN_OVER_SECONDS, lease.RENEWAL_SECONDS, lease.WATCHED_SECONDS = (
            seconds,
            seconds / 6,
            seconds / 4,
        )
        journal.PUT_SECONDS = 0.0
    if settings["shard_bytes"]:
        make_plan = convert.driver.conversion.make_plan

        def make_other(*arguments: Any) -> Plan:
            return replace(make_plan(*arguments), shard_text_bytes=settings["shard_bytes"])

        convert.driver.conversion.make_plan = make_other


if __name__ == "__main__":
    given, *words = sys.argv[1:]
    settings = json.loads(given)
    _set(settings)
    if settings["executor"] != "own":
        workers = int(words[words.index("--workers") + 1])
        executor = EXECUTORS[settings["executor"]](workers)
        convert.driver.conversion.convert = partial(convert.driver.conversion.convert, executor=executor)
        # A worker that is being forked would lose a signal that has a handler, such as the one from a broken pool.
        stop_signals.stop_signals = nullcontext
    code = main(words)
    if settings["executor"].endswith("pool"):
        executor.shutdown(cancel_futures=True)
    if settings["executor"].startswith("dask"):
        from distributed import default_client

        with suppress(ValueError):  # there is none: it ended before it was needed
            client = default_client()
            client.cluster.close()
            client.close()
    flush_and_leave(code)  # as `python -m convert`; threads may still run tasks of an interrupted run
