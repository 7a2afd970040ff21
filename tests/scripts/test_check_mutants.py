"""scripts/check_mutants.py tells of the change that no test notices, and of no other; judged ones and those of a log
are not told or tried again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from mutants.covering import NATIVE_TESTS, Covering  # noqa: E402 - found on the path above
from mutants.native_changes import native_changes  # noqa: E402
from mutants.python_changes import python_changes  # noqa: E402
from mutants.switched_core import HEADER, switched  # noqa: E402

MODULE = '''\
def is_small(number: int) -> bool:
    """Whether below 10."""
    return number < 10


def is_old(age: int) -> bool:
    return age > 40
'''
TESTS = """
from stores.small import is_old, is_small


def test_is_small() -> None:
    assert (is_small(9), is_small(10)) == (True, False)


def test_is_old() -> None:  # the bound itself is forgotten
    assert (is_old(42), is_old(39)) == (True, False)
"""


def check(tree: Path, *options: str) -> tuple[int, list[str]]:
    command = [
        sys.executable,
        "scripts/check_mutants.py",
        "--root",
        str(tree),
        "--under",
        "stores",
        "--jobs",
        "1",
    ]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout.splitlines()


def test_a_gap_is_told_once(tmp_path: Path) -> None:
    tree, log = tmp_path / "tree", str(tmp_path / "log")
    for folder in ("stores", "tests/stores", "scripts/mutants"):
        (tree / folder).mkdir(parents=True)
    (tree / "stores" / "__init__.py").touch()
    (tree / "stores" / "small.py").write_text(MODULE)
    (tree / "tests" / "stores" / "test_small.py").write_text(TESTS)
    status, (*told, figures) = check(tree, "--log", log)
    assert status == 1
    assert sorted(line.partition(" ")[2] for line in told) == [
        "survived stores/small.py:7 [bound] age > 40 -> age >= 40 (1 test files)",
        "survived stores/small.py:7 [number] 40 -> 41 (1 test files)",
    ]
    assert figures == "4 mutants, seed 0: 2 killed, 2 survived; survivors: 2 new"
    entries = [json.loads(line) for line in Path(log).read_text().splitlines()]
    assert {entry["test"] for entry in entries if entry["result"] == "killed"} == {
        "tests/stores/test_small.py::test_is_small"
    }
    judged = "".join(f"{line.split()[0]} equivalent stores/small.py: of no matter\n" for line in told)
    (tree / "scripts" / "mutants" / "judged.txt").write_text(judged)
    (tree / "stores" / "small.py").write_text("\n\n" + MODULE)  # the keys stay
    assert check(tree, "--log", log) == (
        0,
        ["4 mutants, seed 0: 2 killed, 2 survived; survivors: 2 equivalent"],
    )
    assert (tree / "stores" / "small.py").read_text() == "\n\n" + MODULE


PYTHON = """
def f(a: int = 3, *, b: "str | None" = None) -> int:
    '''A text of 7 words.'''
    if a <= 1 and (
        b is not None  # and why
    ):
        raise ValueError(f"{a + 1} is not it")
    one()
    two(é="ß", c=a + 2)
    return min(a, -a)
"""


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("number", "3", "4"),
        ("bound", "a <= 1", "a < 1"),
        ("bound", "b is not None", "b is None"),
        ("dropped call", "one()", "pass"),
        ("swap", 'one()\n    two(é="ß", c=a + 2)', 'two(é="ß", c=a + 2)\n    one()'),
        ("arithmetic", "a + 2", "a - 2"),
        ("order", "min", "max"),
        ("dropped check", 'raise ValueError(f"{a + 1} is not it")', "pass"),
    ],
)
def test_changes_of_python(kind: str, before: str, after: str) -> None:
    changes = python_changes("a.py", PYTHON)
    (change,) = [change for change in changes if (change.kind, change.before) == (kind, before)]
    assert change.after == after
    compile(change.applied(PYTHON), "a.py", "exec")
    assert len({change.key for change in changes}) == len(changes)
    assert not [change for change in changes if "7" in change.before or "str |" in change.before]


NATIVE = """
#define SIZE 5
std::vector<int> grow(std::span<const int> rows) {
  // 1 < 2
  if (rows.size() < 4 && is_full) {
    rows.clear();
  }
  throw_if("a < 3");
}
"""


def test_changes_of_the_core() -> None:
    changes = [(change.kind, change.before, change.after) for change in native_changes("a.cpp", NATIVE)]
    assert changes == [
        ("condition", "(rows.size() < 4 && is_full)", "(!(rows.size() < 4 && is_full))"),
        ("operator", "<", "<="),
        ("number", "4", "5"),
        ("operator", "&&", "||"),
        ("dropped call", "rows.clear();", ";"),
    ]


SWITCHED = """
#include <string>
constexpr int size = 3;
int f(int a, int b) {
  int found = a - b - 1;
  if (a < b && (a | 4) == b << 1) {
    found += 10;
  }
  for (int i = 0; i < size; ++i) {
    if (i == 2)
      break;
    found += i;
  }
  return found;
}
std::string named(const std::string &name) { return name + "!"; }
"""
PROGRAM = """
#include <cstdio>
int main() {
  for (int a = -3; a < 9; ++a)
    for (int b = 0; b < 5; ++b)
      std::printf("%d ", f(a, b));
  std::puts(named("a").c_str());
}
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a compiler")
def test_a_switched_core_does_what_the_changed_one_does(tmp_path: Path) -> None:
    changes = native_changes("a.cpp", SWITCHED)
    within = [change for change in changes if change.before != "3"]  # a constant of the compiler's

    def outputs(name: str, text: str, *numbers: int) -> list[str]:
        (tmp_path / f"{name}.cpp").write_text(text + PROGRAM)
        command = ["c++", "-std=c++20", "-include", str(HEADER), f"{name}.cpp", "-o", name]
        if subprocess.run(command, cwd=tmp_path, capture_output=True).returncode:
            return ["invalid"]
        return [
            subprocess.check_output(
                [tmp_path / name],
                env={"TOKENMILL_MUTANT": str(number), "TOKENMILL_MUTANT_REACHED": str(tmp_path / "reached")},
                text=True,
            )
            for number in numbers
        ]

    able = [change for change in within if switched(SWITCHED, [change], [0]) != SWITCHED]
    assert {change.before for change in within} - {change.before for change in able} == {"&&"}
    text = switched(SWITCHED, able, range(len(able)))
    (unchanged, *_) = outputs("unchanged", SWITCHED, -1)
    found = outputs("all", text, -1, *range(len(able)))
    assert found[0] == unchanged
    assert sum(output != unchanged for output in found) > len(able) // 2
    for change, output in zip(able[::8], found[1::8], strict=True):
        assert output == outputs("one", change.applied(SWITCHED), -1)[0], change
    of_text = next(number for number, change in enumerate(able) if change.before == "+")
    assert (outputs("one", able[of_text].applied(SWITCHED)), found[1 + of_text]) == (["invalid"], unchanged)
    outputs("all", text, of_text)
    assert (tmp_path / "reached").read_text() == "invalid"


def test_modules_that_are_imported_late_are_covered(tmp_path: Path) -> None:
    files = {
        "corpus/kinds.py": 'READERS = {"text": "corpus.read_text"}\n',
        "corpus/read_text.py": "",
        "corpus/__main__.py": 'from importlib import import_module\nimport_module(f"corpus.cli.{name}")\n"show"\n',
        "corpus/cli/show.py": "",
        "corpus/cli/other.py": "",
        "tests/test_kinds.py": "import corpus.kinds\n",
        "tests/test_command.py": 'run(["-m", "corpus"])\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    covering = Covering(tmp_path)
    assert covering.tests("corpus/read_text.py") == ["tests/test_kinds.py"]
    assert covering.tests("corpus/cli/show.py") == ["tests/test_command.py"]
    assert covering.tests("corpus/cli/other.py") == []


def test_the_tests_named_for_the_core_are_there() -> None:
    named = {name for names in NATIVE_TESTS.values() for name in names.split()}
    assert [name for name in sorted(named) if not (ROOT / "tests" / f"{name}.py").exists()] == []
    assert [folder for folder in NATIVE_TESTS if not (ROOT / folder).is_dir()] == []
