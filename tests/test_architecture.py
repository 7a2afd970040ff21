"""Imports go one way through the packages, and modules have no import cycles."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A package may import packages to its left. bpe and flat_tokens share a layer, so they never import each other.
ORDER = """tokenmill.errors | tokenmill.stores | tokenmill.engines tokenmill.html | tokenmill.inputs | tokenmill.cli
    | bpe flat_tokens | convert | tokenmill"""
LAYERS = {name: number for number, names in enumerate(ORDER.split("|")) for name in names.split()}
FILES = [
    path for name in ("bpe", "convert", "flat_tokens", "tokenmill") for path in (ROOT / name).rglob("*.py")
]
NAMES = [".".join(path.with_suffix("").relative_to(ROOT).parts).removesuffix(".__init__") for path in FILES]
MODULES = {name: ast.parse(path.read_bytes()) for name, path in zip(NAMES, FILES, strict=True)}


def package_of(module: str) -> str:
    return next(name for name in LAYERS if module == name or module.startswith(f"{name}."))


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Our modules that import statements name."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in names)


def run_on_import(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Statements that run when a module is imported: none in functions or after `if TYPE_CHECKING`."""
    for node in body:
        yield node
        is_typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not is_typing and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.expr):
            yield from run_on_import(ast.iter_child_nodes(node))


def test_packages_import_lower_layers_only() -> None:
    for module, tree in MODULES.items():
        package = package_of(module)
        others = {package_of(name) for name in imported(ast.walk(tree))} - {package}
        assert [name for name in others if LAYERS[name] >= LAYERS[package]] == [], module


def test_modules_have_no_import_cycles() -> None:
    graph = {name: set(imported(run_on_import(tree.body))) - {name} for name, tree in MODULES.items()}
    TopologicalSorter(graph).prepare()  # CycleError names the modules
