"""python -m convert.retokenize owt.zarr --tokenizer other.json --output other.zarr

stdout: what came of it; stderr: one line if something is wrong. Exit codes: convert/errors.py.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from convert.errors import printable
from flat_tokens.storage.layout import ArrayLayout
from tokenmill.cli.failures import ended_by
from tokenmill.cli.parser import Parser
from tokenmill.cli.shared_arguments import add_debug, add_layout, add_storage_option
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
        return ended_by(error, debug, with_less_memory="Lower --threads.")


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
        empty = f", {found.empty_documents:,} empty documents skipped" if found.empty_documents else ""
        print(f"{split}: {found.record.token_count:,} tokens in {found.record.seq_count:,} documents{empty}")
    return 0


def build_parser(prog: str = "python -m convert.retokenize") -> Parser:
    """The parser. prog: how the program was called."""
    parser = Parser(
        prog=prog,
        usage="%(prog)s DATASET --tokenizer PATH --output PATH [options]",
        description="Encode the documents of a dataset with another tokenizer. Splits and order stay the same.\n"
        "Nothing is written if the text of a document does not encode to its old IDs again.",
        examples=(
            "owt.zarr --tokenizer o200k.json --output owt-o200k.zarr",
            "owt.zarr --tokenizer llama.json --append-token '</s>' --output llama.zarr",
            "old.zarr --from-tokenizer gpt2.json --tokenizer new.json --output new.zarr",
        ),
    )
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="dataset folder or URL")
    add(
        "--tokenizer",
        required=True,
        metavar="PATH",
        help="new tokenizer: tokenizer.json, its URL, a folder, or org/model[@revision] on the Hugging Face Hub",
    )
    add("-o", "--output", required=True, type=path_word, metavar="PATH", help="dataset folder to write")
    add("--from-tokenizer", metavar="PATH", help="old tokenizer (default: the dataset's own)")
    add(
        "--append-token",
        metavar="TOKEN",
        help="token to add after each document, by text or ID, or none (default: as in DATASET, by text)",
    )
    add(
        "--prepend-token",
        metavar="TOKEN",
        help="token to add before each document, by text or ID, or none (default: as in DATASET, by text)",
    )
    add(
        "--threads",
        type=whole(MOST_THREADS),
        default=os.cpu_count() or 1,
        metavar="N",
        help="number of threads (default: number of CPUs)",
    )
    add_layout(add)
    add("--overwrite", action="store_true", help="replace an existing dataset")
    add_storage_option(add)
    add_debug(add)
    return parser


if __name__ == "__main__":
    sys.exit(main())
