"""What does a task cost the process that hands tasks out, with how many workers?

    python scripts/bench/dispatch.py [--workers 2 16 100 500] [--tasks 20000]

Forked workers whose tasks return at once, two more in flight than there are workers, as in a conversion: tasks a second
on this machine, and processor time of the parent a task, which must not grow with the workers.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tokenmill.engines.process_engine import ProcessEngine


def measure(workers: int, tasks: int) -> None:
    with ProcessEngine(workers, "fork") as engine:
        for future in [engine.submit(abs, -1) for _ in range(2 * workers)]:
            future.result()  # all have begun
        done: SimpleQueue[Any] = SimpleQueue()
        started, processor = time.perf_counter(), time.process_time()
        begun = 0
        for number in range(tasks):
            while begun < min(tasks, number + workers + 2):
                engine.submit(abs, -1).add_done_callback(done.put)
                begun += 1
            done.get().result()
        seconds, processor = time.perf_counter() - started, time.process_time() - processor
    print(
        f"{workers:4} workers: {tasks / seconds:7.0f} tasks/s, {processor / tasks * 1e6:4.0f} us of the parent a task",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 16, 100, 500])
    parser.add_argument("--tasks", type=int, default=20_000)
    parsed = parser.parse_args()
    for workers in parsed.workers:
        measure(workers, parsed.tasks)
