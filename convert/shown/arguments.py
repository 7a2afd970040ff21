"""The command line of `python -m convert` as `ConvertOptions`; imports nothing heavy, so --help is instant."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields

from convert.options import CHOICES, DEFAULT_VALIDATION_FRACTION, ConvertOptions
from tokenmill.cli.input_arguments import add_exclude, add_input_arguments
from tokenmill.cli.parser import Parser
from tokenmill.cli.words import (
    fraction,
    integer,
    integer_or_none,
    seconds,
    size,
    unescaped,
)
from tokenmill.engines.choose import add_engine_arguments
from tokenmill.inputs.rules import DEFAULT_SEPARATOR, MAX_RECORD_BYTES


def build_parser(prog: str = "python -m convert") -> Parser:
    """The parser. prog: how the program was called."""
    parser = Parser(
        prog=prog,
        usage="%(prog)s INPUT... --tokenizer PATH --output PATH [options]",
        description="Encode text, JSON Lines or Parquet into a verified flat-tokens dataset.",
        epilog="examples:\n"
        "  %(prog)s corpus.txt --tokenizer tokenizer.json --output corpus.zarr\n"
        "  %(prog)s texts/ 'more/*.txt' --tokenizer tokenizer.json --output all.zarr --workers 8\n"
        "  %(prog)s train.txt --validation valid.txt --tokenizer tokenizer.json --output split.zarr\n"
        "  %(prog)s 'dump/*.jsonl.zst' --text-field /doc/body --on-error quarantine --tokenizer t.json "
        "--output d.zarr\n"
        "  zcat corpus.gz | %(prog)s - --tokenizer tokenizer.json --output corpus.zarr\n\n"
        "What a file is, its name says: .jsonl, .ndjson, .json, .parquet, else text; .gz, .zst, .bz2, .xz behind it.\n"
        "Sizes: 64k and 100MB are powers of 1000, 64Ki and 1MiB of 1024.\n"
        "An interrupted run goes on when the same command is given again.\n"
        "Exit codes: 0 complete and verified, 2 arguments, 3 input data, 4 environment, 5 worker lost or memory,\n"
        "6 refused (the output exists, another run is at work), 130 interrupted, 143 terminated, 129 hung up.",
    )
    add = parser.add_argument
    add(
        "inputs",
        nargs="*",
        metavar="INPUT",
        help="files, folders (all files in them), quoted globs, URLs (s3, gs, az, https, hf), or - for standard input",
    )
    add(
        "--tokenizer",
        metavar="PATH",
        help="tokenizer.json or its URL, a folder with vocab.json and merges.txt, or org/model[@revision] of "
        "the Hugging Face Hub",
    )
    add("--output", "-o", metavar="PATH", help="the dataset to make, such as owt.zarr")
    add(
        "--append-to",
        metavar="PATH",
        help="instead: a dataset that gets a new version with these documents behind its own; its tokenizer and "
        "options are the defaults",
    )
    add = parser.add_argument_group("reading").add_argument
    add_input_arguments(add)
    add_exclude(add)
    add(
        "--prompt-field",
        metavar="NAME",
        help="of records whose completion alone is to be learned: a text, or a list of messages",
    )
    add("--completion-field", metavar="NAME", help="what follows the prompt, and is to be learned")
    add(
        "--messages-field",
        metavar="NAME",
        help="of chats, usually messages: what the assistant says is to be learned",
    )
    add(
        "--chat-template",
        metavar="FILE",
        help="the Jinja template of chats (default: the tokenizer's, chat_template.jinja or tokenizer_config.json)",
    )
    add(
        "--chat-date",
        metavar="YYYY-MM-DD",
        help="the date for chat templates that write the current date",
    )
    add(
        "--separator",
        type=unescaped,
        default=DEFAULT_SEPARATOR,
        metavar="TEXT",
        help=r"between documents (default %(default)s); \n works",
    )
    add(
        "--append-token",
        metavar="TOKEN",
        help="put an entry of the tokenizer, by its text or id, behind each document, such as '<|endoftext|>' "
        "(default: nothing; with --append-to that of the dataset, unless it is none)",
    )
    add("--prepend-token", metavar="TOKEN", help="put one in front of each document")
    add(
        "--template",
        action="store_true",
        help="add the begin and end tokens that the tokenizer's own files put around a text",
    )
    add(
        "--special-in-text",
        choices=CHOICES["special_in_text"],
        help="the text of a special token within a document: its id (default for text), ordinary text (default for "
        "JSON and Parquet; counted), or a bad record",
    )
    add(
        "--max-record-bytes",
        type=size,
        default=MAX_RECORD_BYTES,
        metavar="SIZE",
        help="the longest JSON line (default 4Gi)",
    )
    add(
        "--max-window-bytes",
        type=size,
        default=128 << 20,
        metavar="SIZE",
        help="memory that a zst or xz file may ask for (default 128Mi)",
    )
    add = parser.add_argument_group("bad records").add_argument
    add(
        "--on-error",
        choices=CHOICES["on_error"],
        default="fail",
        help="a record without a text: stop (default), leave it out and count it, or keep it in quarantine.jsonl",
    )
    add(
        "--max-errors",
        type=integer_or_none,
        metavar="N",
        help="bad records to leave out before it stops all the same (default: any number)",
    )
    add(
        "--invalid",
        choices=CHOICES["invalid"],
        default="error",
        help="bytes that are not UTF-8: a bad record (default), or U+FFFD, or no such document; counted",
    )
    add = parser.add_argument_group("validation").add_argument
    add(
        "--validation-fraction",
        type=fraction,
        metavar="F",
        help=f"share of documents held out by a hash of their text (default {DEFAULT_VALIDATION_FRACTION})",
    )
    add(
        "--validation-docs",
        type=integer,
        metavar="N",
        help="hold out N documents instead: those with the smallest hashes of all, exact copies together",
    )
    add("--validation", nargs="+", action="extend", default=[], metavar="FILE", help="files held out instead")
    add(
        "--seed",
        type=integer,
        default=0,
        metavar="N",
        help="of the hash that holds documents out (default 0)",
    )
    add = parser.add_argument_group("the dataset").add_argument
    add(
        "--zarr-format",
        type=integer,
        choices=CHOICES["zarr_format"],
        help="3: sharded with crc32c (default 2; 3 on a store)",
    )
    add(
        "--compression",
        choices=CHOICES["compression"],
        default="zstd",
        help="of the arrays (default %(default)s); in zarr format 2 only zstd has a checksum that reading compares",
    )
    add("--chunk-tokens", type=size, metavar="SIZE", help="tokens a zarr chunk (default: the format's)")
    add(
        "--source-places",
        choices=CHOICES["source_places"],
        default="auto",
        help="keep where each sequence begins in its source (default auto: where documents are not short, which is at "
        "most 2 %% of the dataset)",
    )
    add(
        "--overwrite",
        action="store_true",
        help="replace a dataset of ours, or an unfinished run with another plan",
    )
    add = parser.add_argument_group("the run").add_argument
    add("--dry-run", action="store_true", help="say what would be read, made and needed; write nothing")
    add_engine_arguments(add, integer, seconds)
    add(
        "--scratch",
        metavar="DIR",
        help="for temporary shards, seen by all workers (default: beside the output)",
    )
    add(
        "--text-chunk-bytes",
        type=size,
        metavar="SIZE",
        help="text a task (default: from the corpus, 4Mi to 32Mi)",
    )
    add = parser.add_argument_group("what is shown").add_argument
    add(
        "--progress",
        choices=CHOICES["progress"],
        default="auto",
        help="on stderr; auto (default): a bar on a terminal, else lines",
    )
    add("--quiet", action="store_true", help="nothing but errors")
    add("--timings", action="store_true", help="say where the workers' time went")
    add("--debug", action="store_true", help="show the traceback of an error")
    return parser


def parse_arguments(
    arguments: Sequence[str], prog: str = "python -m convert"
) -> tuple[ConvertOptions, argparse.Namespace]:
    """The options, and the parsed arguments, which have append_to, quiet, timings and debug too."""
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
        parser.error("--append-to and --output exclude each other; give one of them")
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
