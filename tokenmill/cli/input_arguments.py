"""The arguments that say what inputs are and where they lie, the same for all commands that read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenmill.cli.words import TEXT_FIELD_ALIASES, name_and_value
from tokenmill.inputs.kinds import INPUT_FORMATS


def add_input_arguments(add: Callable[..., Any]) -> None:
    """--input-format, --text-field and --storage-option, by the `add_argument` of a parser or a group."""
    add(
        "--input-format",
        choices=INPUT_FORMATS,
        default="auto",
        help="what all inputs are (default: each by its name: .jsonl, .parquet, .csv, ..., else text)",
    )
    add(
        "--text-field",
        *TEXT_FIELD_ALIASES,
        default="text",
        metavar="NAME",
        help='where a record has its text: a field or column (default "text"), or a JSON pointer such as /a/b',
    )
    add_storage_option(add)


def add_exclude(add: Callable[..., Any]) -> None:
    """--exclude, which may be repeated."""
    add(
        "--exclude",
        action="append",
        default=[],
        metavar="GLOB",
        help="leave out files and folders with this path or end of a path: '*.md', 'drafts/*'; may be repeated",
    )


def add_storage_option(add: Callable[..., Any]) -> None:
    """--storage-option, as often as needed."""
    add(
        "--storage-option",
        type=name_and_value,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of the store that a URL names, such as region=eu-west-1; may be repeated (default: by its environment "
        "variables)",
    )
