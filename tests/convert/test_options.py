"""Every option outside its range is refused with the flag, the rule and the value; sizes and escapes are understood."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from convert.cli.arguments import parse_arguments
from convert.errors import UsageError
from convert.options import ConvertOptions
from tokenmill.cli.words import unescaped

BAD = [
    ({"workers": 0}, "--workers"),
    ({"workers": -1}, "--workers"),
    ({"workers": 10**6}, "--workers"),
    ({"workers": 1.5}, "--workers"),
    ({"workers": True}, "--workers"),
    ({"seed": -1}, "--seed"),
    ({"seed": 2**64}, "--seed"),
    ({"text_chunk_bytes": 0}, "--text-chunk-bytes"),
    ({"text_chunk_bytes": 2**63}, "--text-chunk-bytes"),
    ({"chunk_tokens": 0}, "--chunk-tokens"),
    ({"chunk_tokens": 2**40}, "--chunk-tokens"),
    ({"validation_fraction": 1.1}, "--validation-fraction"),
    ({"validation_fraction": -0.1}, "--validation-fraction"),
    ({"validation_fraction": float("nan")}, "--validation-fraction"),
    ({"validation_fraction": 0.1, "validation": ["v"]}, "--validation"),
    ({"validation_fraction": "0.1"}, "--validation-fraction"),
    ({"overwrite": "yes"}, "--overwrite"),
    ({"restart": 1}, "--restart"),
    ({"task_index": 1}, "--task-index"),
    ({"task_index": 2, "task_count": 2}, "--task-index"),
    ({"verify": "all"}, "--verify"),
    ({"retries": -1}, "--retries"),
    ({"inputs": None}, "inputs"),
    ({"separator": b"a"}, "--separator"),
    ({"separator": ""}, "--separator"),
    ({"separator": "\ud800"}, "--separator"),
    ({"separator": "x" * 5000}, "--separator"),
    ({"separator": "a\ufffd", "replace_invalid": True}, "--separator"),
    ({"zarr_format": 1}, "--zarr-format"),
    ({"compression": "lz4"}, "--compression"),
    ({"replace_invalid": "yes"}, "--replace-invalid"),
    ({"on_error": "x"}, "--on-error"),
    ({"max_errors": -1}, "--max-errors"),
    ({"special_in_text": "x"}, "--special-in-text"),
    ({"input_format": "xml"}, "--input-format"),
    ({"text_field": ""}, "--text-field"),
    ({"text_field": "\ud800"}, "--text-field"),
    ({"text_field": "/a" * 65}, "--text-field"),
    ({"max_record_bytes": 0}, "--max-record-bytes"),
    ({"max_window_bytes": 10}, "--max-window-bytes"),
    ({"validation_docs": -1}, "--validation-docs"),
    ({"validation_docs": 5, "validation_fraction": 0.1}, "--validation-fraction"),
    ({"progress": "x"}, "--progress"),
    ({"start_method": "x"}, "--start-method"),
    ({"inputs": []}, "INPUT"),
    ({"output": ""}, "--output"),
    ({"output": "a\0b"}, "--output"),
    ({"tokenizer": None}, "--tokenizer"),
]


@pytest.mark.parametrize("held_out", [{"validation_docs": 5}, {"validation": ["v"]}, {}], ids=str)
def test_options_may_be_made_of_options(held_out: dict[str, Any]) -> None:
    made = ConvertOptions("a", "t", "o", **held_out)
    assert replace(made, seed=made.seed) == made


@pytest.mark.parametrize(("change", "where"), BAD, ids=lambda value: str(value)[:40])
def test_a_value_outside_its_range_is_refused(change: dict[str, Any], where: str) -> None:
    with pytest.raises(UsageError) as caught:
        ConvertOptions(**{"inputs": ["a"], "tokenizer": "t", "output": "o", **change})
    assert str(caught.value).startswith(where)
    assert caught.value.exit_code == 2


def test_defaults_and_kinds_of_paths() -> None:
    options = ConvertOptions(Path("a"), Path("t"), b"o")  # type: ignore[arg-type]
    assert (options.inputs, options.tokenizer, options.output) == (("a",), "t", "o")
    assert options.fraction == 0.005
    assert options.worker_count >= 1
    assert ConvertOptions(["a"], "t", "o", validation=["v"]).fraction == 0


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"\n\n", "\n\n"),
        (r"\t\r\0", "\t\r\0"),
        (r"\\n", "\\n"),
        (r"\x1e", "\x1e"),
        (r"\u20ac", "€"),
        ("€|", "€|"),
        (r"\U0001F642", "🙂"),
        ("<|endoftext|>", "<|endoftext|>"),
    ],
)
def test_escapes(text: str, plain: str) -> None:
    assert unescaped(text) == plain


@pytest.mark.parametrize("text", ["\\", r"\q", r"\x1", r"\u12", r"\UFFFFFFFF"])
def test_what_is_no_escape(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="escape"):
        unescaped(text)


def test_the_command_line_becomes_options() -> None:
    arguments = [
        "a",
        "b",
        "--tokenizer",
        "t",
        "--output",
        "o",
        "--validation",
        "v",
        "w",
        "--separator",
        r"\n\n",
    ]
    arguments += [
        "--seed",
        "5",
        "--workers",
        "3",
        "--text-chunk-bytes",
        "64Ki",
        "--chunk-tokens",
        "1k",
        "--quiet",
    ]
    options, _ = parse_arguments(arguments)
    assert options.inputs == ("a", "b")
    assert options.validation == ("v", "w")
    assert (options.separator, options.seed, options.workers) == ("\n\n", 5, 3)
    assert (options.text_chunk_bytes, options.chunk_tokens, options.progress) == (65536, 1000, "none")


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["a"], "--tokenizer, --output"),
        (["--workers", "abc"], "--workers"),
        (["--chunk-tokens", "lots"], "--chunk-tokens"),
        (["--zarr-format", "4"], "--zarr-format"),
        (["--separator", "\\q"], "--separator"),
        (["--nonsense"], "--nonsense"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_bad_command_line_is_one_line(arguments: list[str], where: str) -> None:
    base = [] if arguments == ["a"] else ["a", "--tokenizer", "t", "--output", "o"]
    with pytest.raises(UsageError) as caught:
        parse_arguments([*base, *arguments])
    assert where in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"executor": "dask", "scheduler": "tcp://h:1"},
        {"executor": "ray", "address": "h:1"},
        {"validation": ["v"]},
        {"validation_docs": 3},
        {"output": "s3://bucket/a"},
    ],
    ids=str,
)
def test_options_made_of_others_were_refused_for_their_own_defaults(given: dict[str, Any]) -> None:
    """As parts are made, and what has a loss mask: on a cluster each of them ended with an error about --workers."""
    options = ConvertOptions(**{"inputs": ["a"], "tokenizer": "t", "output": "b", **given})
    again = replace(options, seed=1)
    assert (again, again.worker_count) == (replace(options, seed=1), options.worker_count)
    assert replace(again, seed=0) == options
