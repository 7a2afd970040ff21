"""The command line of `python -m bpe`: every command with its options; neither numpy nor the core is imported here."""

from __future__ import annotations

import argparse

from bpe.cli.counting_arguments import add_count, add_train
from bpe.cli.shared_arguments import add_rank_file_options, add_records, add_special_token, add_tokenizer
from tokenmill.cli.parser import Parser
from tokenmill.cli.words import size


def build_parser(prog: str = "python -m bpe") -> Parser:
    """The parser of all commands. prog: how the program was called."""
    parser = Parser(
        prog=prog,
        description="Train and use byte-level BPE tokenizers.",
        epilog="examples:\n"
        "  %(prog)s train corpus.txt --vocab-size 32k --special-token '<|endoftext|>' --output tokenizer.json\n"
        "  %(prog)s count part1/ --special-token '<|endoftext|>' --output part1.counts\n"
        "  %(prog)s train --counts part1.counts part2.counts --vocab-size 8k,16k,32k --output "
        "'tok-{vocab_size}.json'\n"
        "  echo 'Hello' | %(prog)s encode --tokenizer tokenizer.json | %(prog)s decode "
        "--tokenizer tokenizer.json\n"
        "  %(prog)s encode --tokenizer tokenizer.json corpus.txt --output ids.npy\n"
        "  %(prog)s report tokenizer.json held-out.txt\n"
        "  %(prog)s compare mine.json gpt2.tokenizer.json --output compare.html\n"
        "  %(prog)s info tokenizer.json\n\n"
        "Each command has its own --help. Sizes and numbers may be written as 32k, 100MB (powers of 1000), 64MiB or\n"
        "1e9. Exit codes: 0 done, 2 arguments or tokenizer, 3 text, ids or counts, 4 the machine (space, permission,\n"
        "I/O), 5 out of memory, 6 refused (an input changed), 130 interrupted.",
    )
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="train | count | report | compare | encode | decode | info"
    )
    added = [add_train, add_count, _report, _compare, _encode, _decode, _info]
    for add in added:
        add(commands).add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _report(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    report = commands.add_parser(
        "report",
        help="how well a tokenizer does on a text",
        description="Say how well a tokenizer does on held-out text: bytes a token at each size of the vocabulary, "
        "scripts, the longest and the strangest entries, entries that are never produced.",
    )
    report.add_argument(
        "tokenizer",
        help="tokenizer.json, vocab.json, a folder of them, *.tiktoken with --pattern, or org/model of the hub",
    )
    report.add_argument(
        "inputs",
        nargs="*",
        metavar="TEXT",
        help="files of text or records (JSON Lines, tables), folders or globs, as `convert` reads them; -: stdin",
    )
    report.add_argument(
        "--counts",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="counts files in place of texts",
    )
    add_rank_file_options(report)
    report.add_argument("--json", action="store_true", help="as JSON")
    report.add_argument(
        "--output", "-o", default="-", metavar="FILE", help="a file, .json, .html or text; default stdout"
    )
    report.add_argument(
        "--threads", type=size, metavar="N", help="threads to count with (default: all cores)"
    )
    add_records(report)
    return report


def _compare(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    compare = commands.add_parser(
        "compare",
        help="a page in which one types text and sees it cut by two tokenizers",
        description="Write a page in which one types text and sees it cut by two tokenizers side by side, with ids and "
        "bytes a token; the ids are those of `encode`. One HTML file that needs no server and no network.",
        epilog="examples:\n"
        "  %(prog)s mine.json theirs/tokenizer.json --output compare.html\n"
        "  %(prog)s mine.json cl100k.tiktoken --pattern cl100k --output compare.html --text 'Hello, world'\n"
        "  %(prog)s cl100k.tiktoken o200k.tiktoken --pattern cl100k --pattern o200k --output compare.html",
    )
    for name, which in (("first", "the one on the left"), ("second", "the one on the right")):
        compare.add_argument(
            name,
            metavar=name.upper(),
            help=f"{which}: tokenizer.json, vocab.json, a folder of them, *.tiktoken with --pattern, or org/model of "
            "the hub",
        )
    compare.add_argument(
        "--output",
        "-o",
        required=True,
        metavar="FILE",
        help="the page to write, one that exists is replaced; -: stdout",
    )
    compare.add_argument(
        "--text", help="what the page begins with (default: a few lines of several languages)"
    )
    compare.add_argument(
        "--pattern",
        action="append",
        help="for *.tiktoken and vocab.json: the pattern's name or expression; once for both, or once for each",
    )
    add_special_token(compare)
    return compare


def _encode(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    encode = commands.add_parser(
        "encode", help="text to ids", description="Encode a text of any size to ids."
    )
    add_tokenizer(encode)
    encode.add_argument(
        "input",
        nargs="?",
        default="-",
        metavar="INPUT",
        help="a file of text or records; - or nothing: stdin",
    )
    encode.add_argument(
        "--output",
        "-o",
        default="-",
        metavar="FILE",
        help="a file: .npy, .bin (uint32) or text; -: stdout (default)",
    )
    encode.add_argument("--format", choices=["text", "npy", "bin"], help="default: by the output's ending")
    encode.add_argument("--plain", action="store_true", help="take special tokens in the text as plain text")
    encode.add_argument(
        "--prepend-token", metavar="TOKEN", help="put an entry, by its text or id, in front of the ids"
    )
    encode.add_argument(
        "--append-token", metavar="TOKEN", help="put an entry behind the ids, if there are any"
    )
    add_records(encode)
    return encode


def _decode(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    decode = commands.add_parser(
        "decode", help="ids to text", description="Decode ids of any number to text."
    )
    add_tokenizer(decode)
    decode.add_argument(
        "input", nargs="?", default="-", metavar="INPUT", help="a file as encode writes; - or nothing: stdin"
    )
    decode.add_argument("--output", "-o", default="-", metavar="FILE", help="a file; -: stdout (default)")
    decode.add_argument("--format", choices=["text", "npy", "bin"], help="default: by the input's ending")
    return decode


def _info(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    info = commands.add_parser(
        "info",
        help="what a tokenizer or a counts file is",
        description="Print what a tokenizer or a counts file is.",
    )
    info.add_argument(
        "tokenizer",
        help="tokenizer.json, vocab.json, a folder of them, *.tiktoken with --pattern, org/model of the hub, or a "
        "counts file",
    )
    add_rank_file_options(info)
    info.add_argument("--json", action="store_true", help="as JSON")
    return info
