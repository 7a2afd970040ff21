"""Options in any order, and errors on one line that suggest the nearest word."""

from __future__ import annotations

import pytest

from tokenmill.cli.hints import nearest
from tokenmill.cli.parser import Parser
from tokenmill.errors import BadArgument


@pytest.mark.parametrize(
    ("word", "known"),
    [("--ouput", "--output"), ("--input_format", "--input-format"), ("--help-me-please", "")],
)
def test_the_nearest_word(word: str, known: str) -> None:
    found = nearest(word, ["--output", "--input-format", "--workers"])
    assert (known in found) if known else (found == "")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--inputs-format", "x", "a"], "--inputs-format .*Did you mean --input-format"),
        (["--input-f", "x", "a"], ""),
        (["--input-format=x", "-output", "b", "a"], "^-output: .*--output"),
        (["output"], ""),
        (["a", "b"], ": b .*INPUT"),
        (["-v", "1"], ": -v"),
        (["a", "-5"], ": -5"),
        (["a", "--output", "-b"], "--output: expected .*--output=VALUE"),
        (["a", "--output=--"], "--output: expected a value"),
        (["--output", "x", "--", "a"], ""),
        (["--", "-a"], "-a"),
    ],
)
def test_words_of_a_parser(words: list[str], line: str) -> None:
    parser = Parser(prog="x")
    parser.add_argument("input", metavar="INPUT")
    parser.add_argument("--input-format")
    parser.add_argument("--output", "-o")
    if line == "-a":
        assert parser.parse_args(words).input == "-a"
    elif line:
        with pytest.raises(BadArgument, match=line):
            parser.parse_args(words)
    else:
        assert parser.parse_args(words).input in ("a", "output")
