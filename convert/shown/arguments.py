"""The command line of `python -m convert` as `ConvertOptions`; imports nothing heavy, so --help is instant."""

from __future__ import annotations

import argparse
from argparse import SUPPRESS
from collections.abc import Sequence
from dataclasses import fields

from convert.options import CHOICES, DEFAULT_VALIDATION_FRACTION, ConvertOptions, conflict
from tokenmill.cli.parser import Parser
from tokenmill.cli.shared_arguments import (
    COMPRESSIONS,
    INPUT_HELP,
    add_engine,
    add_exclude,
    add_input_format,
    add_storage_option,
)
from tokenmill.cli.words import (
    fraction,
    integer,
    integer_or_none,
    size,
    unescaped,
)
from tokenmill.engines.choose import EXECUTORS, executor_of
from tokenmill.inputs.rules import DEFAULT_SEPARATOR, MAX_RECORD_BYTES


def build_parser(prog: str = "python -m convert") -> Parser:
    """The parser. prog: how the program was called. Options without a help text are described in ConvertOptions."""
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
    add = parser.add_argument
    add("inputs", nargs="*", metavar="INPUT", help=INPUT_HELP)
    add(
        "--tokenizer",
        metavar="PATH",
        help="tokenizer.json, its URL, a folder, or org/model[@revision] on the Hugging Face Hub",
    )
    add("-o", "--output", metavar="PATH", help="dataset to write, such as owt.zarr or s3://bucket/owt.zarr")
    add("--append-to", metavar="PATH", help=SUPPRESS)  # see convert.append
    add("--dry-run", action="store_true", help="print the inputs and an estimate; write nothing")
    add(
        "--progress",
        choices=CHOICES["progress"],
        default="auto",
        help="progress display on stderr (default: auto, a bar on a terminal and lines elsewhere)",
    )
    add("--quiet", action="store_true", help=SUPPRESS)  # no progress and no summary
    add(
        "--debug",
        action="store_true",
        help="print the traceback of an error, and the seconds that workers spent per step",
    )
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
        "--invalid",
        choices=CHOICES["invalid"],
        default="error",
        help="handling of invalid UTF-8: a bad record, U+FFFD for each invalid sequence, or skip the document "
        "(default: error)",
    )
    add_storage_option(add)
    add("--max-errors", type=integer_or_none, metavar="N", help=SUPPRESS)
    add("--max-record-bytes", type=size, default=MAX_RECORD_BYTES, metavar="SIZE", help=SUPPRESS)
    add("--max-window-bytes", type=size, default=128 << 20, metavar="SIZE", help=SUPPRESS)
    add = parser.add_argument_group("chats and prompts").add_argument
    add(
        "--messages-field",
        metavar="NAME",
        help="field with the messages of a chat; only the assistant's are trained on",
    )
    add(
        "--chat-template",
        metavar="FILE",
        help="Jinja template of chats (default: the tokenizer's own)",
    )
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
    add = parser.add_argument_group("validation").add_argument
    add(
        "--validation-fraction",
        type=fraction,
        metavar="F",
        help=f"fraction of the documents, chosen by a hash of their text (default: {DEFAULT_VALIDATION_FRACTION})",
    )
    add("--validation-docs", type=integer, metavar="N", help="number of documents, chosen by the same hash")
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
    add("--compression", choices=COMPRESSIONS, default="zstd", help=SUPPRESS)
    add("--chunk-tokens", type=size, metavar="SIZE", help=SUPPRESS)
    add("--source-places", choices=CHOICES["source_places"], default="auto", help=SUPPRESS)
    add = parser.add_argument_group("workers").add_argument
    add_engine(add)
    add("--text-chunk-bytes", type=size, metavar="SIZE", help=SUPPRESS)
    return parser


def parse_arguments(
    arguments: Sequence[str], prog: str = "python -m convert"
) -> tuple[ConvertOptions, argparse.Namespace]:
    """The options, and the parsed arguments, which have append_to, quiet and debug too."""
    parser = build_parser(prog)
    parsed = parser.parse_args(arguments)
    storage_options = dict(parsed.storage_option)
    if parsed.append_to:
        parser.set_defaults(**_defaults_of(parsed, storage_options))
        parsed = parser.parse_args(arguments)
    _check_required(parser, parsed)
    named = {field.name for field in fields(ConvertOptions)}
    given = {name: value for name, value in vars(parsed).items() if name in named}
    for name in ("prepend_token", "append_token"):
        given[name] = None if given[name] == "none" else given[name]
    given |= {
        "output": parsed.append_to or parsed.output,
        "executor": executor_of(parsed.executor, parsed.scheduler, parsed.address) or EXECUTORS[0],
        "progress": "none" if parsed.quiet else parsed.progress,
        "storage_options": storage_options,
        "stall_seconds": parsed.stall_timeout,
    }
    return ConvertOptions(**given), parsed


def _defaults_of(parsed: argparse.Namespace, storage_options: dict[str, str]) -> dict[str, object]:
    """Those of a dataset to which is appended."""
    from convert.driver.append import inherited

    defaults = inherited(parsed.append_to, storage_options)
    if parsed.validation or parsed.validation_docs is not None:
        defaults.pop("validation_fraction", None)
    if parsed.prompt_field or parsed.completion_field or parsed.messages_field:
        defaults.pop("text_field", None)
    else:
        defaults.pop("chat_date", None)
    if parsed.template or parsed.append_token is not None or parsed.prepend_token is not None:
        own = ("prepend_token", "append_token") if parsed.template else ("template",)
        defaults = {name: value for name, value in defaults.items() if name not in own}
    if "separator" in defaults:  # which a dataset that was imported or retokenized does not have
        defaults["separator"] = defaults["separator"].replace("\\", "\\\\")
    return defaults


def _check_required(parser: Parser, parsed: argparse.Namespace) -> None:
    if parsed.append_to and parsed.output:
        parser.error(conflict("--append-to", "--output"))
    missing = [
        flag
        for flag, value in (
            ("--tokenizer", parsed.tokenizer),
            ("--output", parsed.append_to or parsed.output),
        )
        if value is None
    ]
    if missing:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
