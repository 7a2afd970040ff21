"""A dask cluster of processes on loopback, driven by lines: "pids" answers with the workers' ids, "scale N" with OK.

python dask_cluster.py WORKERS THREADS     prints the scheduler's address, ends when its input does
"""

from __future__ import annotations

import os
import subprocess
import sys


class Cluster:
    """A running cluster. address: of its scheduler."""

    def __init__(self, workers: int, threads: int) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        line, pipe = [sys.executable, __file__, f"{workers}", f"{threads}"], subprocess.PIPE
        self.process = subprocess.Popen(line, text=True, env=environment, stdin=pipe, stdout=pipe)
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


def serve(workers: int, threads: int) -> None:
    """Until standard input ends."""
    import dask
    from distributed import LocalCluster

    dask.config.set({"distributed.scheduler.worker-ttl": "4s"})  # a worker that is silent for so long is lost
    options = {"n_workers": workers, "threads_per_worker": threads}
    with LocalCluster(**options, dashboard_address=None, silence_logs=50) as cluster:
        print(cluster.scheduler_address, flush=True)
        for line in sys.stdin:
            word, *numbers = line.split()
            if word == "scale":
                cluster.scale(int(numbers[0]))
            pids = [nanny.pid for nanny in cluster.workers.values() if nanny.pid]
            print(*pids if word == "pids" else ["OK"], flush=True)


if __name__ == "__main__":
    serve(*map(int, sys.argv[1:]))
