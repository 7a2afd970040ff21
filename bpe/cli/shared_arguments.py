"""Options that several commands of `python -m bpe` share."""

from __future__ import annotations

import argparse
from typing import Final

from tokenmill.cli.shared_arguments import INPUT_HELP, add_input_format, add_storage_option

TOKENIZER_HELP: Final = (
    "tokenizer.json, vocab.json, *.tiktoken, *.model, a folder, or org/model[@revision] on the Hugging Face "
    "Hub"
)


def add_inputs(command: argparse.ArgumentParser, metavar: str = "INPUT") -> None:
    command.add_argument("inputs", nargs="*", metavar=metavar, help=INPUT_HELP)


def add_counts(command: argparse.ArgumentParser, about: str) -> None:
    command.add_argument(
        "--counts",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help=about,
    )


def add_records(command: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add and return the group of options for reading inputs."""
    group = command.add_argument_group("input")
    add_input_format(group.add_argument)
    add_storage_option(group.add_argument)
    group.add_argument(
        "--on-error",
        choices=["fail", "skip"],
        default="fail",
        help="handling of bad records: stop, or skip and count them (default: fail)",
    )
    group.add_argument(
        "--invalid",
        choices=["error", "replace"],
        default="error",
        help="handling of invalid UTF-8: a bad record, or U+FFFD for each invalid sequence (default: error)",
    )
    return group


def add_tokenizer(command: argparse.ArgumentParser) -> None:
    command.add_argument("--tokenizer", required=True, metavar="PATH", help=TOKENIZER_HELP)


def add_rank_file_options(command: argparse.ArgumentParser, several: bool = False) -> None:
    """Add --pattern and --special-token for files that lack them. several: --pattern may be repeated, one per file."""
    add = command.add_argument_group("tokenizer").add_argument
    once = "; give it once, or once per tokenizer" if several else ""
    add(
        "--pattern",
        action="append" if several else "store",
        help=f"pre-tokenization pattern of *.tiktoken or vocab.json, by name or as a regular expression{once}",
    )
    add(
        "--special-token",
        action="append",
        metavar="TOKEN[=ID]",
        help="special token of *.tiktoken or vocab.json; repeatable (default ID: the next free one)",
    )


def add_output(command: argparse.ArgumentParser, what: str) -> None:
    """Add --output for a command that writes to stdout by default."""
    command.add_argument("-o", "--output", default="-", metavar="FILE", help=f"{what} (default: -, stdout)")


def add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")
