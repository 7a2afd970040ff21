"""Each test and each script that docs/reliability.md names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")


def names_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_bytes())
    return {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def test_tests_that_are_named_exist() -> None:
    named = re.findall(r"`(?:tests/)?([\w/]+\.py)::(\w+)", PAGE)
    assert len(named) > 100
    files = {file: names_of(ROOT / "tests" / file) for file, _ in named}
    assert [f"{file}::{name}" for file, name in named if name not in files[file]] == []


def test_scripts_that_are_named_exist() -> None:
    named = set(re.findall(r"\bscripts/[\w/]+(?:\.py)?", PAGE))
    assert len(named) > 10
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


def test_every_fault_is_shown_or_says_why_not() -> None:
    rows = [line for line in PAGE.partition("## Faults")[2].partition("\n## ")[0].splitlines() if "|" in line]
    cells = [row.strip("| ").split(" | ") for row in rows if not row.startswith("|---")]
    assert [
        row for row in cells if not re.search(r"`[\w/]+\.py(::|`)|not shown: |^shown by", row[-1].strip("| "))
    ] == []
