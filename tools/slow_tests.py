"""Write tests/slow.txt, the tests that `scripts/test --quick` skips, from the times of a full run.

scripts/test --junitxml=times.xml
.venv/bin/python tools/slow_tests.py times.xml [SECONDS]       default: 0.1

Tests that were skipped or not selected keep their state.
"""

from __future__ import annotations

import argparse
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUICK_SECONDS = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("times", type=Path, metavar="TIMES.xml")
    parser.add_argument("limit", type=float, nargs="?", default=QUICK_SECONDS, metavar="SECONDS")
    options = parser.parse_args()
    listed = ROOT / "tests" / "slow.txt"
    seconds = seconds_of_tests(options.times)
    others = set(listed.read_text(encoding="utf-8").split()) - seconds.keys()
    slow = sorted(others.union(name for name in seconds if seconds[name] >= options.limit))
    listed.write_text("".join(f"{name}\n" for name in slow), encoding="utf-8")
    print(f"{len(slow)} tests take {options.limit:g} s or more")


def seconds_of_tests(times: Path) -> dict[str, float]:
    """Return the seconds of the slowest case of each test that ran. Keys are pytest names without the case."""
    seconds: dict[str, float] = {}
    for case in ElementTree.parse(times).iter("testcase"):
        if case.find("skipped") is None:
            path = Path(*case.get("classname", "").split("."))
            classes = [path.name] if path.name[:1].isupper() else []
            module = path.parent if classes else path
            name = case.get("name", "").partition("[")[0]
            name = "::".join([f"{module.as_posix()}.py", *classes, name])
            seconds[name] = max(seconds.get(name, 0.0), float(case.get("time", "0")))
    return seconds


if __name__ == "__main__":
    main()
