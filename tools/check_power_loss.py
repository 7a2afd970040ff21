"""What the power failing at any moment leaves of a job: the former output, the finished one, or a rerun makes it?

    python tools/check_power_loss.py [--states 200] [--seed 0] [--only convert ...] [--forget manifest.json]

Each job runs once and its file operations are noted; of each, states are made that a disk may hold when the power
fails, with what was not synced lost, torn or there, in any combination (tests/fault/power_loss.py). In each state the
output is read and the same command given again. One line a job; exit status 1 if anything was not as it must be.
--forget: syncs of paths that end so count as not made, to see that they matter. Needs Linux and a C compiler.
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

from power_jobs import JOBS, Outcomes  # noqa: E402 - found on the path above
from power_loss import compile_recorder  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--states", type=int, default=200, help="different ones, of each job")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(JOBS), default=list(JOBS), metavar="JOB")
    parser.add_argument("--forget", default="", metavar="END", help="of paths whose syncs count as not made")
    parser.add_argument("--minutes", type=float, default=1e9, help="of each job, at most")
    parser.add_argument("--shown", type=int, default=5, help="so many of what is wrong, of each job")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="power-") as folder:
        library = compile_recorder(Path(folder))
        if library is None:
            parser.error("needs a C compiler (cc, gcc)")
        for number, name in enumerate(options.only):
            own = Path(folder) / str(number)
            own.mkdir()
            failed |= check(name, own, library, options)
    return 1 if failed else 0


def check(name: str, folder: Path, library: Path, options: argparse.Namespace) -> bool:
    """Whether anything is wrong with a job."""
    started = time.monotonic()
    outcomes = Outcomes(JOBS[name], folder, library, options.forget)
    record, rng, seen = outcomes.record, random.Random(f"{options.seed} {name}"), set[str]()
    wrong = []
    last = record.operations
    problem = outcomes.judge(record.least(last), must_be_finished=True)
    if problem:
        wrong.append(f"at the end: {problem}")
    drawn = 0
    while len(seen) < options.states and drawn < 20 * options.states:
        if time.monotonic() - started > 60 * options.minutes:
            break
        drawn += 1
        at = rng.randint(rng.choice([0, last * 3 // 4]), last)  # much of what matters happens at the end
        state = record.state(at, rng)
        if state.key in seen:
            continue
        seen.add(state.key)
        problem = outcomes.judge(state)
        if problem:
            wrong.append(f"draw {drawn}, before operation {at}: {problem}")
    told = ", ".join(f"{count} {how}" for how, count in outcomes.counts.items())
    seconds = time.monotonic() - started
    print(
        f"{name}: {last} operations, {len(seen)} states, seed {options.seed}: {told}; {len(wrong)} wrong, "
        f"{seconds:.0f} s",
        flush=True,
    )
    for problem in wrong[: options.shown]:
        print(f"  {problem}", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
