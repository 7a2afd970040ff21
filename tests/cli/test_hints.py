"""What an option that no command knows was meant to be."""

from __future__ import annotations

import pytest

from tokenmill.cli.hints import is_of_other_tools, meant, nearest
from tokenmill.cli.parser import Parser
from tokenmill.errors import BadArgument

KNOWN = [
    "--append-to",
    "--input-format",
    "--tokenizer",
    "--text-field",
    "--text-chunk-bytes",
    "--workers",
    "--output",
    "--quiet",
]


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("--ouput", "; did you mean --output?"),
        ("--input_format", "; did you mean --input-format?"),
        ("--threads", "; did you mean --workers?"),
        ("--num_proc", "; did you mean --workers?"),
        ("--force", ""),  # there is no --overwrite
        ("-q", "; did you mean --quiet?"),
        ("-t", "; did you mean --tokenizer?"),
        ("-w", "; did you mean --workers?"),
        ("-w8", "; did you mean --workers?"),
        ("-z", ""),
        ("--input-path", "; INPUT is given without an option"),
        ("--files", "; INPUT is given without an option"),
        ("-i", "; INPUT is given without an option"),
        ("--resume", "; a run that was stopped goes on when the same command is given again"),
        ("--model", "; did you mean --tokenizer?"),
        ("--help-me-please", ""),
    ],
)
def test_what_an_option_was_meant_to_be(option: str, hint: str) -> None:
    assert meant(option, KNOWN, ["INPUT"]) == hint


def test_without_inputs_none_is_named() -> None:
    assert meant("--files", KNOWN, []) == ""
    assert not is_of_other_tools("--input", KNOWN, [])
    assert is_of_other_tools("--input", KNOWN, ["INPUT"])


def test_a_word_that_begins_a_choice() -> None:
    assert nearest("val", ["train", "validation"]) == "; did you mean validation?"
    assert nearest("v", ["train", "validation"]) == ""


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--input", "a"], "unrecognized arguments: --input; INPUT is given without an option"),
        (["--input-f", "x", "a"], ""),
        (
            ["--input-format=x", "-output", "b", "a"],
            "-output does not begin with two hyphens; write --output",
        ),
        (["a", "—output=b"], "—output=b does not begin with two hyphens; write --output"),
        (["output"], ""),
        (["a", "b"], "too many arguments: b; it takes no more than INPUT"),
        (["-v", "1"], "unrecognized arguments: -v"),
        (["a", "-5"], "unrecognized arguments: -5"),
    ],
)
def test_words_of_a_parser(words: list[str], line: str) -> None:
    parser = Parser(prog="x")
    parser.add_argument("input", metavar="INPUT")
    parser.add_argument("--input-format")
    parser.add_argument("--output", "-o")
    if line:
        with pytest.raises(BadArgument) as error:
            parser.parse_args(words)
        assert str(error.value).startswith(line)
    else:
        assert parser.parse_args(words).input in ("a", "output")
