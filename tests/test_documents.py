"""The README and the pages in docs promise nothing that does not run: their examples are executed and compared.

In a block of Python, an expression followed by `# value` must have that value (its repr); a block of shell is run line
by line (those that begin with `python` or `tokenmill`), and a block of text right behind it is what it prints: each of
its lines was printed, `…` standing for anything. All blocks of one page share a folder and their names.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)\)")
HOW_TO = ROOT / "docs" / "how-to"  # pages with tests of their own, which stand in for what they download
PAGES = sorted(path.relative_to(ROOT) for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", [page for page in PAGES if HOW_TO not in (ROOT / page).parents], ids=str)
def test_examples_run_and_give_what_they_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for language, block, text in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        if language == "sh":
            printed = "".join(map(run_line, block.replace("\\\n", " ").splitlines()))
            assert [line for line in text.splitlines() if not is_printed(line, printed)] == [], printed
        else:
            run_python(block, names)


def test_the_readme_has_examples_with_values() -> None:
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    values = [
        value
        for language, block, _ in blocks
        if language == "python"
        for _, value in expressions(block)
        if value
    ]
    assert len(values) >= 3
    assert any(line.startswith("tokenmill convert") for _, block, _ in blocks for line in block.splitlines())


@pytest.mark.parametrize("page", [*PAGES, Path("data/README.md"), Path("CHANGELOG.md")], ids=str)
def test_links_lead_to_files(page: Path) -> None:
    targets = LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert [target for target in targets if not ((ROOT / page).parent / target).exists()] == []


def test_output_is_compared() -> None:
    assert is_printed("a … c", "x\na b c\n")
    assert not is_printed("a … c", "a b\nc\n")
    assert not is_printed("a", "a b\n")


def is_printed(line: str, printed: str) -> bool:
    pattern = ".*".join(map(re.escape, line.split("…")))
    return re.search(f"^{pattern}$", printed, re.MULTILINE) is not None


def run_line(line: str) -> str:
    """What a line of shell prints, "" for one that is not run."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["tokenmill"]:
        words[:1] = ["python", "-m", "tokenmill"]
    if words[:1] != ["python"]:
        return ""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, *words[1:]],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def run_python(block: str, names: dict[str, Any]) -> None:
    for source, value in expressions(block):
        if value is None:
            exec(source, names)
        else:
            assert repr(eval(source, names)) == value, source


def expressions(block: str) -> list[tuple[str, str | None]]:
    """The statements of a block, each with the value its comment promises.

    "x = 1\\nx + 1  # 2" -> [("x = 1", None), ("x + 1", "2")]
    """
    lines = block.splitlines()
    found: list[tuple[str, str | None]] = []
    for statement in ast.parse(block).body:
        source = ast.get_source_segment(block, statement)
        assert source is not None
        assert statement.end_lineno is not None
        rest = lines[statement.end_lineno - 1].encode()[statement.end_col_offset :].decode()
        promised = rest.strip().removeprefix("#").strip() if isinstance(statement, ast.Expr) else ""
        found.append((source, promised or None))
    return found
