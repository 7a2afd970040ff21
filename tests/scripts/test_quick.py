"""The fast selection of tests: the list of slow ones names tests that there are, and is made of a run's times."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))
import slow_tests  # noqa: E402 - found on the path above


def test_each_slow_test_is_there() -> None:
    gone = []
    for name in (ROOT / "tests" / "slow.txt").read_text(encoding="utf-8").split():
        path, name_in_file, *_ = name.split("::")
        file = ROOT / path
        if not file.is_file() or not re.search(
            rf"^(def )?{re.escape(name_in_file)}\b", file.read_text(encoding="utf-8"), re.MULTILINE
        ):
            gone.append(name)
    assert not gone, "make the list anew: scripts/slow_tests.py"


def test_a_test_is_as_slow_as_its_slowest_case(tmp_path: Path) -> None:
    times = tmp_path / "times.xml"
    times.write_text(
        '<testsuites><testsuite><testcase classname="tests.bpe.test_a" name="test_one[x[0]]" time="0.01"/>'
        '<testcase classname="tests.bpe.test_a" name="test_one[y]" time="0.5"/>'
        '<testcase classname="tests.test_b" name="test_two" time="0.2"/>'
        '<testcase classname="tests.test_b.TestModel" name="runTest" time="1"/>'
        '<testcase classname="tests.test_b" name="test_three" time="0"><skipped/></testcase></testsuite></testsuites>'
    )
    assert slow_tests.seconds_of_tests(times) == {
        "tests/bpe/test_a.py::test_one": 0.5,
        "tests/test_b.py::test_two": 0.2,
        "tests/test_b.py::TestModel::runTest": 1,
    }
