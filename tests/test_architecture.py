"""docs/architecture.md tells who imports whom: what it says is compared with the imports of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, its two first lines apart."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


ALLOWED = {
    package.strip("`"): set(re.findall(r"`(\w+)`", imports)) for package, _, imports in table("Packages")
}
FILES = {
    ".".join((file.parent if file.stem == "__init__" else file.with_suffix("")).relative_to(ROOT).parts): file
    for package in ALLOWED
    for file in (ROOT / package).rglob("*.py")
}


def begins_with(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, those for type checkers apart."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            continue
        for field in ("body", "orelse", "finalbody", "handlers"):
            if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = getattr(statement, field, [])
                yield from begins_with(
                    part for part in inner if isinstance(part, ast.stmt | ast.excepthandler)
                )


def imported(statements: Iterable[ast.AST]) -> Iterator[str]:
    """The modules of ours that statements import."""
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (name.name for name in statement.names if name.name in FILES)
        elif isinstance(statement, ast.ImportFrom) and statement.module in FILES:
            for name in statement.names:
                module = f"{statement.module}.{name.name}"
                yield module if module in FILES else statement.module


def circle(modules: dict[str, set[str]]) -> list[str]:
    """One circle of modules that import each other; none: []."""
    try:
        TopologicalSorter(modules).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_those_that_its_row_names(package: str) -> None:
    found = set()
    for file in (ROOT / package).rglob("*.py"):
        found |= {name.split(".")[0] for name in imported(ast.walk(ast.parse(file.read_text("utf-8"))))}
    assert found - {package} == ALLOWED[package]


def test_packages_are_listed_from_below() -> None:
    above = list(ALLOWED)
    for package, imports in ALLOWED.items():
        assert imports <= set(above[: above.index(package)])


def test_no_modules_import_each_other() -> None:
    trees = {name: ast.parse(file.read_text("utf-8")) for name, file in FILES.items()}
    assert (
        circle({name: set(imported(begins_with(tree.body))) - {name} for name, tree in trees.items()}) == []
    )


def test_a_circle_is_found() -> None:
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}
    late = ast.parse(
        "def f():\n    import bpe\nif TYPE_CHECKING:\n    import bpe\nclass A:\n    import corpus\n"
    )
    assert set(imported(begins_with(late.body))) == {"corpus"}


def test_every_room_is_named() -> None:
    rooms = {
        f"{package}.{folder.name}"
        for package in ALLOWED
        for folder in (ROOT / package).iterdir()
        if folder.is_dir() and any(folder.rglob("*.py"))
    }
    named = {cells[0].strip("`") for cells in table("Rooms")}
    assert rooms == {room for room in named if not room.endswith(".native")}


def test_the_files_of_the_ways_are_there() -> None:
    for heading, package in (("One document's way", "convert"), ("One batch's way", "flat_tokens")):
        for _, where, _ in table(heading):
            files = re.findall(r"`([\w/]+(?:\.\w+)?/?)`", where)
            assert files
            folder = ROOT / package
            for name in files:
                places = [ROOT / name, ROOT / package / name, folder / name]
                assert any(place.exists() for place in places), name
                found = next(place for place in places if place.exists())
                folder = found if found.is_dir() else found.parent
