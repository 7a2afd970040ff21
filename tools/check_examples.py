"""Type-check the examples of the README, pages and docstrings with pyright, if it is installed.

    pip install pyright                        # uses the installed node, or downloads one
    python tools/check_examples.py

All blocks of a page form one file, and each example of a docstring forms another. Undefined names and libraries that
are not installed are ignored. Exit code 1 if there is an error.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parent.parent
_PACKAGES: Final = ("bpe", "convert", "flat_tokens", "tokenmill")
_BLOCK: Final = re.compile(r"^ *```py(?:thon)?\b[^\n]*\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_INDENTED: Final = re.compile(r"\n\n((?: {4}[^\n]*\n?)+)")
_IMPORTS: Final = "import bpe, convert, flat_tokens, tokenmill\n"
_PASSED_OVER: Final = (
    "UndefinedVariable MissingImports MissingModuleSource PossiblyUnboundVariable UnusedExpression".split()
)
_HEADER: Final = "".join(f"# pyright: report{each}=false\n" for each in _PASSED_OVER)


def main() -> int:
    """Return the exit code."""
    if importlib.util.find_spec("pyright") is None:
        print("pyright is not installed: examples are not checked")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (*_pages(), *_docstrings()):
            Path(folder, f"{name}.py").write_text(_HEADER + text, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pyright",
            "--pythonpath",
            sys.executable,
            "--level",
            "error",
            folder,
        ]
        return subprocess.run(command, cwd=_ROOT, check=False).returncode


def _pages() -> Iterator[tuple[str, str]]:
    for page in (_ROOT / "README.md", *sorted((_ROOT / "docs").rglob("*.md"))):
        blocks = [textwrap.dedent(block) for block in _BLOCK.findall(page.read_text(encoding="utf-8"))]
        blocks = [block for block in blocks if not block.startswith("# docs/examples/")]  # excerpts
        if blocks:
            yield re.sub(r"\W", "_", str(page.relative_to(_ROOT).with_suffix(""))), "\n".join(blocks)


def _docstrings() -> Iterator[tuple[str, str]]:
    for package in _PACKAGES:
        for path in sorted((_ROOT / package).rglob("*.py")):
            for number, example in enumerate(_examples(path.read_text(encoding="utf-8"))):
                module = "_".join(path.relative_to(_ROOT).with_suffix("").parts)
                yield f"docstring_{module}_{number}", _IMPORTS + example


def _examples(source: str) -> Iterator[str]:
    """Yield the indented parts of docstrings that are Python code with a call."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            continue
        for block in _INDENTED.findall(ast.get_docstring(node) or ""):
            try:
                tree = ast.parse(textwrap.dedent(block))
            except SyntaxError:
                continue
            if any(isinstance(each, ast.Call) for each in ast.walk(tree)):
                yield textwrap.dedent(block)


if __name__ == "__main__":
    sys.exit(main())
