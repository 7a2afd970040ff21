"""The blocks of a page, run in order in the current folder as a reader types them.

A block of `sh` is run line by line: `tokenmill` in this process, a few tools of the shell as they are; what needs the
network or a cluster (NOT_RUN) is passed over, and anything else is an error of the page. A block of `text` right behind
it is what it prints: each line in this order, others may stand between, `…` stands for any characters. A line of it
that begins with `tokenmill: error: ` says that the last command fails. A block of `python` is run, and an expression
followed by `# value` must have that value.
"""

from __future__ import annotations

import ast
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokenmill.__main__ import main

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TOOLS = {"cat", "cp", "grep", "head", "ls", "mkdir", "rm", "tail", "tar", "wc"}
OPTIONAL = ("torch",)  # a block that imports one is run where it is installed
NOT_RUN = {"curl", "dask", "git", "hf", "pip", "ray", "sbatch", "wget"}
SHOWN = {"jinja", "json", "slurm"}  # languages of blocks that are there to be read
ERROR = "tokenmill: error: "


class Page:
    """A page, run from the current folder. replaced: what stands for addresses that only a reader has."""

    def __init__(self, path: Path, replaced: dict[str, str] | None = None) -> None:
        self.text = path.read_text(encoding="utf-8")
        self.replaced = replaced or {}
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def blocks(self) -> list[tuple[str, str, str]]:
        """(language, the block, what it prints as the page says)."""
        found: list[tuple[str, str, str]] = []
        end = -1
        for match in BLOCK.finditer(self.text):
            language, block = match.groups()
            if (
                language == "text"
                and found
                and found[-1][0] == "sh"
                and not self.text[end : match.start()].strip()
            ):
                found[-1] = (*found[-1][:2], block)
            else:
                found.append((language, block, ""))
            end = match.end()
        return found

    def run(self) -> int:
        """Run all blocks; how many commands of `tokenmill` there were. AssertionError names what is not as it says."""
        count = 0
        for language, block, expected in self.blocks():
            if language == "sh":
                lines = list(commands(block))
                printed = "".join(
                    self._run_line(line, self._may_fail(expected, line is lines[-1])) for line in lines
                )
                compare(expected, printed)
                count += sum(line.startswith("tokenmill ") for line in lines)
            elif language == "python":
                if all(
                    find_spec(name) for name in OPTIONAL if re.search(rf"\b(import|from) {name}\b", block)
                ):
                    run_python(block, self.names)
            else:
                assert language in SHOWN, f"a block of {language} is neither run nor known"
        return count

    def _may_fail(self, expected: str, is_last: bool) -> bool:
        return is_last and any(line.startswith(ERROR) for line in expected.splitlines())

    def _run_line(self, line: str, must_fail: bool) -> str:
        for shown, real in self.replaced.items():
            line = line.replace(shown, real)
        word, *words = shlex.split(line, comments=True)
        if word == "tokenmill":
            data = io.BytesIO()
            out = io.TextIOWrapper(data, "utf-8", write_through=True)
            with redirect_stdout(out), redirect_stderr(out):
                code = main(words)
            printed = data.getvalue().decode()
            assert (code != 0) == must_fail, f"{line}\nexit code {code}\n{printed}"
            assert "Traceback" not in printed, printed
            return printed
        if word in NOT_RUN:
            return ""
        assert word in TOOLS, f"{line}\n{word} is not known here"
        done = subprocess.run(
            ["bash", "-c", line], capture_output=True, text=True, check=False, env=os.environ
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


def commands(block: str) -> Iterator[str]:
    """The commands of a block: lines that end with a backslash go on, comments and empty lines are none."""
    for line in block.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def compare(expected: str, printed: str) -> None:
    """Each expected line is there, in order."""
    rest = iter(printed.splitlines())
    for line in filter(str.strip, expected.splitlines()):
        pattern = ".*".join(re.escape(part) for part in line.rstrip().split("…"))
        assert any(re.fullmatch(pattern, other.rstrip()) for other in rest), (
            f"the page says\n  {line}\nprinted was\n{printed}"
        )


def run_python(block: str, names: dict[str, Any]) -> None:
    """Run a block; an expression with a comment behind it must have that value."""
    lines = block.splitlines()
    for statement in ast.parse(block).body:
        source = ast.get_source_segment(block, statement)
        assert source is not None
        assert statement.end_lineno is not None
        rest = lines[statement.end_lineno - 1].encode()[statement.end_col_offset :].decode().strip()
        if isinstance(statement, ast.Expr) and rest.startswith("# "):
            value = repr(eval(source, names))
            assert value == rest.removeprefix("# "), f"{source}\nis {value}"
        else:
            exec(compile(source, "page", "exec"), names)


def shown(page: Path) -> str:
    """What the page's commands print, to write the page by: python page_runner.py PAGE."""
    printed = []
    for language, block, _ in Page(page).blocks():
        if language == "sh":
            for line in commands(block):
                printed.append(f"$ {line}")
                if line.split()[0] in NOT_RUN:
                    continue
                done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
                printed.append(done.stdout + done.stderr)
    return "\n".join(printed)


if __name__ == "__main__":
    print(shown(Path(sys.argv[1])))
