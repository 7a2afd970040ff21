"""Every number that the command line takes: what is none, or outside its range, is one line and exit code 2."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from convert.__main__ import main
from convert.cli import arguments
from tokenmill.cli import words

NUMBERS = {
    action.option_strings[0]: action
    for action in arguments.build_parser()._actions
    if action.type not in (None, words.name_and_value, words.unescaped) and action.option_strings
}
NO_NUMBERS = [
    "abc",
    "",
    " ",
    "-1",
    "nan",
    "-inf",
    "0x10",
    "1e400",
    "1,5",
    "--",
    "9" * 30,
    "9" * 5000,
    "1\n2",
    "\x1b[31m",
    "٣x",
]
# Where nought is a number like any other.
FROM_NOUGHT = {
    *("--seed", "--max-errors", "--validation-docs", "--validation-fraction", "--stall-timeout", "--retries"),
    "--task-index",
}
LARGE_IS_FINE = {"--seed", "--max-errors", "--stall-timeout"}


def refused(here: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    before = sorted(here.iterdir())
    code = main(["en.txt", "--tokenizer", "tok.json", "--output", "out", *more])
    out, err = capsys.readouterr()
    assert (code, out, sorted(here.iterdir())) == (2, "", before), more
    (line,) = err.splitlines()
    assert line.startswith("tokenmill: error: ")
    assert line.isprintable()
    assert len(line) < 500
    return line


def test_all_numbers_are_found() -> None:
    assert len(NUMBERS) == 14, "a new number: say above whether it may be 0"


@pytest.mark.parametrize("flag", NUMBERS)
def test_what_is_no_number_in_the_range_of_its_flag(
    flag: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = list(NO_NUMBERS)
    if flag not in FROM_NOUGHT:
        values += ["0"]
    if flag not in LARGE_IS_FINE:
        values += [str(2**63), "1e18" if flag == "--validation-fraction" else str(2**62)]
    for value in values:
        line = refused(here, capsys, f"{flag}={value}")
        assert flag in line, (flag, value, line)


@pytest.mark.parametrize(
    "flags",
    [
        ("--validation", "en.txt", "--validation-fraction", "0.1"),
        ("--validation", "en.txt", "--validation-docs", "3"),
        ("--validation-fraction", "0.1", "--validation-docs", "3"),
        ("--separator", "\ufffd", "--replace-invalid"),
    ],
    ids="_".join,
)
def test_flags_that_contradict_each_other(
    flags: tuple[str, ...], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(here, capsys, *flags)
    assert any(flag in line for flag in flags[::2])


GARBAGE = {
    "COLUMNS": "-x",
    "TMPDIR": "/nowhere",
    "NO_COLOR": "\x1b",
    "OMP_NUM_THREADS": "many",
    "OPENBLAS_NUM_THREADS": "-3",
    "PYTHONIOENCODING": "utf-8",
    "LC_ALL": "xx_XX",
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_in_the_environment_does_not_matter(
    name: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, GARBAGE[name])
    assert main(["en.txt", "--tokenizer", "tok.json", "--output", "out", "--progress", "bar"]) == 0
    assert "verified" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--separator", "---"],
            "--separator: ",
        ),
        (["-o", "-a/b"], "--output: "),
        (["--separator", "--quiet"], "--separator: "),
        (["--separator"], "--separator: "),
    ],
)
def test_a_value_that_begins_with_a_dash(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["en.txt", "--tokenizer", "tok.json", *words]) == 2
    said_on_stderr = capsys.readouterr().err
    assert said_on_stderr.startswith(f"tokenmill: error: {said}")
    assert said_on_stderr.count("\n") == 1


def test_types_of_arguments_are_ours() -> None:
    for action in NUMBERS.values():
        assert not isinstance(action, argparse._StoreTrueAction)
        assert action.type not in (int, float), "messages of argparse itself do not say the range"


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0.0), ("0.5", 0.5), ("1e6", 1e6), ("-0.1", None), ("1000001", None), ("nan", None)],
)
def test_seconds(text: str, value: float | None) -> None:
    if value is not None:
        assert words.seconds(text) == value
        return
    with pytest.raises(argparse.ArgumentTypeError, match="must be from 0 to 1000000 seconds"):
        words.seconds(text)
