"""Every promise of promises.toml has a test with its ID, and the page on testing lists it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "development" / "testing.md"
PROMISES = tomllib.loads((TESTS / "promises.toml").read_text(encoding="utf-8"))
MARK = re.compile(r'mark\.promise\("([a-z-]+)"\)')
TABLE = re.compile(r"\| promise \|.*?\n\n", re.DOTALL)


def files_of() -> dict[str, list[str]]:
    """Return the test files that are marked with each ID."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for name in sorted(set(MARK.findall(path.read_text(encoding="utf-8")))):
            found.setdefault(name, []).append(path.relative_to(TESTS).as_posix())
    return found


def test_every_promise_has_a_test() -> None:
    assert sorted(files_of()) == sorted(PROMISES)


def test_the_page_lists_them(request: pytest.FixtureRequest) -> None:
    rows = ["| promise | how it is tested | tests |", "|---|---|---|"]
    for name, files in sorted(files_of().items(), key=lambda item: list(PROMISES).index(item[0])):
        links = ", ".join(f"`{file}`" for file in files)
        rows.append(f"| {PROMISES[name]['promise']} | {PROMISES[name]['checked']} | {links} |")
    table, text = "\n".join(rows) + "\n\n", PAGE.read_text(encoding="utf-8")
    if request.config.getoption("--update-snapshots"):
        PAGE.write_text(TABLE.sub(lambda _: table, text), encoding="utf-8")
    else:
        assert table in text, "run this test with --update-snapshots"
