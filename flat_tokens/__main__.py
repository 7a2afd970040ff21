"""python -m flat_tokens info | verify | head | report | export | import | compact: what a dataset is, whether it is
sound, how it reads, and the way to and from other tools.

stdout holds the answer, stderr errors and progress. Exit codes: 0, 2 usage or no such path, 3 no dataset or a
damaged one, 4 the machine or the store (I/O, permission), 5 worker or memory lost, 6 refused (a file is in the way),
130 interrupted; 141 if the reader of stdout went away, without a word.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import stat
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any, NoReturn

from flat_tokens import commands
from flat_tokens.arguments import path_word
from flat_tokens.errors import ArgumentError, FlatTokensError, complain, printable
from flat_tokens.exchange import command as exchange
from flat_tokens.format import SPLITS
from flat_tokens.storage.places import Place, StorePath, locate
from stores import StoreError, is_url

BROKEN_PIPE = 128 + signal.SIGPIPE
DEFAULT_WORKERS = min(os.cpu_count() or 1, 16)
MAX_WORKERS = 4096
MAX_COUNT = 2**31 - 1  # of sequences or tokens to show or to sample
INTERRUPTED = 128 + signal.SIGINT


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    _prepare_standard_streams()
    arguments = _parser().parse_args(argv)
    try:
        if "dataset" in arguments:
            arguments.dataset = _located(arguments)
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # the interpreter flushes once more at its end and would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except (BrokenExecutor, MemoryError) as error:
        if arguments.debug:
            raise
        complain(f"lost a worker or memory ({type(error).__name__}); use --workers 1")
        return 5
    except (FlatTokensError, StoreError, OSError) as error:
        if arguments.debug:
            raise
        complain(_one_line(error))
        return 4 if isinstance(error, OSError) else error.exit_code


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


def _prepare_standard_streams() -> None:
    """LC_ALL=C: what the encoding lacks is escaped. Closed by the shell (`>&-`), where Python has None: a sink."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - open until the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Parser(argparse.ArgumentParser):
    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As ever, but for a value that argparse would make an empty list of."""
        for word in sys.argv[1:] if args is None else args:
            if word.startswith("--") and word.endswith("=--"):
                self.error(f"argument {word[:-3]}: got no value but --")
        return super().parse_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """One line instead of the usage and a line."""
        self.exit(2, f"error: {printable(message, 500)}; see {self.prog} --help\n")


def _one_line(error: FlatTokensError | StoreError | OSError) -> str:
    if not isinstance(error, OSError):
        return str(error)
    where = "" if error.filename is None else f"{printable(str(error.filename))}: "
    return f"{where}{error.strerror or error} (errno {error.errno})"


def _parser() -> argparse.ArgumentParser:
    about = "Look at a flat-tokens dataset, check it, or make it of and into files of other tools."
    parser = _Parser(
        prog="python -m flat_tokens",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  python -m flat_tokens info owt.zarr\n"
        "  python -m flat_tokens verify owt.zarr && echo sound\n"
        "  python -m flat_tokens head owt.zarr -n 5 --split validation\n"
        "  python -m flat_tokens report owt.zarr -o owt.html\n"
        "  python -m flat_tokens verify s3://bucket/owt.zarr --storage-option region=eu-west-1\n"
        "  python -m flat_tokens export owt.zarr --to megatron --output owt-megatron\n"
        "  python -m flat_tokens import train.bin --from nanogpt --separator-token 50256 -o owt.zarr\n\n"
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
        type=_whole(MAX_WORKERS),
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
        type=_whole(MAX_COUNT),
        default=3,
        metavar="N",
        help="how many sequences (default 3)",
    )
    head.add_argument("--split", choices=SPLITS, default="train", help="whose sequences (default train)")
    head.add_argument(
        "--tokens",
        type=_whole(MAX_COUNT),
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
        type=_whole(MAX_COUNT),
        default=6,
        metavar="N",
        help="sequences shown of each split (default 6)",
    )
    report.add_argument(
        "--tokens",
        type=_whole(MAX_COUNT),
        default=400,
        metavar="N",
        help="tokens shown of each of them (default 400)",
    )
    report.add_argument(
        "--sample-tokens",
        type=_whole(MAX_COUNT),
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
            type=_whole(MAX_COUNT, 0),
            metavar="N",
            help="of a dataset to which was appended (default: the newest)",
        )
    for reads in (*with_versions, verify):
        reads.add_argument(
            "dataset",
            type=_dataset,
            metavar="DATASET",
            help="its folder or URL, such as s3://bucket/owt.zarr",
        )
    for reads in (*with_versions, verify, import_):
        reads.add_argument(
            "--storage-option",
            action="append",
            default=[],
            type=_option,
            metavar="NAME=VALUE",
            help="a setting of the store, such as region=eu-west-1; as often as needed",
        )
        reads.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _dataset(text: str) -> Path | str:
    return text if is_url(text) else path_word(text)


def _option(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {printable(text, 40)!r}")
    return name, value


def _whole(most: int, least: int = 1) -> Callable[[str], int]:
    """What reads a whole number from `least` to `most`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = -1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"must be a whole number of at least {least} and at most {most}, got {printable(text, 40)!r}"
            )
        return value

    return read


if __name__ == "__main__":
    sys.exit(main())
