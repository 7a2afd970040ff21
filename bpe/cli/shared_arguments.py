"""Options that several commands have: records, tokenizers."""

from __future__ import annotations

import argparse

from tokenmill.cli.input_arguments import add_input_arguments


def add_records(command: argparse.ArgumentParser) -> None:
    add_input_arguments(command.add_argument)
    command.add_argument(
        "--on-error",
        choices=["fail", "skip"],
        default="fail",
        help="records without a text, documents that are no UTF-8: stop (default), or leave them out",
    )
    add_invalid(command)


def add_invalid(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--invalid",
        choices=["error", "replace"],
        default="error",
        help="bytes that are not UTF-8: stop (default), or replace by U+FFFD as Python does",
    )


def add_tokenizer(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--tokenizer",
        required=True,
        metavar="PATH",
        help="tokenizer.json, vocab.json, a folder of them, *.tiktoken with --pattern, or org/model[@revision] of the "
        "Hugging Face Hub",
    )
    add_rank_file_options(command)


def add_rank_file_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--pattern", help="for *.tiktoken and vocab.json: the pattern's name or expression")
    add_special_token(command)


def add_special_token(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--special-token",
        action="append",
        metavar="TOKEN[=ID]",
        help="for *.tiktoken and vocab.json; may be repeated; without =ID the next free id",
    )
