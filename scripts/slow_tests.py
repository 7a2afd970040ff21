"""Writes tests/slow.txt, which `scripts/test --quick` leaves out, from the times of a whole run.

scripts/test --junitxml=times.xml
.venv/bin/python scripts/slow_tests.py times.xml [SECONDS]       default: 0.1
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUICK_SECONDS = 0.1


def main() -> None:
    if not 2 <= len(sys.argv) <= 3:
        sys.exit("usage: slow_tests.py TIMES.xml [SECONDS]")
    limit = float(sys.argv[2]) if len(sys.argv) > 2 else QUICK_SECONDS
    slow = slow_tests(Path(sys.argv[1]), limit)
    (ROOT / "tests" / "slow.txt").write_text("".join(f"{name}\n" for name in slow), encoding="utf-8")
    print(f"{len(slow)} tests take {limit:g} s or more")


def slow_tests(times: Path, limit: float) -> list[str]:
    """The tests, as pytest names them without their cases, of which a case takes so many seconds."""
    found = set()
    for case in ElementTree.parse(times).iter("testcase"):
        if float(case.get("time", "0")) >= limit:
            path = Path(*case.get("classname", "").split("."))
            classes = [path.name] if path.name[:1].isupper() else []
            module = path.parent if classes else path
            name = case.get("name", "").partition("[")[0]
            found.add("::".join([f"{module.as_posix()}.py", *classes, name]))
    return sorted(found)


if __name__ == "__main__":
    main()
