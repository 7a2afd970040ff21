"""Every option outside its range is refused with the flag, the rule and the value; sizes and escapes are understood."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from convert.errors import UsageError
from convert.options import ConvertOptions
from convert.shown.arguments import parse_arguments
from tokenmill.cli.words import unescaped

BAD = [
    ({"workers": 0}, "--workers must be at least 1, got 0"),
    ({"workers": -1}, "--workers must be at least 1, got -1"),
    ({"workers": 10**6}, "--workers must be at most 4096, got 1000000"),
    ({"workers": 1.5}, "--workers must be a whole number, got 1.5"),
    ({"workers": True}, "--workers must be a whole number, got True"),
    ({"seed": -1}, "--seed must be at least 0, got -1"),
    ({"seed": 2**64}, f"--seed must be at most {2**64 - 1}, got {2**64}"),
    ({"text_chunk_bytes": 0}, "--text-chunk-bytes must be at least 1, got 0"),
    ({"text_chunk_bytes": 2**63}, "--text-chunk-bytes must be at most 4294967296"),
    ({"chunk_tokens": 0}, "--chunk-tokens must be at least 1, got 0"),
    ({"chunk_tokens": 2**40}, "--chunk-tokens must be at most"),
    ({"validation_fraction": 1.1}, "--validation-fraction must be from 0 to 1, got 1.1"),
    ({"validation_fraction": -0.1}, "--validation-fraction must be from 0 to 1, got -0.1"),
    ({"validation_fraction": float("nan")}, "--validation-fraction must be from 0 to 1, got nan"),
    (
        {"validation_fraction": 0.1, "validation": ["v"]},
        "--validation and --validation-fraction exclude each other",
    ),
    ({"validation_fraction": "0.1"}, "--validation-fraction must be from 0 to 1, got '0.1'"),
    ({"overwrite": "yes"}, "overwrite must be True or False, got 'yes'"),
    ({"inputs": None}, "inputs must be paths, got None"),
    ({"separator": b"a"}, "--separator: "),
    ({"separator": ""}, "--separator: "),
    ({"separator": "\ud800"}, "--separator: "),
    ({"separator": "x" * 5000}, "--separator: "),
    ({"separator": "a\ufffd", "invalid": "replace"}, "--separator: "),
    ({"zarr_format": 1}, "--zarr-format must be one of 2, 3, got 1"),
    ({"compression": "gzip"}, "--compression must be one of zstd, lz4, lz4-bitshuffle, none, got 'gzip'"),
    ({"invalid": "drop"}, "--invalid must be one of error, replace, skip, got 'drop'"),
    ({"on_error": "x"}, "--on-error must be one of fail, skip, quarantine, got 'x'"),
    ({"max_errors": -1}, "--max-errors must be at least 0, got -1"),
    ({"special_in_text": "x"}, "--special-in-text must be one of encode, text, error, got 'x'"),
    (
        {"input_format": "xml"},
        "--input-format must be one of auto, text, jsonl, parquet, arrow, csv, tsv, tar, got 'xml'",
    ),
    ({"text_field": ""}, "--text-field must name a field, got ''"),
    ({"text_field": "\ud800"}, "--text-field must be valid text"),
    ({"text_field": "/a" * 65}, "--text-field must have at most 64 parts"),
    ({"max_record_bytes": 0}, "--max-record-bytes must be at least 1, got 0"),
    ({"max_window_bytes": 10}, "--max-window-bytes must be at least 1024, got 10"),
    ({"validation_docs": -1}, "--validation-docs must be at least 0, got -1"),
    (
        {"validation_docs": 5, "validation_fraction": 0.1},
        "--validation-fraction and --validation-docs exclude each other",
    ),
    ({"progress": "x"}, "--progress must be one of auto, bar, json, none, got 'x'"),
    ({"start_method": "x"}, "--start-method must be one of"),
    ({"inputs": []}, "no input given"),
    ({"output": ""}, "--output must be a path, got ''"),
    ({"output": "a\0b"}, "--output must not hold a NUL character"),
    ({"tokenizer": None}, "--tokenizer must be a path, got None"),
]


@pytest.mark.parametrize("held_out", [{"validation_docs": 5}, {"validation": ["v"]}, {}], ids=str)
def test_options_may_be_made_of_options(held_out: dict[str, Any]) -> None:
    made = ConvertOptions("a", "t", "o", **held_out)
    assert replace(made, seed=made.seed) == made


@pytest.mark.parametrize(("change", "message"), BAD, ids=lambda value: str(value)[:40])
def test_a_value_outside_its_range_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        ConvertOptions(**{"inputs": ["a"], "tokenizer": "t", "output": "o", **change})
    assert str(caught.value).startswith(message)
    assert caught.value.exit_code == 2


def test_defaults_and_kinds_of_paths() -> None:
    options = ConvertOptions(Path("a"), Path("t"), b"o")  # type: ignore[arg-type]
    assert (options.inputs, options.tokenizer, options.output) == (("a",), "t", "o")
    assert options.fraction == 0.005
    assert options.worker_count >= 1
    assert ConvertOptions(["a"], "t", "o", validation=["v"]).fraction == 0


def test_only_what_decides_the_bytes_is_recorded() -> None:
    base = ConvertOptions(["a"], "t", "o")
    same = ConvertOptions(["b"], "t", "p", workers=7, progress="json", overwrite=True, text_chunk_bytes=9)
    assert base.recorded() == same.recorded()
    for change in (
        {"seed": 1},
        {"separator": "x"},
        {"zarr_format": 3},
        {"compression": "none"},
        {"invalid": "replace"},
    ):
        assert ConvertOptions(["a"], "t", "o", **change).recorded() != base.recorded()  # type: ignore[arg-type]


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
    options, parsed = parse_arguments(arguments)
    assert options.inputs == ("a", "b")
    assert options.validation == ("v", "w")
    assert (options.separator, options.seed, options.workers) == ("\n\n", 5, 3)
    assert (options.text_chunk_bytes, options.chunk_tokens, options.progress) == (65536, 1000, "none")
    assert parsed.quiet


@pytest.mark.parametrize(
    ("arguments", "executor"),
    [
        ([], "process"),
        (["--executor", "process"], "process"),
        (["--scheduler", "tcp://h:1"], "dask"),
        (["--executor", "dask", "--scheduler", "tcp://h:1"], "dask"),
        (["--address", "auto"], "ray"),
        (["--scheduler", "tcp://h:1", "--address", "auto"], None),
        (["--executor", "process", "--scheduler", "tcp://h:1"], None),
        (["--executor", "ray", "--scheduler", "tcp://h:1"], None),
        (["--executor", "dask"], None),
    ],
)
def test_an_address_chooses_the_engine(arguments: list[str], executor: str | None) -> None:
    words = ["a", "--tokenizer", "t", "--output", "o", *arguments]
    if executor is not None:
        assert parse_arguments(words)[0].executor == executor
        return
    with pytest.raises(UsageError):
        parse_arguments(words)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a"], "the following arguments are required: --tokenizer, --output"),
        (["--workers", "abc"], "--workers: "),
        (["--chunk-tokens", "lots"], "--chunk-tokens: "),
        (["--zarr-format", "4"], "--zarr-format: "),
        (["--separator", "\\q"], "--separator: "),
        (["--nonsense"], "unrecognized argument: --nonsense"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_bad_command_line_is_one_line(arguments: list[str], message: str) -> None:
    base = [] if "required" in message else ["a", "--tokenizer", "t", "--output", "o"]
    with pytest.raises(UsageError) as caught:
        parse_arguments([*base, *arguments])
    assert str(caught.value).startswith(message)
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
    """As parts are made, and what has a loss mask: on a cluster each of them ended with "--workers is for ..."."""
    options = ConvertOptions(**{"inputs": ["a"], "tokenizer": "t", "output": "b", **given})
    again = replace(options, seed=1)
    assert (again, again.worker_count) == (replace(options, seed=1), options.worker_count)
    assert replace(again, seed=0) == options
