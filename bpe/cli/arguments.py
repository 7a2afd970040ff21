"""The command line of `python -m bpe`. Imports neither NumPy nor the core, so that --help is fast."""

from __future__ import annotations

import argparse

from bpe.cli.counting_arguments import add_count, add_train
from bpe.cli.shared_arguments import (
    TOKENIZER_HELP,
    add_counts,
    add_inputs,
    add_json,
    add_output,
    add_rank_file_options,
    add_records,
    add_tokenizer,
)
from tokenmill.cli.parser import Parser
from tokenmill.cli.shared_arguments import add_debug
from tokenmill.cli.words import size


def build_parser(prog: str = "python -m bpe") -> Parser:
    """Return the parser of all commands. prog: the name of the program."""
    parser = Parser(
        prog=prog,
        description="Train and use byte-level BPE tokenizers.",
        examples=(
            "train corpus.txt --vocab-size 32k --special-token '<|endoftext|>' --output tokenizer.json",
            "encode --tokenizer tokenizer.json corpus.txt --output ids.npy",
            "report tokenizer.json held-out.txt",
        ),
        epilog="Run '%(prog)s COMMAND --help' for the options of a command.",
    )
    commands = parser.add_subparsers(dest="command", required=True, title="commands", metavar="COMMAND")
    for add in (add_train, add_count, _report, _encode, _decode, _info):
        add_debug(add(commands).add_argument)
    return parser


def _report(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    report = commands.add_parser(
        "report",
        help="measure a tokenizer on text",
        usage="%(prog)s TOKENIZER [TEXT...] [options]",
        description="Measure a tokenizer on held-out text, as text, JSON or an HTML page. The report shows bytes per\n"
        "token for each vocabulary size, scripts, unusual entries, and entries that text never produces.",
        examples=(
            "tokenizer.json held-out.txt",
            "tokenizer.json held-out.txt --output report.html",
            "tokenizer.json --counts corpus.counts --json",
        ),
    )
    report.add_argument("tokenizer", metavar="TOKENIZER", help=TOKENIZER_HELP)
    add_inputs(report, "TEXT")
    add_output(report, "file to write: .json, .html, or plain text")
    add_counts(report, "counts files to measure on instead of text")
    add_json(report)
    report.add_argument(
        "--threads",
        type=size,
        metavar="N",
        help="number of counting threads (default: number of usable CPUs)",
    )
    add_records(report)
    add_rank_file_options(report)
    return report


def _encode(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    encode = commands.add_parser(
        "encode",
        help="encode text to token IDs",
        usage="%(prog)s [INPUT] --tokenizer PATH [options]",
        description="Encode a text of any size, or the documents of one file of records, to token IDs.",
        examples=(
            "--tokenizer tokenizer.json corpus.txt --output ids.npy",
            "echo 'Hello' | %(prog)s --tokenizer tokenizer.json",
        ),
    )
    encode.add_argument(
        "input", nargs="?", default="-", metavar="INPUT", help="file of text or records (default: -, stdin)"
    )
    add_tokenizer(encode)
    add_output(encode, "file to write: .npy, .bin (uint32), or text")
    encode.add_argument(
        "--format", choices=["text", "npy", "bin"], help="output format (default: by file extension)"
    )
    encode.add_argument(
        "--plain", action="store_true", help="encode special tokens in the text as ordinary text"
    )
    encode.add_argument(
        "--prepend-token", metavar="TOKEN", help="token to add before each document, by text or ID"
    )
    encode.add_argument(
        "--append-token", metavar="TOKEN", help="token to add after each document, by text or ID"
    )
    add_records(encode)
    add_rank_file_options(encode)
    return encode


def _decode(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    decode = commands.add_parser(
        "decode",
        help="decode token IDs to text",
        usage="%(prog)s [INPUT] --tokenizer PATH [options]",
        description="Decode token IDs to text.",
        examples=(
            "--tokenizer tokenizer.json ids.npy",
            "echo '15496 995' | %(prog)s --tokenizer tokenizer.json",
        ),
    )
    decode.add_argument(
        "input", nargs="?", default="-", metavar="INPUT", help="file that `encode` wrote (default: -, stdin)"
    )
    add_tokenizer(decode)
    add_output(decode, "file to write")
    decode.add_argument(
        "--format", choices=["text", "npy", "bin"], help="input format (default: by file extension)"
    )
    add_rank_file_options(decode)
    return decode


def _info(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    info = commands.add_parser(
        "info",
        help="describe a tokenizer or a counts file",
        usage="%(prog)s TOKENIZER [options]",
        description="Describe a tokenizer (entries, pattern, special tokens, fingerprint) or a counts file.",
        examples=("tokenizer.json", "corpus.counts --json", "cl100k.tiktoken --pattern cl100k"),
    )
    info.add_argument("tokenizer", metavar="TOKENIZER", help=f"{TOKENIZER_HELP}; or a counts file")
    add_json(info)
    add_rank_file_options(info)
    return info
