"""Invalid or out-of-range numbers give one line and exit code 2, for every number of every command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flat_tokens.__main__ import build_parser, main

NO_NUMBERS = [
    *("abc", "", " ", "-1", "0", "nan", "-inf", "0x10", "1e9", "1.5", "1,5", "--", "9" * 30, "9" * 5000),
    *("1\n2", "\x1b[31m", "٣x", "\udcff", str(2**31), str(2**63)),
]
# Arguments that complete a command, except for the number.
MORE = {
    "export": ["--to=npy", "--output=o"],
    "import": ["--from=npy", "--output=o"],
}
VALID = {"--version": "0", "--vocabulary": str(2**31)}  # values for these arguments


def numbers() -> list[tuple[str, str]]:
    """Return (command, flag) for every number."""
    return [
        (command, action.option_strings[-1])
        for command, parser in build_parser().commands().items()
        for action in parser._actions
        if action.metavar == "N"
    ]


NUMBERS = numbers()


def refused(root: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    before = sorted(root.parent.rglob("*"))
    code = main(arguments)
    out, err = capsys.readouterr()
    assert (code, out, sorted(root.parent.rglob("*"))) == (2, "", before), arguments
    (line,) = err.splitlines()
    assert line.startswith("tokenmill: error: ")
    assert line.isprintable()
    assert len(line) < 600
    return line


@pytest.mark.parametrize(("command", "flag"), NUMBERS, ids=lambda value: str(value))
def test_numbers_outside_the_range_of_their_flag(
    command: str, flag: str, make_dataset: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_dataset()
    for value in NO_NUMBERS:
        if value == VALID.get(flag):
            continue
        line = refused(root, capsys, command, str(root), *MORE.get(command, []), f"{flag}={value}")
        assert flag in line, (flag, value, line)
    assert "--workers: " in refused(root, capsys, "verify", str(root), "--workers=5000")


@pytest.mark.parametrize(
    "arguments",
    [["info", "ROOT", "a\nb\x1b[2J"], ["a\nb"], ["head", "ROOT", "--split=a\nb"], ["verify", ""]],
    ids=repr,
)
def test_unknown_arguments_are_one_line(
    arguments: list[str], make_dataset: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_dataset()
    refused(root, capsys, *(str(root) if word == "ROOT" else word for word in arguments))
