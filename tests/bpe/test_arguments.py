"""Invalid or out-of-range numbers give one line and exit code 2, for every number of every command."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe.__main__ import main
from bpe.cli.arguments import build_parser

END = "<|endoftext|>"
NO_NUMBERS = [
    *("abc", "", " ", "-1", "nan", "-inf", "inf", "0x10", "1e400", "1,5", "1.5", "--", "9" * 30, "9" * 5000),
    *("1\n2", "\x1b[31m", "٣x", "1e", "k", "\udcff", str(2**63)),
]
# Each command, complete except for the number under test.
COMMANDS = {
    "train": ["en.txt", "--vocab-size=300", "--special-token", END, "--output=out.json"],
    "count": ["en.txt", "--output=out.counts"],
    "report": ["tok.json", "en.txt"],
}
# Flags that accept 0.
FROM_NOUGHT = {"--seed", "--max-token-bytes", "--min-frequency", "--max-token-length", "--limit-alphabet"}


# (command, flag) of every number.
NUMBERS = [
    (command, action.option_strings[0])
    for command, parser in build_parser().commands().items()
    for action in parser._actions
    if action.type is not None and action.dest not in ("storage_option", "separator")
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en.txt").write_text(f"the mill by the river{END}" * 20)
    assert main(["train", "en.txt", "--vocab-size=260", "--output=tok.json", "--quiet"]) == 0


def refused(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line on stderr of a command that exits with 2 and writes no file."""
    before = sorted(Path().iterdir())
    code = main(arguments)
    out, err = capfd.readouterr()
    assert (code, out, sorted(Path().iterdir())) == (2, "", before), arguments
    (line,) = err.splitlines()
    assert line.startswith("tokenmill: error: ")
    assert line.isprintable()
    assert len(line) < 500
    return line


def test_all_numbers_are_found() -> None:
    assert len(NUMBERS) == 18, "a new number: say above whether it may be 0"
    assert {command for command, _ in NUMBERS} == set(COMMANDS)


@pytest.mark.parametrize(("command", "flag"), NUMBERS, ids=str)
def test_numbers_outside_the_range_of_their_flag(
    command: str, flag: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for value in NO_NUMBERS if flag in FROM_NOUGHT else [*NO_NUMBERS, "0"]:
        line = refused(capfd, command, *COMMANDS[command], f"{flag}={value}")
        assert flag in line or flag.strip("-").replace("-", "_") in line, (flag, value, line)


def test_unknown_arguments_are_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["encode", "--tokenizer=tok.json", "en.txt", "a\nb\x1b[2J"],
        ["encode", "--tokenizer=tok.json", "--a\nb"],
        ["a\nb"],
        ["encode", "--tokenizer=tok.json", "--format=a\nb"],
        ["report", "tok.json", "\udcff"],
        ["train", *COMMANDS["train"], "--threads=1", "--threads=9999999999"],
    ):
        refused(capfd, *arguments)
