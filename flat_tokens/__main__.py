"""python -m flat_tokens info | verify | head | report | export | import: work with datasets.

stdout has the result, stderr errors and progress. Exit codes: 0 success; 2 usage or a missing path; 3 no dataset, or a
damaged one; 4 the machine or the store (I/O, permission); 5 a lost worker or no memory; 6 a file exists; 130
interrupted; 141 if the reader of stdout has ended.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flat_tokens import commands
from flat_tokens.errors import ArgumentError, printable
from flat_tokens.exchange import command as exchange
from flat_tokens.format import SPLITS
from flat_tokens.storage.places import Place, StorePath, locate
from tokenmill.cli.failures import WRITE_ERRORS, run_command
from tokenmill.cli.parser import Parser
from tokenmill.cli.shared_arguments import add_debug, add_storage_option
from tokenmill.cli.words import path_word, whole
from tokenmill.stores import is_url

DEFAULT_WORKERS = min(os.cpu_count() or 1, 16)
MAX_WORKERS = 4096
COUNT: Any = {"type": whole(2**31 - 1), "metavar": "N"}  # of sequences or tokens to show or to sample


def main(argv: Sequence[str] | None = None, prog: str = "python -m flat_tokens") -> int:
    """Run the command line and return the exit code. prog: the name of the program."""

    def run() -> int:
        arguments = build_parser(prog).parse_args(argv)
        if "dataset" in arguments:
            arguments.dataset = _located(arguments)
        try:
            code: int = arguments.run(arguments)
        except OSError as error:
            if error.errno in WRITE_ERRORS and error.filename is None:
                error.filename = getattr(arguments, "output", None)
            raise
        return code

    return run_command(run, argv, "Use --workers 1.")


def _located(arguments: argparse.Namespace) -> Place:
    """Return the location of the dataset. Raise ArgumentError if it does not exist, or if stdout would change it."""
    dataset = locate("DATASET", arguments.dataset, dict(arguments.storage_option))
    if isinstance(dataset, StorePath):
        return dataset
    if not os.path.lexists(dataset):
        raise ArgumentError(f"{printable(str(dataset))}: does not exist")
    if _is_stdout_in(dataset):
        raise ArgumentError(
            f"stdout: must not be a file in the dataset {printable(str(dataset))}. Redirect it elsewhere."
        )
    return dataset


def _is_stdout_in(dataset: Path) -> bool:
    """Return whether stdout is a regular file in the dataset, as far as the system knows its path."""
    try:
        if not stat.S_ISREG(os.fstat(1).st_mode):
            return False
        return dataset.resolve() in Path(os.readlink("/proc/self/fd/1")).parents  # noqa: PTH115
    except OSError:
        return False


def build_parser(prog: str = "python -m flat_tokens") -> Parser:
    """Return the parser of all commands. prog: the name of the program."""
    parser = Parser(
        prog=prog,
        description="Inspect, verify, export and import datasets of token IDs.",
        examples=(
            "info owt.zarr",
            "verify s3://bucket/owt.zarr --storage-option region=eu-west-1",
            "export owt.zarr --to megatron --output owt-megatron",
        ),
        epilog="Run '%(prog)s COMMAND --help' for the options of a command.",
    )
    subparsers = parser.add_subparsers(required=True, title="commands", metavar="COMMAND")
    for command in (*_add_own(subparsers), exchange.add_export(subparsers)):
        if command.get_default("run") not in (commands.verify, commands.report):
            about = "only sequences of this source, or of all that match a glob such as 'en/*'; repeatable"
            command.add_argument("--source", action="append", default=[], metavar="NAME", help=about)
        about = "dataset folder or URL, such as s3://bucket/owt.zarr"
        command.add_argument("dataset", type=_dataset, metavar="DATASET", help=about)
        add_storage_option(command.add_argument)
        add_debug(command.add_argument)
    add_debug(exchange.add_import(subparsers).add_argument)
    return parser


def _dataset(text: str) -> str | Path:
    return text if is_url(text) else path_word(text)


def _add_own(subparsers: Any) -> list[Parser]:
    """Add the parsers of info, verify, head and report, without DATASET."""
    parsers: list[Parser] = []

    def command(run: Callable[..., int], about: str, description: str, *examples: str) -> Any:
        usage = "%(prog)s DATASET [options]"
        texts: Any = {"help": about, "usage": usage, "description": description, "examples": examples}
        parsers.append(subparsers.add_parser(run.__name__, **texts))
        parsers[-1].set_defaults(run=run)
        return parsers[-1].add_argument

    add = command(
        commands.info,
        "describe a dataset",
        "Describe a dataset: token counts, sequence lengths, storage, tokenizer, options, and sources.",
        *("owt.zarr", "owt.zarr --json", "owt.zarr --source 'en/*'"),
    )
    add("--json", action="store_true", help="print JSON")

    add = command(
        commands.verify,
        "check every file and token of a dataset",
        "Check every file and every token of a dataset. The exit code is 3 if the dataset is damaged.",
        *("owt.zarr && echo sound", "s3://bucket/owt.zarr --storage-option region=eu-west-1"),
    )
    add("--json", action="store_true", help="print JSON")
    workers = "number of worker processes (default: number of CPUs, at most 16)"
    add("--workers", default=DEFAULT_WORKERS, type=whole(MAX_WORKERS), metavar="N", help=workers)

    add = command(
        commands.head,
        "print the first sequences of a dataset",
        "Print the first sequences of a dataset as token IDs and text.",
        *("owt.zarr", "owt.zarr -n 5 --split validation", "owt.zarr --source 'en/*' --json"),
    )
    add("--json", action="store_true", help="print one JSON object per sequence")
    add("-n", "--sequences", default=3, help="number of sequences (default: %(default)s)", **COUNT)
    add("--tokens", default=64, help="number of IDs per sequence (default: %(default)s)", **COUNT)
    add("--split", choices=SPLITS, default="train", help="split to read (default: train)")
    exchange.add_tokenizer(add, "tokenizer.json to decode with (default: the dataset's own)")

    add = command(
        commands.report,
        "write an HTML report on a dataset",
        "Write a standalone HTML page with sizes, sequence lengths, token frequencies, and sequences with\n"
        "colored tokens. Large datasets are sampled.",
        *("owt.zarr", "owt.zarr --output owt.html -n 20"),
    )
    page = "page to write, or - for stdout (default: NAME.report.html in the current folder)"
    add("-o", "--output", type=path_word, metavar="FILE", help=page)
    add("--overwrite", action="store_true", help="replace FILE even if it is not an earlier report")
    add("-n", "--sequences", default=6, help="sequences to show per split (default: %(default)s)", **COUNT)
    add("--tokens", default=400, help="tokens to show per sequence (default: %(default)s)", **COUNT)
    add("--sample-tokens", default=2**23, help="tokens to sample per split (default: %(default)s)", **COUNT)
    exchange.add_tokenizer(add, "tokenizer.json to decode with (default: the dataset's own)")
    return parsers


if __name__ == "__main__":
    sys.exit(main())
