"""An option outside its range is an error that names the flag, in Python and on the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from convert import ConvertOptions
from convert.cli.arguments import parse_arguments
from convert.errors import UsageError

BAD: list[tuple[dict[str, Any], str]] = [
    *(({"workers": value}, "--workers") for value in (0, -1, 10**6, 1.5, True)),
    *(({"seed": value}, "--seed") for value in (-1, 2**64)),
    *(({"text_chunk_bytes": value}, "--text-chunk-bytes") for value in (0, 2**63)),
    *(({"chunk_tokens": value}, "--chunk-tokens") for value in (0, 2**40)),
    *(({"validation_fraction": x}, "--validation-fraction") for x in (1.1, -0.1, float("nan"), "0.1")),
    *(({"separator": value}, "--separator") for value in (b"a", "", "\ud800", "x" * 5000)),
    *(({"text_field": value}, "--text-field") for value in ("", "\ud800", "/a" * 65)),
    *(({"append_token": value}, "--append-token") for value in ("", True, 1.5)),
    *(({"output": value}, "--output") for value in ("", "a\0b")),
    *(({"chat_date": x}, "--chat-date") for x in ("2024-7-26", "today", "2024-02-30", "2024-07-26")),
    ({"separator": "a\ufffd", "replace_invalid": True}, "--separator"),
    ({"validation_fraction": 0.1, "validation": ["v"]}, "--validation"),
    ({"validation_docs": 5, "validation_fraction": 0.1}, "--validation-fraction"),
    ({"validation_docs": 5, "validation": ["v"]}, "--validation"),
    ({"validation_docs": -1}, "--validation-docs"),
    ({"overwrite": "yes"}, "--overwrite"),
    ({"restart": 1}, "--restart"),
    ({"template": "yes"}, "--template"),
    ({"template": True, "append_token": "a"}, "--template"),
    ({"template": True, "prepend_token": "a"}, "--template"),
    ({"replace_invalid": "yes"}, "--replace-invalid"),
    ({"task_index": 1}, "--task-index"),
    ({"task_index": 2, "task_count": 2}, "--task-index"),
    ({"task_index": 0, "task_count": 2, "validation_docs": 3}, "--task-index"),
    ({"task_index": 0, "task_count": 2, "inputs": ["-"]}, "-"),
    ({"verify": "all"}, "--verify"),
    ({"retries": -1}, "--retries"),
    ({"zarr_format": 1}, "--zarr-format"),
    ({"zarr_format": 2, "output": "s3://bucket/a"}, "--zarr-format"),
    ({"compression": "lz4"}, "--compression"),
    ({"on_error": "x"}, "--on-error"),
    ({"max_errors": -1}, "--max-errors"),
    ({"special_in_text": "x"}, "--special-in-text"),
    ({"input_format": "xml"}, "--input-format"),
    ({"max_record_bytes": 0}, "--max-record-bytes"),
    ({"max_window_bytes": 10}, "--max-window-bytes"),
    ({"progress": "x"}, "--progress"),
    ({"start_method": "x"}, "--start-method"),
    ({"stall_timeout": -1}, "--stall-timeout"),
    ({"inputs": []}, "INPUT"),
    ({"inputs": None}, "inputs"),
    ({"tokenizer": None}, "--tokenizer"),
    ({"prompt_field": "p"}, "--prompt-field"),
    ({"completion_field": "c"}, "--completion-field"),
    ({"prompt_field": "p", "completion_field": ""}, "--completion-field"),
    ({"prompt_field": "p", "completion_field": "c", "messages_field": "m"}, "--prompt-field"),
    ({"prompt_field": "p", "completion_field": "c", "text_field": "t"}, "--text-field"),
    ({"prompt_field": "p", "completion_field": "c", "chunk_tokens": 12}, "--chunk-tokens"),
    ({"chat_template": "f"}, "--chat-template"),
]


@pytest.mark.parametrize(("change", "where"), BAD, ids=lambda value: str(value)[:40])
def test_a_value_outside_its_range(change: dict[str, Any], where: str) -> None:
    with pytest.raises(UsageError) as caught:
        ConvertOptions(**{"inputs": ["a"], "tokenizer": "t", "output": "o", **change})
    assert str(caught.value).startswith(where)
    assert caught.value.exit_code == 2


def test_defaults_and_types_of_paths() -> None:
    options = ConvertOptions(Path("a"), Path("t"), b"o")  # type: ignore[arg-type]
    assert (options.inputs, options.tokenizer, options.output) == (("a",), "t", "o")
    assert options.fraction == 0.005
    assert options.worker_count >= 1
    assert ConvertOptions(["a"], "t", "o", validation=["v"]).fraction == 0


@pytest.mark.parametrize(
    "given",
    [
        {"executor": "dask", "scheduler": "tcp://h:1"},
        {"executor": "ray", "address": "h:1"},
        {"validation": ["v"]},
        {"validation_docs": 3},
        {"output": "s3://bucket/a"},
        {},
    ],
    ids=str,
)
def test_options_made_of_options_were_refused_for_their_own_defaults(given: dict[str, Any]) -> None:
    options = ConvertOptions(**{"inputs": ["a"], "tokenizer": "t", "output": "b", **given})
    again = replace(options, seed=1)
    assert again.worker_count == options.worker_count
    assert replace(again, seed=0) == options


def test_the_command_line_becomes_options() -> None:
    line = (
        r"a b --tokenizer t --output o --validation v w --separator \n\n --seed 5 --workers 3 "
        "--text-chunk-bytes 64Ki --chunk-tokens 1k --quiet"
    )
    options, _ = parse_arguments(line.split())
    assert (options.inputs, options.validation) == (("a", "b"), ("v", "w"))
    assert (options.separator, options.seed, options.workers) == ("\n\n", 5, 3)
    assert (options.text_chunk_bytes, options.chunk_tokens, options.progress) == (65536, 1000, "none")
