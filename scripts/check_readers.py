"""Read datasets made to cost too much or to lead astray, by all readers, within limits on memory, time and writing.

    python scripts/check_readers.py [--seeds 100] [--first 0] [--only bomb]

One line a kind: datasets, how many went wrong; then seed and error of each. Exit status 1 if any did. A dataset is made
again by its seed and kind: --first SEED --seeds 1 --only KIND (tests/fuzz/hostile_datasets.py).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "fuzz")]

import zarr  # noqa: E402, F401 - before the limits: each child would import it anew
from bounded_reading import Fuzzer  # noqa: E402 - found on the path above
from hostile_datasets import CHANGES  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=100, help="datasets of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", action="append", choices=list(CHANGES), help="these kinds only")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(Path(folder) / "made")
        for kind in options.only or CHANGES:
            started = time.monotonic()
            seeds = range(options.first, options.first + options.seeds)
            found = [(seed, text) for seed, _, text in fuzzer.runs(seeds, [kind]) if text]
            wrong += len(found)
            print(
                f"{kind}: {len(seeds)} datasets, {len(found)} wrong, {time.monotonic() - started:.0f} s",
                flush=True,
            )
            for seed, text in found[:5]:
                print(f"  seed {seed}: {text}", flush=True)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
