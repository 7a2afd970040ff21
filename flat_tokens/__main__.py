"""python -m flat_tokens info | verify | head | report | export | import | compact: what a dataset is, whether it is
sound, how it reads, and the way to and from other tools.

stdout holds the answer, stderr errors and progress. Exit codes: 0, 2 usage or no such path, 3 no dataset or a
damaged one, 4 the machine or the store (I/O, permission), 5 worker or memory lost, 6 refused (a file is in the way),
130 interrupted; 141 if the reader of stdout went away, without a word.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from flat_tokens import commands
from flat_tokens.errors import ArgumentError, printable
from flat_tokens.exchange import command as exchange
from flat_tokens.format import SPLITS
from flat_tokens.storage.places import Place, StorePath, locate
from tokenmill.cli.failures import ended_by, reader_gone
from tokenmill.cli.input_arguments import add_storage_option
from tokenmill.cli.parser import Parser
from tokenmill.cli.standard_streams import prepare_standard_streams
from tokenmill.cli.words import path_word, whole
from tokenmill.stores import is_url

DEFAULT_WORKERS = min(os.cpu_count() or 1, 16)
MAX_WORKERS = 4096
MAX_COUNT = 2**31 - 1  # of sequences or tokens to show or to sample


def main(argv: Sequence[str] | None = None, prog: str = "python -m flat_tokens") -> int:
    """Run the command line; returns the exit code. prog: how the program was called."""
    prepare_standard_streams()
    debug = "--debug" in (sys.argv[1:] if argv is None else argv)
    output = None
    try:
        arguments = build_parser(prog).parse_args(argv)
        output = getattr(arguments, "output", None)
        if "dataset" in arguments:
            arguments.dataset = _located(arguments)
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return reader_gone()
    except SystemExit:
        raise
    except BaseException as error:  # also a panic of an extension module
        return ended_by(error, debug, with_less_memory="use --workers 1", output=output)


def _located(arguments: argparse.Namespace) -> Place:
    """Where the dataset is; ArgumentError if there is nothing, or if the output would change it."""
    dataset = locate("DATASET", arguments.dataset, dict(arguments.storage_option))
    if isinstance(dataset, StorePath):
        return dataset
    if not os.path.lexists(dataset):
        raise ArgumentError(f"{printable(str(dataset))}: does not exist; give a dataset's path")
    if _is_stdout_in(dataset):
        raise ArgumentError(
            f"stdout is a file in {printable(str(dataset))}, which it would change; send it elsewhere"
        )
    return dataset


def _is_stdout_in(dataset: Path) -> bool:
    """Whether the shell led stdout to a regular file below the dataset, where the system says which file that is."""
    try:
        if not stat.S_ISREG(os.fstat(1).st_mode):
            return False
        return dataset.resolve() in Path(os.readlink("/proc/self/fd/1")).parents  # noqa: PTH115
    except OSError:
        return False


def build_parser(prog: str = "python -m flat_tokens") -> Parser:
    """The parser of all commands. prog: how the program was called."""
    about = "Look at a flat-tokens dataset, check it, or make it of and into files of other tools."
    parser = Parser(
        prog=prog,
        description=about,
        epilog="examples:\n"
        "  %(prog)s info owt.zarr\n"
        "  %(prog)s verify owt.zarr && echo sound\n"
        "  %(prog)s head owt.zarr -n 5 --split validation\n"
        "  %(prog)s report owt.zarr -o owt.html\n"
        "  %(prog)s verify s3://bucket/owt.zarr --storage-option region=eu-west-1\n"
        "  %(prog)s export owt.zarr --to megatron --output owt-megatron\n"
        "  %(prog)s import train.bin --from nanogpt --separator-token 50256 -o owt.zarr\n\n"
        "Each command has its own --help. Exit codes: 0 done and sound, 2 arguments or no such path,\n"
        "3 no dataset or a damaged one, 4 the machine or the store (I/O, permission), 5 worker or memory\n"
        "lost, 6 refused (a file is in the way), 130 interrupted.",
    )
    subparsers = parser.add_subparsers(
        required=True, metavar="info | verify | head | report | export | import | compact"
    )
    about = "counts, lengths, sizes, tokenizer, options, sources"
    info = subparsers.add_parser("info", help=about, description=f"Print what a dataset is: {about}.")
    info.add_argument("--json", action="store_true", help="the same as one JSON object")
    info.set_defaults(run=commands.info)
    about = "check every file and every token"
    verify = subparsers.add_parser(
        "verify",
        help=about,
        description="Check every file and every token; exit 0 if all is sound, 3 if not.",
    )
    verify.add_argument(
        "--workers",
        type=whole(MAX_WORKERS),
        default=DEFAULT_WORKERS,
        metavar="N",
        help="processes (default %(default)s: the cores)",
    )
    verify.set_defaults(run=commands.verify)
    about = "the first sequences, as ids and text"
    head = subparsers.add_parser("head", help=about, description=f"Print {about}.")
    head.add_argument(
        "-n",
        "--sequences",
        type=whole(MAX_COUNT),
        default=3,
        metavar="N",
        help="how many sequences (default 3)",
    )
    head.add_argument("--split", choices=SPLITS, default="train", help="whose sequences (default train)")
    head.add_argument(
        "--tokens",
        type=whole(MAX_COUNT),
        default=64,
        metavar="N",
        help="ids shown of each sequence (default 64)",
    )
    head.add_argument(
        "--tokenizer",
        type=path_word,
        metavar="PATH",
        help="tokenizer.json to decode with (default: the dataset's own)",
    )
    head.set_defaults(run=commands.head)
    about = "one HTML page: sizes, lengths, entries, sequences with their tokens coloured"
    report = subparsers.add_parser(
        "report",
        help=about,
        description=f"Write {about}. It holds all it needs; large datasets are sampled, and the page says so.",
    )
    report.add_argument(
        "-o",
        "--output",
        type=path_word,
        metavar="FILE",
        help="where to; - is stdout (default: NAME.report.html in the current folder, for the dataset NAME.zarr)",
    )
    report.add_argument(
        "--overwrite",
        action="store_true",
        help="replace FILE even if it is no earlier report (those are replaced anyway)",
    )
    report.add_argument(
        "-n",
        "--sequences",
        type=whole(MAX_COUNT),
        default=6,
        metavar="N",
        help="sequences shown of each split (default 6)",
    )
    report.add_argument(
        "--tokens",
        type=whole(MAX_COUNT),
        default=400,
        metavar="N",
        help="tokens shown of each of them (default 400)",
    )
    report.add_argument(
        "--sample-tokens",
        type=whole(MAX_COUNT),
        default=2**23,
        metavar="N",
        help="tokens counted of each split, spread evenly (default 8,388,608)",
    )
    report.add_argument(
        "--tokenizer",
        type=path_word,
        metavar="PATH",
        help="tokenizer.json to show text by (default: the dataset's own)",
    )
    report.set_defaults(run=commands.report)
    for command, what in (
        (verify, "the verdict as one JSON object"),
        (head, "one JSON object a sequence and line"),
    ):
        command.add_argument("--json", action="store_true", help=what)
    export, import_ = exchange.add_export(subparsers), exchange.add_import(subparsers)
    compact = exchange.add_compact(subparsers)
    with_versions: list[argparse.ArgumentParser] = [info, head, report, export, compact]
    for reads in with_versions:
        reads.add_argument(
            "--version",
            type=whole(MAX_COUNT, 0),
            metavar="N",
            help="of a dataset to which was appended (default: the newest)",
        )
    for reads in (info, head, export):
        reads.add_argument(
            "--source",
            action="append",
            default=[],
            metavar="NAME",
            help="of this source alone, as info shows it, or of all that a glob such as 'en/*' stands for; as often as "
            "needed",
        )
    for reads in (*with_versions, verify):
        reads.add_argument(
            "dataset",
            type=_dataset,
            metavar="DATASET",
            help="its folder or URL, such as s3://bucket/owt.zarr",
        )
    for reads in (*with_versions, verify, import_):
        add_storage_option(reads.add_argument)
        reads.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _dataset(text: str) -> Path | str:
    return text if is_url(text) else path_word(text)


if __name__ == "__main__":
    sys.exit(main())
