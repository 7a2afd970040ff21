"""Runs the blocks of a documentation page in order in the current folder, as a reader types them.

sh      Each line is a command. `tokenmill` runs in this process, anything else in bash, after the block's exports.
        Commands in NOT_RUN, which need the network or another machine, are skipped.
text    After a block of sh: lines that it prints, in this order. `…` stands for any characters. With a line
        `tokenmill: error: ...` the last command must fail.
python  Statements. An expression followed by `# value` must have that value. A block that begins with
        `# docs/examples/NAME.py` is an excerpt: each of its paragraphs must be in that file.

Blocks of other languages are not run, nor is code that needs an optional package that is not installed.
"""

from __future__ import annotations

import ast
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokenmill.__main__ import main

BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
EXAMPLE = re.compile(r"docs/examples/\w+\.py")
NOT_RUN = {".", "cd", "curl", "dask", "export", "git", "hf", "pip", "python3", "ray", "sbatch", "wget"}
OPTIONAL = ("torch", "torchtitan", "transformers", "jax", "grain", "pyarrow", "datasets", "jinja2")
ERROR = "tokenmill: error: "
SHELL = (
    "export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1",
    f'python() {{ {sys.executable} "$@"; }}',
    'tokenmill() { python -m tokenmill "$@"; }',
    'torchrun() { python -m torch.distributed.run "$@"; }',
)


class Page:
    """replaced: addresses in the page and their replacements. printed: the output of each command that ran."""

    def __init__(self, path: Path, replaced: dict[str, str] | None = None) -> None:
        self.text = path.read_text(encoding="utf-8")
        for shown, real in (replaced or {}).items():
            self.text = self.text.replace(shown, real)
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed: list[tuple[str, str]] = []

    def run(self) -> None:
        """Raise AssertionError where the page differs from the actual output."""
        for language, block, expected in BLOCK.findall(self.text):
            if language == "python" and (example := EXAMPLE.match(block.removeprefix("# "))):
                source = Path(example[0]).read_text(encoding="utf-8")
                absent = [
                    part for part in block.split("\n", 1)[1].strip("\n").split("\n\n") if part not in source
                ]
                assert absent == [], f"not in {example[0]}"
            elif language == "python" and not missing(block):
                run_python(block, self.names)
            elif language == "sh":
                lines = block.replace("\\\n", " ").splitlines()
                exports = [line for line in lines if line.startswith("export ")]
                commands = [line for line in lines if is_run(line)]
                must_fail = any(line.startswith(ERROR) for line in expected.splitlines())
                printed = [
                    run_command(line, exports, must_fail and line is commands[-1]) for line in commands
                ]
                self.printed += zip(commands, printed, strict=True)
                if commands:
                    compare(expected, "".join(printed))


def is_run(line: str) -> bool:
    """Return False for comments, NOT_RUN, repository scripts, and examples with optional packages that are
    missing.
    """
    words = shlex.split(line, comments=True)
    if not words or words[0] in NOT_RUN or words[0].startswith("scripts/"):
        return False
    return not any(missing(Path(name).read_text(encoding="utf-8")) for name in EXAMPLE.findall(line))


def missing(source: str) -> list[str]:
    """Return the optional packages that a source imports and that are not installed."""
    imported = [name for name in OPTIONAL if re.search(rf"^\s*(import|from) {name}", source, re.MULTILINE)]
    return [name for name in imported if find_spec(name) is None]


def run_command(line: str, exports: Sequence[str] = (), must_fail: bool = False) -> str:
    """Return stdout and stderr."""
    words = shlex.split(line, comments=True)
    if words[0] == "tokenmill" and not {"|", "<", ">"} & set(words):
        data = io.BytesIO()
        out = io.TextIOWrapper(data, "utf-8", write_through=True)
        with redirect_stdout(out), redirect_stderr(out):
            code = main(words[1:])
        printed = data.getvalue().decode()
    else:
        script = "\n".join([*SHELL, *exports, line])
        for _ in range(3):
            done = subprocess.run(
                ["bash", "-c", script], capture_output=True, text=True, check=False, timeout=300
            )
            code, printed = done.returncode, done.stdout + done.stderr
            if "terminate called without an active exception" not in printed:
                break  # otherwise gloo aborted a torchrun process at exit, which rarely happens
    assert (code != 0) == must_fail, f"{line}\nexit code {code}\n{printed}"
    assert "Traceback" not in printed, f"{line}\n{printed}"
    return printed


def compare(expected: str, printed: str) -> None:
    """Raise AssertionError unless each expected line is printed, in order."""
    rest = iter(printed.splitlines())
    for line in filter(str.strip, expected.splitlines()):
        pattern = ".*".join(re.escape(part) for part in line.rstrip().split("…"))
        assert any(re.fullmatch(pattern, other.rstrip()) for other in rest), (
            f"the page says\n  {line}\nprinted was\n{printed}"
        )


def run_python(block: str, names: dict[str, Any]) -> None:
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
