"""Are batches those of one undisturbed thread, whatever readers share and whenever they are forked or killed?

    python tools/check_reading_races.py [--runs 200] [--minutes M] [--seed 0] [--jobs 2]
    python tools/check_reading_races.py --seed 0 --only 37      # run 37 again

Random datasets of all layouts on a disk and behind a web server; loaders, mixtures and packs that threads share, forks
in the middle of passes, processes that share a cache of which one is killed; system calls delayed at random
(tests/flat_tokens/reading_races.py). A line for each run that is not as it must be, then a line of figures. Exit status
1 if there was one. Needs a C compiler and the extra `test`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / name) for name in ("flat_tokens", "fault", "stores"))]

from reading_races import ReadingRaces  # noqa: E402 - found on the path above
from web_server import web_server  # noqa: E402

from bpe.threads import available_threads  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--runs", type=int, default=200)
    add("--minutes", type=float, default=1e9, help="begin no run after so long")
    add("--seed", type=int, default=0)
    add("--only", type=int, metavar="RUN", help="this run")
    add("--jobs", type=int, default=available_threads(), help="how many runs at a time")
    add("--show", action="store_true", help="tell of every run")
    options = parser.parse_args()
    started = time.monotonic()
    numbers = iter(range(options.runs) if options.only is None else [options.only])
    lock = threading.Lock()
    batches = runs = wrong = 0
    with tempfile.TemporaryDirectory() as folder, web_server() as server:
        races = ReadingRaces(Path(folder), options.seed, server)

        def work() -> None:
            nonlocal batches, runs, wrong
            while time.monotonic() < started + options.minutes * 60:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                run = races.run(number)
                with lock:
                    runs, batches, wrong = runs + 1, batches + run.batches, wrong + bool(run.problem)
                    if run.problem or options.show:
                        print(f"run {number}: {run.text}: {run.problem or 'as it must be'}", flush=True)

        with ThreadPoolExecutor(options.jobs) as threads:
            for job in [threads.submit(work) for _ in range(options.jobs)]:
                job.result()
    seconds = time.monotonic() - started
    print(f"{runs} runs, {batches:,} batches compared, {wrong} wrong; seed {options.seed}, {seconds:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
