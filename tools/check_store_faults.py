"""Break a small conversion from a store to a store at its requests, go on, and compare the objects.

    python tools/check_store_faults.py [--points 300] [--seed 0] [--only "credential expired"] [--server moto]
    python tools/check_store_faults.py --only "lost put" --at 17 --seed 3      # that point again

moto's S3 server on loopback, or rclone's, behind a proxy that does harm (tests/stores); drivers and workers killed,
stopped and overtaken, connections, answers and credentials lost, inputs changed (tests/fault/store_faults.py); what
must be after it: tests/fault/store_sweep.py. A line for each point that is not as it must be, then one of figures for
each kind and one for all. Exit status 1 if something was wrong. Needs Linux and the extra `test`. The tests run some of
the points.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [
    str(ROOT),
    *(
        str(ROOT / "tests" / name)
        for name in ("", "convert", "convert/contract", "inputs", "fault", "stores")
    ),
]

from servers import moto_server, rclone_server  # noqa: E402 - found on the path above
from store_faults import KINDS  # noqa: E402
from store_sweep import StoreSweep  # noqa: E402

from bpe.threads import available_threads  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--server", choices=["moto", "rclone"], default="moto")
    parser.add_argument(
        "--dask",
        action="store_true",
        help="all runs on a dask cluster, with shards in another place of the store",
    )
    parser.add_argument("--only", action="append", choices=list(KINDS), help="these kinds only")
    parser.add_argument("--at", type=int, help="at this of the requests that the kind may happen at")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the choice of points; with --at of its own choices"
    )
    parser.add_argument("--jobs", type=int, default=available_threads(), help="how many points at a time")
    options = parser.parse_args()
    started = time.monotonic()
    done: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = rclone_server(folder / "buckets") if options.server == "rclone" else moto_server()
        endpoint = stack.enter_context(server)
        sweeps = []
        for job in range(min(options.jobs, options.points)):
            (folder / f"{job}").mkdir()
            sweeps.append(StoreSweep(endpoint, f"corpus-{job}", folder / f"{job}", options.dask))
            stack.callback(sweeps[-1].close)
        print(f"requests of a run without faults: {len(sweeps[0].requests)}", flush=True)
        points = iter(choose(sweeps[0], options))
        lock = threading.Lock()

        def work(sweep: StoreSweep) -> None:
            while True:
                with lock:
                    name, at, seed = next(points, ("", 0, 0))
                if not name:
                    return
                problem = sweep.point(name, at, seed)
                with lock:
                    done[name] += 1
                    if problem:
                        wrong["it hangs" if "hangs" in problem else "wrong"] += 1
                        print(f"--only {name!r} --at {at} --seed {seed}: {problem}", flush=True)

        with ThreadPoolExecutor(len(sweeps)) as threads:
            for future in [threads.submit(work, sweep) for sweep in sweeps]:
                future.result()
    for name, count in done.items():
        print(f"  {name}: {count}")
    print(
        f"{done.total()} points, {sum(sweep.missed for sweep in sweeps)} of them missed, {wrong.total()} wrong, "
        f"{wrong['it hangs']} hangs; seed {options.seed}, {time.monotonic() - started:.0f} s"
    )
    return 1 if wrong else 0


def choose(sweep: StoreSweep, options: argparse.Namespace) -> list[tuple[str, int, int]]:
    """Points in turn of the kinds, as often as each weighs: name, number of the request, seed."""
    names = options.only or list(KINDS)
    if options.at is not None:
        return [(name, options.at, options.seed) for name in names for _ in range(options.points)]
    rng = random.Random(options.seed)
    places = {name: rng.sample(own, len(own)) for name in names for own in [sweep.places(name)]}
    turns = [name for name in names for _ in range(KINDS[name].weight)]
    points = []
    while any(places.values()):
        points += [(name, places[name].pop(), rng.randrange(1 << 16)) for name in turns if places[name]]
    return points[: options.points]


if __name__ == "__main__":
    sys.exit(main())
