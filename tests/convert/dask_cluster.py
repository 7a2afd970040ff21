"""A dask cluster of processes on loopback, driven by lines: "pids" answers with the workers' ids, "scale N" with OK.

python dask_cluster.py WORKERS THREADS     prints the scheduler's address, ends when its input does
"""

from __future__ import annotations

import sys

import dask
from distributed import LocalCluster


def serve(workers: int, threads: int) -> None:
    """Until standard input ends."""
    with LocalCluster(
        n_workers=workers, threads_per_worker=threads, dashboard_address=None, silence_logs=50
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        for line in sys.stdin:
            word, *numbers = line.split()
            if word == "scale":
                cluster.scale(int(numbers[0]))
            pids = [nanny.pid for nanny in cluster.workers.values() if nanny.pid]
            print(*pids if word == "pids" else ["OK"], flush=True)


if __name__ == "__main__":
    dask.config.set(
        {"distributed.scheduler.worker-ttl": "4s"}
    )  # silent for so long, a worker is declared lost
    serve(*map(int, sys.argv[1:]))
