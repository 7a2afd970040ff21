"""The command line of `convert` as `ConvertOptions`."""

from __future__ import annotations

import argparse
from argparse import SUPPRESS
from collections.abc import Sequence
from dataclasses import fields

from convert.options import CHOICES, DEFAULT_VALIDATION_FRACTION, ConvertOptions
from tokenmill.cli.parser import Parser
from tokenmill.cli.shared_arguments import (
    INPUT_HELP,
    add_engine,
    add_exclude,
    add_input_format,
    add_storage_option,
)
from tokenmill.cli.words import fraction, integer, integer_or_none, size, unescaped
from tokenmill.engines.choose import RETRIES
from tokenmill.inputs.rules import DEFAULT_SEPARATOR, MAX_RECORD_BYTES


def build_parser(prog: str = "python -m convert") -> Parser:
    """Return the parser. `ConvertOptions` describes the hidden options."""
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
    parser.add_argument("inputs", nargs="*", metavar="INPUT", help=INPUT_HELP)
    _add_general(parser)
    _add_input(parser)
    _add_contents(parser)
    _add_dataset(parser)
    add = parser.add_argument_group("workers").add_argument
    add_engine(add)
    add("--retries", type=integer, default=RETRIES, metavar="N", help=SUPPRESS)
    add("--task-index", type=integer, metavar="I", help=SUPPRESS)
    add("--task-count", type=integer, metavar="N", help=SUPPRESS)
    add("--text-chunk-bytes", type=size, metavar="SIZE", help=SUPPRESS)
    return parser


def _add_general(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "--tokenizer",
        metavar="PATH",
        help="tokenizer.json, its URL, a folder, or org/model[@revision] on the Hugging Face Hub",
    )
    add("-o", "--output", metavar="PATH", help="dataset to write, such as owt.zarr or s3://bucket/owt.zarr")
    add("--dry-run", action="store_true", help="print the inputs and an estimate; write nothing")
    add(
        "--progress",
        choices=CHOICES["progress"],
        default="auto",
        help="progress display on stderr; none also omits the summary (default: auto, a bar on a terminal and lines "
        "elsewhere)",
    )
    add("--quiet", action="store_const", const="none", dest="progress", help=SUPPRESS)
    add(
        "--debug",
        action="store_true",
        help="print the traceback of an error, and the seconds that workers spent per step",
    )


def _add_input(parser: Parser) -> None:
    add = parser.add_argument_group("input").add_argument
    add_input_format(add)
    add_exclude(add)
    add(
        "--separator",
        type=unescaped,
        default=DEFAULT_SEPARATOR,
        metavar="TEXT",
        help=r"text between the documents of a text file; \n is a newline (default: %(default)s)",
    )
    add(
        "--on-error",
        choices=CHOICES["on_error"],
        default="fail",
        help="handling of bad records: stop, skip and count them, or copy them to quarantine.jsonl (default: fail)",
    )
    add(
        "--replace-invalid",
        action="store_true",
        help="replace invalid UTF-8 by U+FFFD (default: it makes a record bad)",
    )
    add_storage_option(add)
    add("--max-errors", type=integer_or_none, metavar="N", help=SUPPRESS)
    add("--max-record-bytes", type=size, default=MAX_RECORD_BYTES, metavar="SIZE", help=SUPPRESS)
    add("--max-window-bytes", type=size, default=128 << 20, metavar="SIZE", help=SUPPRESS)


def _add_contents(parser: Parser) -> None:
    add = parser.add_argument_group("chats and prompts").add_argument
    add(
        "--messages-field",
        metavar="NAME",
        help="field with the messages of a chat; only the assistant's are trained on",
    )
    add("--chat-template", metavar="FILE", help="Jinja template of chats (default: the tokenizer's own)")
    add(
        "--prompt-field",
        metavar="NAME",
        help="field with the prompt, a text or messages, which is not trained on",
    )
    add("--completion-field", metavar="NAME", help="field with the completion, which is trained on")
    add("--chat-date", metavar="YYYY-MM-DD", help=SUPPRESS)
    add = parser.add_argument_group("tokens").add_argument
    add(
        "--append-token",
        metavar="TOKEN",
        help="token to add after each document, by text or ID, such as '<|endoftext|>' (default: none)",
    )
    add(
        "--prepend-token",
        metavar="TOKEN",
        help="token to add before each document, by text or ID (default: none)",
    )
    add(
        "--template",
        action="store_true",
        help="add the begin and end tokens that the tokenizer's files define",
    )
    add(
        "--special-in-text",
        choices=CHOICES["special_in_text"],
        help="handling of special tokens spelled in a document: their ID, ordinary text, or a bad record (default: "
        "encode in text files, text in records)",
    )


def _add_dataset(parser: Parser) -> None:
    add = parser.add_argument_group("validation").add_argument
    add(
        "--validation-fraction",
        type=fraction,
        metavar="F",
        help=f"fraction of the documents, chosen by a hash of their text (default: {DEFAULT_VALIDATION_FRACTION})",
    )
    add("--validation-docs", type=integer, metavar="N", help=SUPPRESS)
    add(
        "--validation",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="files that form the validation split",
    )
    add("--seed", type=integer, default=0, metavar="N", help=SUPPRESS)
    add = parser.add_argument_group("dataset").add_argument
    add(
        "--zarr-format",
        type=integer,
        choices=CHOICES["zarr_format"],
        help="Zarr format; 3 has shards and checksums (default: 2 on disk, 3 on an object store)",
    )
    add("--overwrite", action="store_true", help="replace an existing dataset")
    add("--restart", action="store_true", help="discard an unfinished run instead of resuming it")
    add("--verify", choices=CHOICES["verify"], default="sample", help=SUPPRESS)
    add("--compression", choices=CHOICES["compression"], default="zstd", help=SUPPRESS)
    add("--chunk-tokens", type=size, metavar="SIZE", help=SUPPRESS)


def parse_arguments(
    arguments: Sequence[str], prog: str = "python -m convert"
) -> tuple[ConvertOptions, argparse.Namespace]:
    """Return the options, and the parsed arguments with dry_run and debug."""
    parser = build_parser(prog)
    parsed = parser.parse_args(arguments)
    required = {"--tokenizer": parsed.tokenizer, "--output": parsed.output}
    if missing := [flag for flag, value in required.items() if value is None]:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    names = {field.name for field in fields(ConvertOptions)}
    given = {name: value for name, value in vars(parsed).items() if name in names}
    for name in ("prepend_token", "append_token"):
        given[name] = None if given[name] == "none" else given[name]
    return ConvertOptions(**given, storage_options=dict(parsed.storage_option)), parsed
