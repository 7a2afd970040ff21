"""Check that tests detect small changes of the code (mutation testing).

    python tools/check_mutants.py [--mutants 100 [--of-each]] [--seed 0] [--under stores convert/workdir ...]
        [--native | --variant arm64|avx512] [--log FILE]

Mutants change bounds, conditions, numbers or order, or drop calls and checks, in Python or (--native) in the core. A
seeded sample of them runs, each in a copy of the tree, against the quick tests closest to the module (tools/mutants/).
--variant: mutants of the code for these instructions, tested by tools/check_variants, in an emulator if necessary.

Prints one line for each survivor that tools/mutants/judged.txt does not list, and a summary. Exit status 1 if there is
one. With --log, earlier mutants are skipped. Needs the extra `test`, and for the core a compiler.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from mutants.change import Change
from mutants.covering import PACKAGES, Covering
from mutants.native_changes import native_changes
from mutants.python_changes import python_changes
from mutants.switched_core import SwitchedCore
from mutants.trial import Outcome, Tree
from mutants.variant_trial import VARIANTS, VariantTree, check_unchanged

ROOT = Path(__file__).resolve().parents[1]
JUDGED = Path("tools") / "mutants" / "judged.txt"
TABLES = ("word_characters.cpp", "wordless_leads.hpp")  # generated
SURVIVED = ("survived", "unreached", "untested")
VERDICTS = ("equivalent", "cost", "told")

_tree: list[Tree | VariantTree] = []  # set in a worker process


def main() -> int:
    options = parse()
    root: Path = options.root
    if options.variant:
        check_unchanged(root, options.variant)
    covering = Covering(root)
    judged = read_judged(root / JUDGED)
    changes = sample(root, options)
    logged = read_log(options.log) if options.log else {}
    waiting = [change for change in changes if change.key not in logged]
    counts = Counter(logged[change.key]["result"] for change in changes if change.key in logged)
    survivors = [change for change in changes if logged.get(change.key, {}).get("result") in SURVIVED]

    def tests_of(change: Change) -> list[str]:
        return covering.tests(change.path)[: options.test_files]

    stop = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=options.folder) as folder:
        context = multiprocessing.get_context("fork")
        place = Path(folder).resolve()
        core = SwitchedCore(root, place, waiting, options.jobs) if options.native and waiting else None
        if core:  # mutants with separate builds come last
            waiting.sort(key=lambda change: change.key not in core.numbers)
        make: Callable[[], Tree | VariantTree]
        if options.variant:
            make = partial(VariantTree, root, place, options.variant)
        else:
            make = partial(Tree, root, place, (options.times or place / "times").resolve(), core)
        with ProcessPoolExecutor(options.jobs, context, begin, (make,)) as pool:
            jobs = {
                pool.submit(attempt, change, tests_of(change), options.test_seconds, stop): change
                for change in waiting
            }
            for job in as_completed(jobs):
                change, outcome = jobs[job], job.result()
                if outcome is None:
                    counts["not tried"] += 1
                    continue
                counts[outcome.result] += 1
                if options.log:
                    write_log(options.log, change, outcome)
                if outcome.result in SURVIVED:
                    survivors.append(change)
                    if change.key not in judged:
                        count = len(outcome.tests)
                        print(
                            f"{change.key} {outcome.result} {change.told()} ({count} test files)", flush=True
                        )
    verdicts = Counter(judged.get(change.key, "new") for change in survivors)
    tried = sum(counts[name] for name in ("killed", *SURVIVED))
    figures = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    told = ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items()))
    print(f"{tried} mutants, seed {options.seed}: {figures}; survivors: {told or 'none'}")
    return 1 if verdicts["new"] else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--mutants", type=int, default=100)
    add("--of-each", action="store_true", help="--mutants is the number per path instead of the total")
    add("--seed", type=int, default=0)
    add(
        "--under",
        nargs="+",
        default=list(PACKAGES),
        metavar="PATH",
        help="packages, folders or files to change",
    )
    core = parser.add_mutually_exclusive_group()
    core.add_argument("--native", action="store_true", help="change the core instead of Python")
    core.add_argument(
        "--variant", choices=VARIANTS, help="change the code of the core for these instructions"
    )
    add("--only", nargs="+", metavar="KEY", help="only these mutants")
    add("--log", type=Path, metavar="FILE", help="file for the outcomes, one line of JSON per mutant")
    add("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    add("--minutes", type=float, default=1e9, help="time limit for starting mutants")
    add("--test-seconds", type=float, default=15.0, help="time limit of the tests per mutant")
    add("--test-files", type=int, default=8, help="maximum number of test files per mutant, closest first")
    add(
        "--times",
        type=Path,
        metavar="FOLDER",
        help="cache folder for the times and calls of tests",
    )
    add("--folder", type=Path, help="folder for the copies of the tree")
    add("--root", type=Path, default=ROOT, help="root of the tree")
    return parser.parse_args()


def sample(root: Path, options: argparse.Namespace) -> list[Change]:
    """Return a sample of the changes in random order; with --of-each, one sample per path, in sequence."""
    make = native_changes if options.native or options.variant else python_changes
    found = [
        [
            change
            for path in sorted(files(root / under, options))
            for change in make(path.relative_to(root).as_posix(), path.read_text())
        ]
        for under in options.under
    ]
    if not options.of_each:
        found = [[change for changes in found for change in changes]]
    if options.only:
        return [change for changes in found for change in changes if change.key in options.only]
    random_ = random.Random(options.seed)
    chosen = [random_.sample(changes, min(options.mutants, len(changes))) for changes in found]
    return [change for turn in zip_longest(*chosen) for change in turn if change]


def files(path: Path, options: argparse.Namespace) -> list[Path]:
    """Return the sources at a path, without generated ones. In the core, only sources for the variant or machine."""
    found = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    suffixes = (".cpp", ".hpp") if options.native or options.variant else (".py",)

    def is_tried(name: str) -> bool:
        if options.variant:
            return VARIANTS[options.variant] in name
        return not any(foreign in name for foreign in foreign_instructions())

    return [
        file for file in found if file.suffix in suffixes and file.name not in TABLES and is_tried(file.name)
    ]


@cache
def foreign_instructions() -> tuple[str, ...]:
    """Return the instruction sets of other machines, as in file names."""
    processor = Path("/proc/cpuinfo")
    known = processor.read_text() if processor.exists() else ""
    needed = {"avx2": "avx2", "avx512": "avx512_vbmi2", "neon": "asimd"}
    return tuple(name for name, flag in needed.items() if flag not in known)


def begin(make: Callable[[], Tree | VariantTree]) -> None:
    _tree.append(make())


def attempt(change: Change, tests: list[str], test_seconds: float, stop: float) -> Outcome | None:
    """Try a change in a worker process. Return None after the deadline."""
    return None if time.monotonic() > stop else _tree[0].try_change(change, tests, test_seconds)


def read_judged(path: Path) -> dict[str, str]:
    """Return verdicts by key, from lines "key verdict place: reason". Raise ValueError for an unknown verdict."""
    judged = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        if line and not line.startswith("#"):
            key, verdict = line.split()[:2]
            if verdict not in VERDICTS:
                raise ValueError(
                    f"{path}: {key} is judged {verdict}; a verdict is one of {', '.join(VERDICTS)}"
                )
            judged[key] = verdict
    return judged


def read_log(path: Path) -> dict[str, dict[str, Any]]:
    """Return the outcomes of earlier changes by key. An incomplete line is skipped."""
    logged = {}
    for line in path.read_text().splitlines(keepends=True) if path.exists() else ():
        if line.endswith("}\n"):
            entry = json.loads(line)
            logged[entry["key"]] = entry
    return logged


def write_log(path: Path, change: Change, outcome: Outcome) -> None:
    with path.open("a") as log:
        log.write(json.dumps(asdict(change) | asdict(outcome)) + "\n")


if __name__ == "__main__":
    sys.exit(main())
