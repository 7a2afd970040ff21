"""Break a small conversion at every one of its file operations, resume it, and compare the bytes.

    python tools/check_faults.py [--stride 1] [--only "worker killed"] [--double 50] [--seed 0]

One line a fault: points, mismatches, hangs; exit status 1 if anything was not as it must be (tests/fault/sweep.py).
The tests run the same with large strides.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "fault")]

from sweep import FAULTS, Sweep  # noqa: E402 - found on the path above


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stride", type=int, default=1, help="every n-th operation only")
    parser.add_argument("--first", type=int, default=1, help="the first operation")
    parser.add_argument("--only", action="append", choices=list(FAULTS), help="these faults only")
    parser.add_argument(
        "--double", type=int, default=0, help="so many random pairs of faults, one in the resumed run"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep(Path(folder))
        print(f"operations: {sweep.operations}", flush=True)
        for name in options.only or FAULTS:
            fault, started = FAULTS[name], time.monotonic()
            points = range(options.first, sweep.points(fault) + 1, options.stride)
            found = [problem for at in points if (problem := sweep.point(at, fault))]
            wrong += found
            seconds = time.monotonic() - started
            print(f"{name}: {len(points)} points, {len(found)} wrong, {seconds:.0f} s", flush=True)
            for problem in found[:5]:
                print(f"  {problem}", flush=True)
        rng = random.Random(options.seed)
        kills = [fault for fault in FAULTS.values() if "killed" in fault.name]
        for _ in range(options.double):
            first, second = rng.choice(kills), rng.choice(kills)
            places = rng.randrange(1, sweep.points(first) + 1), rng.randrange(1, sweep.points(second) + 1)
            problem = sweep.point(places[0], first, (places[1], second))
            if problem:
                wrong.append(problem)
                print(f"  {problem}", flush=True)
        if options.double:
            print(f"two faults: {options.double} pairs, seed {options.seed}", flush=True)
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
