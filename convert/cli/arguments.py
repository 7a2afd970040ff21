"""The command line of `convert` as `ConvertOptions`."""

from __future__ import annotations

import argparse
from argparse import SUPPRESS
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from convert.options import DEFAULT_VALIDATION_FRACTION, ConvertOptions
from tokenmill.cli.parser import Parser
from tokenmill.cli.shared_arguments import (
    INPUT_HELP,
    add_engine,
    add_exclude,
    add_input_format,
    add_storage_option,
)
from tokenmill.cli.words import fraction, integer, integer_or_none, size, unescaped

_OPTIONS = {own.name: own for own in fields(ConvertOptions)}


def build_parser(prog: str = "python -m convert") -> Parser:
    """Return the parser. `ConvertOptions` describes the hidden options and has the defaults and choices of all."""
    parser = Parser(
        prog=prog,
        usage="%(prog)s INPUT... --tokenizer PATH --output PATH [options]",
        description="Convert text, JSON Lines, Parquet, Arrow, CSV or tar files to a verified dataset of token IDs.\n"
        "To resume an interrupted run, run the same command again.",
        examples=(
            "corpus.txt --tokenizer tokenizer.json --output corpus.zarr",
            "texts/ 'more/*.txt' --tokenizer tokenizer.json --output all.zarr --workers 8",
            "train.txt --validation valid.txt --tokenizer tokenizer.json --output split.zarr",
            "'dump/*.jsonl.zst' --text-field /doc/body --on-error quarantine --tokenizer t.json --output d.zarr",
            "zcat corpus.gz | %(prog)s - --tokenizer tokenizer.json --output corpus.zarr",
        ),
    )
    group: Any = parser

    def add(flag: str, metavar: str | None = None, help: str = SUPPRESS, type: Any = None) -> None:
        """Add an option to the current group, hidden without help."""
        own = _OPTIONS[flag.lstrip("-").replace("-", "_")]
        if own.default is False:
            group.add_argument(flag, action="store_true", help=help)
        else:
            choices = own.metadata.get("choices")
            group.add_argument(
                flag, default=own.default, choices=choices, metavar=metavar, help=help, type=type
            )

    add_to = parser.add_argument
    add_to("inputs", nargs="*", metavar="INPUT", help=INPUT_HELP)
    where = "tokenizer.json, its URL, a folder, or org/model[@revision] on the Hugging Face Hub"
    add_to("--tokenizer", required=True, metavar="PATH", help=where)
    where = "dataset to write, such as owt.zarr or s3://bucket/owt.zarr"
    add_to("-o", "--output", required=True, metavar="PATH", help=where)
    add_to("--dry-run", action="store_true", help="print the inputs and an estimate; write nothing")
    add("--progress", help="progress on stderr (default: auto, a bar on a terminal and lines elsewhere)")
    add_to("--quiet", action="store_const", const="none", dest="progress", help=SUPPRESS)
    add_to("--debug", action="store_true", help="print the traceback of an error, and the seconds of workers")

    group = parser.add_argument_group("input")
    add_input_format(group.add_argument)
    add_exclude(group.add_argument)
    documents = r"text between the documents of a text file; \n is a newline (default: %(default)s)"
    add("--separator", "TEXT", documents, unescaped)
    bad = (
        "handling of bad records: stop, skip and count them, or copy them to quarantine.jsonl (default: fail)"
    )
    add("--on-error", help=bad)
    add("--replace-invalid", help="replace invalid UTF-8 by U+FFFD (default: it makes a record bad)")
    add_storage_option(group.add_argument)

    group = parser.add_argument_group("chats and prompts")
    add("--messages-field", "NAME", "field with the messages of a chat; only the assistant's are trained on")
    add("--chat-template", "FILE", "Jinja template of chats (default: the tokenizer's own)")
    add("--prompt-field", "NAME", "field with the prompt, a text or messages, which is not trained on")
    add("--completion-field", "NAME", "field with the completion, which is trained on")

    group = parser.add_argument_group("tokens")
    end = "token to add after each document, by text or ID, such as '<|endoftext|>' (default: none)"
    add("--append-token", "TOKEN", end)
    add("--prepend-token", "TOKEN", "token to add before each document, by text or ID (default: none)")
    add("--template", help="add the begin and end tokens that the tokenizer's files define")
    spelled = "handling of special tokens spelled in a document: their ID, ordinary text, or a bad record "
    add("--special-in-text", help=f"{spelled} (default: encode in text files, text in records)")

    group = parser.add_argument_group("validation")
    share = (
        f"fraction of the documents, chosen by a hash of their text (default: {DEFAULT_VALIDATION_FRACTION})"
    )
    add("--validation-fraction", "F", share, fraction)
    held_out = "files that form the validation split"
    group.add_argument("--validation", nargs="+", action="extend", default=[], metavar="FILE", help=held_out)

    group = parser.add_argument_group("dataset")
    zarr = "Zarr format; 3 has shards and checksums (default: 2 on disk, 3 on an object store)"
    add("--zarr-format", help=zarr, type=integer)
    add("--overwrite", help="replace an existing dataset")
    add("--restart", help="discard an unfinished run instead of resuming it")

    group = parser.add_argument_group("workers")
    add_engine(group.add_argument)
    for flag in ("--validation-docs", "--seed", "--retries", "--task-index", "--task-count"):
        add(flag, "N", type=integer)
    for flag in ("--max-record-bytes", "--max-window-bytes", "--chunk-tokens", "--text-chunk-bytes"):
        add(flag, "SIZE", type=size)
    add("--max-errors", "N", type=integer_or_none)
    add("--chat-date", "YYYY-MM-DD")
    add("--verify")
    add("--compression")
    return parser


def parse_arguments(
    arguments: Sequence[str], prog: str = "python -m convert"
) -> tuple[ConvertOptions, argparse.Namespace]:
    """Return the options, and the parsed arguments with dry_run and debug."""
    parsed = build_parser(prog).parse_args(arguments)
    given = {name: value for name, value in vars(parsed).items() if name in _OPTIONS}
    for name in ("prepend_token", "append_token"):
        given[name] = None if given[name] == "none" else given[name]
    return ConvertOptions(**given, storage_options=dict(parsed.storage_option)), parsed
