"""Do conversions give the bytes that one worker gives, whatever the order of events?

    python tools/check_races.py [--runs 200] [--minutes M] [--seed 0] [--workers 2-16] [--executor own ...]
        [--place store]
    python tools/check_races.py --seed 0 --only 37 --runs 20 --keep FOLDER      # run 37 again and again

Random corpora of all kinds of input; many workers; tiny text chunks, shards and runs; system calls delayed at random,
workers and parents killed or interrupted and the work gone on with; executors of others (tests/convert/race_runs.py).
Half of the corpora are converted to a store, moto's S3 server on loopback, some from there: requests wait, come twice
and late, two drivers work at one output, one stands still while another takes over (--place folder or store: these
alone).
One line for each run that is not as it must be, with what repeats it, and at last a line of figures. Exit status 1 if
there was one. Needs a C compiler and the extra `test`; with dask's `distributed` its executors are tried, too, and a
seed gives other runs then.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [
    str(ROOT),
    *(
        str(ROOT / "tests" / name)
        for name in ("", "convert", "convert/contract", "inputs", "fault", "stores")
    ),
]

from race_driver import EXECUTORS, PLANTED  # noqa: E402 - found on the path above
from race_runs import RUNS_OF_A_CORPUS, Races, Result  # noqa: E402
from servers import moto_server  # noqa: E402

from bpe.threads import available_threads  # noqa: E402


def main() -> int:
    options = parse()
    started = time.monotonic()
    tally = Tally(options)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        share = {"both": 0.5, "store": 1.0, "folder": 0.0}[options.place]
        endpoint = stack.enter_context(moto_server()) if share else ""
        place = Path(options.keep or folder)
        how: dict[str, Any] = {"keep": bool(options.keep), "planted": options.plant}
        races = Races(place, options.seed, options.workers, options.executor, endpoint, share, **how)
        if options.only is not None:
            tally.add_all(races.group(options.only // RUNS_OF_A_CORPUS, [options.only] * options.runs))
        else:
            stop = started + options.minutes * 60
            groups = iter(range(options.first // RUNS_OF_A_CORPUS, 1 << 40))
            lock = threading.Lock()

            def work() -> None:
                while time.monotonic() < stop and not tally.is_enough():
                    with lock:
                        group = next(groups)
                    tally.add_all(races.group(group))

            with ThreadPoolExecutor(options.jobs) as threads:
                jobs = [threads.submit(work) for _ in range(options.jobs)]
                try:
                    for job in jobs:
                        job.result()
                except KeyboardInterrupt:
                    tally.end()
    return tally.told(time.monotonic() - started)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--runs", type=int, default=200)
    add("--minutes", type=float, default=1e9, help="begin no corpus after so long")
    add("--seed", type=int, default=0)
    add("--first", type=int, default=0, metavar="RUN", help="begin with the corpus of this run")
    add("--only", type=int, metavar="RUN", help="this run, so often as --runs says")
    add("--workers", type=_range, default=(2, 16), metavar="LO-HI")
    add("--executor", action="append", choices=["own", *EXECUTORS], default=[], help="these alone")
    add("--place", choices=["both", "folder", "store"], default="both", help="where outputs are")
    add("--plant", choices=list(PLANTED), default="", help="a fault on purpose, which the runs are to find")
    add("--jobs", type=int, default=2 * available_threads(), help="how many corpora at a time")
    add("--stop", action="store_true", help="at the first run that is not as it must be")
    add("--show", action="store_true", help="tell of every run")
    add("--keep", metavar="FOLDER", help="leave what a failed run has made in this new folder")
    options = parser.parse_args()
    if options.keep:
        Path(options.keep).mkdir()
    return options


def _range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    return int(low), int(high or low)


class Tally:
    """What the runs came to."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._first_failure = 0.0
        self._runs: Counter[str] = Counter()
        self._wrong: Counter[tuple[str, str]] = Counter()
        self._stopped = 0
        self._is_ended = False

    def end(self) -> None:
        """No other run is to begin."""
        self._is_ended = True

    def add_all(self, results: Iterable[Result]) -> None:
        """Count runs as they end, and tell of those that went wrong."""
        for result in results:
            with self._lock:
                self._add(result)
            if self.is_enough():
                return

    def _add(self, result: Result) -> None:
        if self._is_ended:
            return  # what was interrupted, too, is not as it must be
        settings = result.settings
        self._runs[settings.executor] += 1
        self._stopped += result.stopped
        if self._options.show and not result.problem:
            print(f"run {settings.number} ({result.seconds:.1f} s): {settings.text}", flush=True)
        if result.problem:
            self._first_failure = self._first_failure or time.monotonic() - self._started
            self._wrong[settings.executor, result.kind] += 1
            problem = result.problem.replace("\n", "\n    ")
            print(f"run {settings.number} ({result.seconds:.1f} s): {result.kind}", flush=True)
            print(f"  {settings.text}\n  corpus:{result.corpus}\n    {problem}", flush=True)
            low, high = self._options.workers
            executors = "".join(f" --executor {name}" for name in self._options.executor)
            executors += f" --place {self._options.place}" if self._options.place != "both" else ""
            repeat = f"--seed {self._options.seed} --workers {low}-{high}{executors} --only {settings.number}"
            print(f"  again: python tools/check_races.py {repeat} --runs 20", flush=True)

    def is_enough(self) -> bool:
        """Whether no other run is to begin."""
        return (
            self._is_ended
            or self._runs.total() >= self._options.runs
            or (self._options.stop and bool(self._wrong))
        )

    def told(self, seconds: float) -> int:
        """Print the figures; the exit status."""
        wrong = self._wrong.total()
        print(
            f"{self._runs.total()} runs in {seconds:.0f} s, seed {self._options.seed}: {wrong} wrong; "
            f"stopped and gone on with {self._stopped} times"
            + (f"; the first wrong one after {self._first_failure:.0f} s" if wrong else "")
        )
        for executor, count in sorted(self._runs.items()):
            kinds = [f"{n} {kind}" for (of, kind), n in sorted(self._wrong.items()) if of == executor]
            print(f"  {executor}: {count} runs, {', '.join(kinds) or 'none wrong'}")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
