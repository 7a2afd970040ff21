"""Mutation testing: change one thing in the code, and see whether a test fails.

    python tools/mutants.py --under convert/workdir --tests tests/convert [--mutants 50] [--seed 0]
    python tools/mutants.py --native --under bpe/native/merge --tests tests/bpe/test_encoding.py

1. Copy the tree, and run the tests once with `coverage` to record which test runs which line (Python only).
2. Draw a seeded sample of mutants: changed comparisons, connectives, arithmetic, numbers and conditions, dropped calls
   and dropped errors.
3. Apply each one to the copy and run the tests that reach its line, smallest first, for up to --seconds. For C++, the
   copy is built again and all tests run.

Prints one line per survivor and a summary. Exit status 1 if a mutant survives. Needs the package coverage, and for C++
what scripts/environment installs.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IGNORED = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache", ".hypothesis", "*.so")
COMPARISONS: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(), ast.LtE: ast.Lt(), ast.Gt: ast.GtE(), ast.GtE: ast.Gt(), ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(), ast.In: ast.NotIn(), ast.NotIn: ast.In(), ast.Is: ast.IsNot(), ast.IsNot: ast.Is(),
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(), ast.Sub: ast.Add(), ast.Mult: ast.FloorDiv(), ast.FloorDiv: ast.Mult(),
    ast.Mod: ast.FloorDiv(), ast.BitAnd: ast.BitOr(), ast.BitOr: ast.BitAnd(),
}  # fmt: skip
NATIVE = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
    "+=": "-=", "-=": "+=", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "true": "false", "false": "true",
    "break": "continue", "continue": "break",
}  # fmt: skip
# clang-format puts spaces around operators, which distinguishes them from template brackets.
NATIVE_TOKEN = re.compile(
    r"(?<= )(<=|>=|==|!=|&&|\|\||\+=|-=|<<|>>|[<>+\-&|])(?= [^&*>]|\n)|\b(true|false|break|continue|\d+)\b(?!')"
)
NOT_CODE = re.compile(
    r'//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^[ \t]*#[^\n]*|static_assert[^;]*;', re.M
)


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    text: Callable[[], str]  # makes the changed file
    change: str


def python_mutants(path: str, text: str) -> Iterator[Mutant]:
    tree = ast.parse(text)
    for number, node in enumerate(ast.walk(tree)):
        for field, value in replacements(node):
            twin = copy.deepcopy(node)
            set_field(twin, field, value)
            before, after = (ast.unparse(ast.fix_missing_locations(each)) for each in (node, twin))
            line = getattr(node, "lineno", 0)
            yield Mutant(
                path, line, partial(changed_python, text, number, field, value), f"{before} -> {after}"
            )


def changed_python(text: str, number: int, field: str, value: object) -> str:
    """Return the source with a new value of a field of node `number`, counted as ast.walk does."""
    tree = ast.parse(text)
    set_field(next(islice(ast.walk(tree), number, None)), field, value)
    return ast.unparse(ast.fix_missing_locations(tree))


def set_field(node: ast.AST, field: str, value: object) -> None:
    """Set a field, or an item of it: "ops.0"."""
    name, _, index = field.partition(".")
    if index:
        getattr(node, name)[int(index)] = value
    else:
        setattr(node, name, value)


def replacements(node: ast.AST) -> Iterator[tuple[str, object]]:
    """Yield the field and the new value of each mutation of a node."""
    match node:
        case ast.Compare(ops=operators):
            for index, operator in enumerate(operators):
                yield f"ops.{index}", COMPARISONS[type(operator)]
        case ast.BoolOp(op=connective):
            yield "op", ast.Or() if isinstance(connective, ast.And) else ast.And()
        case ast.BinOp(op=operator, left=left, right=right) if type(operator) in ARITHMETIC:
            if not any(
                isinstance(each, ast.JoinedStr | ast.Constant) and is_text(each) for each in (left, right)
            ):
                yield "op", ARITHMETIC[type(operator)]
        case ast.If(test=test) | ast.IfExp(test=test) if ast.unparse(test) != "TYPE_CHECKING":
            yield "test", ast.UnaryOp(ast.Not(), test)
        case ast.Constant(value=bool(value)):
            yield "value", not value
        case ast.Constant(value=int(value)):
            yield "value", 0 if value == 1 else value + 1
        case ast.Expr(value=ast.Call()):
            yield "value", ast.Constant(None)
    for name in ("body", "orelse", "finalbody"):
        statements = getattr(node, name, None)
        for index, statement in enumerate(statements if isinstance(statements, list) else ()):
            if isinstance(statement, ast.Raise):
                yield f"{name}.{index}", ast.Pass()


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def native_mutants(path: str, text: str) -> Iterator[Mutant]:
    code = NOT_CODE.sub(lambda match: re.sub(r"[^\n]", "\1", match[0]), text)
    lines = text.splitlines()
    for match in NATIVE_TOKEN.finditer(code):
        before, number = match[0], text.count("\n", 0, match.start())
        after = NATIVE.get(before) or ("0" if before == "1" else str(int(before) + 1))
        changed = text[: match.start()] + after + text[match.end() :]
        yield Mutant(
            path, number + 1, partial(str, changed), f"{before} -> {after} in {lines[number].strip()}"
        )


class Tree:
    """A copy of the checkout, in which mutants are tried."""

    def __init__(self, folder: Path, tests: list[str], seconds: float, native: bool) -> None:
        self.folder, self._tests, self._seconds, self._native = folder, tests, seconds, native
        shutil.copytree(ROOT, folder, ignore=IGNORED, symlinks=True)
        environment = {
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_PROFILE": "commit",
        }
        self._environment = os.environ | environment
        self._reached: dict[tuple[str, int], list[str]] = {}
        self._build()
        if self._run(["-m", "pytest", "-q", "-x", *tests], 3600):
            sys.exit(f"error: the tests fail without a mutant: {' '.join(tests)}")
        if not native:
            self._record()

    def kills(self, mutant: Mutant) -> bool:
        """Return whether a test fails, or the C++ does not compile."""
        path = self.folder / mutant.path
        original = path.read_text()
        path.write_text(mutant.text())
        try:
            if self._native and self._build():
                return True
            return bool(self._run(["-m", "pytest", "-q", "-x", *self._tests_of(mutant)], self._seconds))
        finally:
            path.write_text(original)

    def _tests_of(self, mutant: Mutant) -> list[str]:
        return self._reached.get((mutant.path, mutant.line), [])[:40] or self._tests

    def _record(self) -> None:
        """Record the tests of each line, those that reach the fewest lines first."""
        from coverage import CoverageData

        settings = self.folder / "coverage.ini"
        settings.write_text("[run]\ndynamic_context = test_function\n")
        self._run(["-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-q", *self._tests], 7200)
        data = CoverageData(str(self.folder / ".coverage"))
        data.read()
        files = {path.stem: path for path in (self.folder / "tests").rglob("test_*.py")}
        lines_of: dict[str, int] = {}
        found: dict[tuple[str, int], list[str]] = {}
        for file in data.measured_files():
            for line, contexts in data.contexts_by_lineno(file).items():
                names = [name for name in contexts if files.keys() & name.split(".")]
                found[os.path.relpath(file, self.folder), line] = names
                for name in names:
                    lines_of[name] = lines_of.get(name, 0) + 1

        def node(context: str) -> str:  # "test_module.test_function", or with a class in between
            module = next(part for part in context.split(".") if part in files)
            return "::".join([str(files[module]), *context.rpartition(f"{module}.")[2].split(".")])

        self._reached = {
            key: [node(name) for name in sorted(names, key=lines_of.__getitem__)]
            for key, names in found.items()
        }

    def _build(self) -> int:
        """Build the C++ modules and copy them into the packages. Return 0 if it succeeds."""
        if not self._native:
            for module in ROOT.glob("*/**/_core*.so"):
                if "build" not in module.parts and ".venv" not in module.parts:
                    shutil.copy(module, self.folder / module.relative_to(ROOT))
            return 0
        command = [
            "-m",
            "pip",
            "install",
            "-q",
            "--no-build-isolation",
            "-C",
            f"build-dir={self.folder}/build",
            "-e",
            ".",
        ]
        return self._run([*command, f"--target={self.folder}/build/site"], 900)

    def _run(self, words: list[str], seconds: float) -> int:
        """Run Python in the copy. A time-out counts as a failure."""
        try:
            return subprocess.run(
                [sys.executable, *words],
                cwd=self.folder,
                env=self._environment,
                capture_output=True,
                timeout=seconds,
            ).returncode
        except subprocess.TimeoutExpired:
            return 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--under", nargs="+", required=True, help="files or folders to change")
    parser.add_argument("--tests", nargs="+", required=True, help="test files or folders")
    parser.add_argument("--mutants", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=120.0, help="time limit of the tests per mutant")
    parser.add_argument("--native", action="store_true", help="change C++ instead of Python")
    options = parser.parse_args()
    make: Callable[[str, str], Iterator[Mutant]] = native_mutants if options.native else python_mutants
    suffixes = (".cpp", ".hpp") if options.native else (".py",)
    paths = [path for under in options.under for path in [ROOT / under, *sorted((ROOT / under).rglob("*"))]]
    found = [
        mutant
        for path in paths
        if path.is_file() and path.suffix in suffixes
        for mutant in make(path.relative_to(ROOT).as_posix(), path.read_text())
    ]
    chosen = random.Random(options.seed).sample(found, min(options.mutants, len(found)))
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder, "tree"), options.tests, options.seconds, options.native)
        survivors = 0
        for mutant in chosen:
            if not tree.kills(mutant):
                survivors += 1
                print(f"{mutant.path}:{mutant.line} {' '.join(mutant.change.split())[:200]}", flush=True)
    print(f"{len(chosen)} of {len(found)} mutants, seed {options.seed}: {survivors} survive")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
