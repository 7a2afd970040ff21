"""Compile the core once, with a run-time switch for each of many changes. TOKENMILL_MUTANT turns one switch on.

Most of the time of a change is compilation. Three kinds of change have no switch and are built separately (trial.py):
changes that do not compile with a switch; `&&` and `||`, since a switch would always evaluate the right side; and
compile-time constants.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from mutants.change import Change

OPERATORS = {
    "<": "less", "<=": "less_or_equal", ">": "greater", ">=": "greater_or_equal", "==": "equal", "!=": "unequal",
    "+": "plus", "-": "minus", "<<": "left_shift", ">>": "right_shift", "&": "bit_and", "|": "bit_or", "^": "bit_xor",
    "+=": "plus_assign", "-=": "minus_assign",
}  # fmt: skip
SOURCES = ("CMakeLists.txt", "native", "bpe", "tokenmill", "flat_tokens", "convert")
HEADER = Path(__file__).with_name("switches.hpp")


class SwitchedCore:
    """A build with switches. numbers: number of each included change, by key."""

    def __init__(self, root: Path, folder: Path, changes: Iterable[Change], jobs: int) -> None:
        self._folder = folder / "switched"
        self._texts = dict[str, str]()
        waiting = [change for change in changes if _edits(change, 0)]
        copy_sources(root, self._folder)
        configure(self._folder, f"-DCMAKE_CXX_FLAGS=-std=c++20 -include {HEADER} -Wno-ignored-attributes")
        for path in {change.path for change in waiting}:
            self._texts[path] = (root / path).read_text()
        while True:
            self.numbers = {change.key: number for number, change in enumerate(waiting)}
            self._write(waiting)
            told = build(self._folder, jobs)
            if told is None:
                break
            waiting = self._without_errors(waiting, told)
        self.cores = cores_of(self._folder)

    def _write(self, changes: list[Change]) -> None:
        for path, text in self._texts.items():
            here = [change for change in changes if change.path == path]
            text = switched(text, here, [self.numbers[change.key] for change in here])
            if (self._folder / path).read_text() != text:
                (self._folder / path).write_text(text)

    def _without_errors(self, changes: list[Change], told: str) -> list[Change]:
        """Return the changes outside the lines with an error; if none is on one, outside all lines in the output."""
        for pattern in (r":(\d+):\d+: (?:fatal )?error:", r":(\d+):\d+:"):
            bad = {
                (path, int(line))
                for path in self._texts
                for line in re.findall(re.escape(path) + pattern, told)
            }
            good = [
                change
                for change in changes
                if not any(
                    (change.path, change.line + number) in bad
                    for number in range(change.before.count("\n") + 1)
                )
            ]
            if len(good) < len(changes):
                return good
        raise RuntimeError(f"the core does not build with switches:\n{told}")


def switched(text: str, changes: Iterable[Change], numbers: Iterable[int]) -> str:
    """Return the text with a switch for each change. Changes may be nested."""
    edits = [edit for change, number in zip(changes, numbers, strict=True) for edit in _edits(change, number)]
    for start, stop, after in sorted(edits, reverse=True):
        text = text[:start] + after + text[stop:]
    return text


def _edits(change: Change, number: int) -> list[tuple[int, int, str]]:
    """Return replacements as (start, stop, text), or [] if the change cannot have a switch."""
    start, stop, on = change.start, change.stop, f"switches::on<{number}>()"
    match change.kind:
        case "operator" if change.before in OPERATORS:
            name = f"switches::{OPERATORS[change.before]}<{number}>()"
            return [(start, stop, f"{change.before} {name} {change.before}")]
        case "number" | "switch":
            return [(start, stop, f"({on} ? {change.after} : {change.before})")]
        case "condition":
            return [(start, start, "(static_cast<bool>"), (stop, stop, f" != {on})")]
        case "dropped call" | "dropped check":
            return [(start, start, f"if (!{on}) ")]
        case "loop":
            return [(start, stop, f"if ({on}) {change.after}; else {change.before}")]
    return []


def copy_sources(root: Path, folder: Path) -> None:
    for name in SOURCES:
        if (root / name).is_dir():
            shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, folder / name)


def configure(folder: Path, *options: str) -> None:
    """Configure a build of the sources in a folder, with less optimization, so that it compiles faster."""
    recipe = folder / "CMakeLists.txt"
    recipe.write_text(recipe.read_text().replace("-O3", "-O1"))
    nanobind = subprocess.check_output([sys.executable, "-m", "nanobind", "--cmake_dir"], text=True).strip()
    command = ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options]
    command += [f"-Dnanobind_DIR={nanobind}", f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run([*command, "-DSKBUILD_PROJECT_VERSION=0.1.0"], cwd=folder, check=True, capture_output=True)


def build(folder: Path, jobs: int = 1) -> str | None:
    """Build. Return the compiler's errors, or None."""
    made = subprocess.run(
        ["ninja", "-C", "build", "-k0", f"-j{jobs}"],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"LC_ALL": "C"},
    )
    return made.stdout if made.returncode else None


def cores_of(folder: Path) -> dict[str, Path]:
    """Return the built modules by package."""
    found = (folder / "build").rglob("_core.*.so")
    return {core.parent.name if core.parent.name != "build" else "bpe": core for core in found}
