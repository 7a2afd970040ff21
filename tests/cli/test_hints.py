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
        ("--ouput", "--output"),
        ("--input_format", "--input-format"),
        ("--threads", "--workers"),
        ("--num_proc", "--workers"),
        ("--force", ""),  # there is no --overwrite
        ("-q", "--quiet"),
        ("-t", "--tokenizer"),
        ("-w", "--workers"),
        ("-w8", "--workers"),
        ("-z", ""),
        ("--input-path", "INPUT"),
        ("--files", "INPUT"),
        ("-i", "INPUT"),
        ("--resume", "same command"),
        ("--model", "--tokenizer"),
        ("--help-me-please", ""),
    ],
)
def test_what_an_option_was_meant_to_be(option: str, hint: str) -> None:
    found = meant(option, KNOWN, ["INPUT"])
    assert (hint in found) if hint else (found == "")


def test_without_inputs_none_is_named() -> None:
    assert meant("--files", KNOWN, []) == ""
    assert not is_of_other_tools("--input", KNOWN, [])
    assert is_of_other_tools("--input", KNOWN, ["INPUT"])


def test_a_word_that_begins_a_choice() -> None:
    assert "validation" in nearest("val", ["train", "validation"])
    assert nearest("v", ["train", "validation"]) == ""


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--input", "a"], "--input.*INPUT"),
        (["--input-f", "x", "a"], ""),
        (
            ["--input-format=x", "-output", "b", "a"],
            "^-output: .*--output",
        ),
        (["a", "—output=b"], "^—output=b: .*--output"),
        (["output"], ""),
        (["a", "b"], ": b .*INPUT"),
        (["-v", "1"], ": -v"),
        (["a", "-5"], ": -5"),
    ],
)
def test_words_of_a_parser(words: list[str], line: str) -> None:
    parser = Parser(prog="x")
    parser.add_argument("input", metavar="INPUT")
    parser.add_argument("--input-format")
    parser.add_argument("--output", "-o")
    if line:
        with pytest.raises(BadArgument, match=line):
            parser.parse_args(words)
    else:
        assert parser.parse_args(words).input in ("a", "output")
