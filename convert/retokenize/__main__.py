"""python -m convert.retokenize owt.zarr --tokenizer other.json --output other.zarr

stdout: what came of it; stderr: one line if something is wrong. Exit codes: convert/errors.py.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from convert.errors import printable
from flat_tokens.storage.layout import COMPRESSIONS, ArrayLayout
from tokenmill.cli.failures import ended_by
from tokenmill.cli.input_arguments import add_storage_option
from tokenmill.cli.parser import Parser
from tokenmill.cli.standard_streams import prepare_standard_streams
from tokenmill.cli.words import path_word, whole
from tokenmill.stores import shown_url

MOST_THREADS = 4096


def main(arguments: Sequence[str] | None = None, prog: str = "python -m convert.retokenize") -> int:
    """Retokenize as the arguments say; the exit code. prog: how the program was called."""
    prepare_standard_streams()
    debug = "--debug" in (sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(build_parser(prog).parse_args(arguments))
    except SystemExit:
        raise
    except BaseException as error:  # also a panic of an extension module
        return ended_by(error, debug, with_less_memory="lower --threads")


def _run(parsed: argparse.Namespace) -> int:
    from convert.retokenize.run import RetokenizeOptions, retokenize

    options = RetokenizeOptions(
        parsed.dataset,
        parsed.tokenizer,
        parsed.output,
        parsed.from_tokenizer,
        parsed.append_token,
        parsed.prepend_token,
        parsed.threads,
        ArrayLayout.create(parsed.zarr_format, compression=parsed.compression),
        parsed.overwrite,
        dict(parsed.storage_option),
    )
    written = retokenize(options)
    print(f"{printable(str(parsed.output))}: verified, from {printable(shown_url(parsed.dataset))}")
    for split, found in written.items():
        empty = f", {found.empty_documents:,} without tokens left out" if found.empty_documents else ""
        print(f"{split}: {found.record.token_count:,} tokens in {found.record.seq_count:,} documents{empty}")
    return 0


def build_parser(prog: str = "python -m convert.retokenize") -> Parser:
    """The parser. prog: how the program was called."""
    parser = Parser(
        prog=prog,
        description="Encode the documents of a dataset by another tokenizer, from its ids alone: the same documents,\n"
        "splits and order. Each document must encode to its ids again, else it is told and nothing is written.",
        epilog="examples:\n"
        "  %(prog)s owt.zarr --tokenizer o200k.json --output owt-o200k.zarr\n"
        "  %(prog)s owt.zarr --tokenizer llama.json --append-token '</s>' --output llama.zarr\n"
        "  %(prog)s old.zarr --from-tokenizer gpt2.json --tokenizer new.json --output new.zarr",
    )
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="its folder or URL")
    add("--tokenizer", required=True, metavar="PATH", help="the new one, as for convert")
    add("--output", "-o", required=True, type=path_word, metavar="PATH", help="the dataset to make, a folder")
    add("--from-tokenizer", metavar="PATH", help="the one that made the ids (default: the dataset's own)")
    add(
        "--append-token",
        metavar="TOKEN",
        help="behind each document: an entry of the new tokenizer by its text or id, or none (default: the one of the "
        "same text, if the dataset has one)",
    )
    add("--prepend-token", metavar="TOKEN", help="likewise in front of each document")
    add(
        "--threads",
        type=whole(MOST_THREADS),
        default=os.cpu_count() or 1,
        metavar="N",
        help="(default %(default)s: the cores)",
    )
    add("--zarr-format", type=int, choices=(2, 3), default=2, help="layout (default 2)")
    add("--compression", choices=COMPRESSIONS, default="zstd", help="(default zstd)")
    add("--overwrite", action="store_true", help="replace an earlier dataset")
    add_storage_option(add)
    add("--debug", action="store_true", help="show the traceback of an error")
    return parser


if __name__ == "__main__":
    sys.exit(main())
