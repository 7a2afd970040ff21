"""Let every allocation of the core fail: in single calls, then in a small conversion that is resumed after each.

    python tools/check_allocations.py [--stride 1]

One line a call or fault; exit status 1 if anything was not as it must be (tests/fault/allocations.py, sweep.py).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "fault")]

import allocations  # noqa: E402 - found on the path above
from allocation_sweep import NO_MEMORY, NO_MEMORY_LEFT, AllocationSweep  # noqa: E402

MOST_ABORTED = 24  # of some 360, when the cores of flat_tokens and convert are loaded


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stride", type=int, default=1, help="every n-th allocation only, of the conversion")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        calls = allocations.run(Path(folder))
        print(calls.stdout + calls.stderr, end="", flush=True)
        wrong = calls.returncode
        sweep = AllocationSweep(Path(folder))
        for fault in (NO_MEMORY, NO_MEMORY_LEFT):
            started = time.monotonic()
            points = sweep.places[:: options.stride]
            found = [problem for at in points if (problem := sweep.point(at, fault))]
            wrong += len(found)
            seconds = time.monotonic() - started
            aborted, sweep.aborted = sweep.aborted, 0
            wrong += aborted > MOST_ABORTED
            print(
                f"{fault.name}: {len(points)} points, {len(found)} wrong, {aborted} by nanobind, {seconds:.0f} s",
                flush=True,
            )
            for problem in found[:5]:
                print(f"  {problem}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
