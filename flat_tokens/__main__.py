"""python -m flat_tokens info | verify | head | report DATASET: what it is, whether it is sound, how it reads.

stdout holds the answer, stderr errors and progress. Exit codes: 0, 2 usage or no such path, 3 no dataset or a
damaged one, 4 the machine (I/O, permission), 5 worker or memory lost, 6 refused (a file is in the way), 130
interrupted; 141 if the reader of stdout went away, without a word.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NoReturn

from flat_tokens import entries, reader, statistics
from flat_tokens.errors import ArgumentError, FlatTokensError, printable
from flat_tokens.format import SPLITS
from flat_tokens.verify import VerifyReport, verify_dataset

BROKEN_PIPE = 128 + signal.SIGPIPE
DEFAULT_WORKERS = min(os.cpu_count() or 1, 16)
INTERRUPTED = 128 + signal.SIGINT


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    _prepare_standard_streams()
    arguments = _parser().parse_args(argv)
    try:
        if not os.path.lexists(arguments.dataset):
            raise ArgumentError(f"{printable(str(arguments.dataset))}: does not exist; give a dataset's path")
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # the interpreter flushes once more at its end and would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (BrokenExecutor, MemoryError) as error:
        if arguments.debug:
            raise
        print(f"error: lost a worker or memory ({type(error).__name__}); use --workers 1", file=sys.stderr)
        return 5
    except (FlatTokensError, OSError) as error:
        if arguments.debug:
            raise
        print(f"error: {_one_line(error)}", file=sys.stderr)
        return error.exit_code if isinstance(error, FlatTokensError) else 4


def _prepare_standard_streams() -> None:
    """LC_ALL=C: what the encoding lacks is escaped. Closed by the shell (`>&-`), where Python has None: a sink."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - open until the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line instead of the usage and a line."""
        self.exit(2, f"error: {message}; see {self.prog} --help\n")


def _one_line(error: FlatTokensError | OSError) -> str:
    if isinstance(error, FlatTokensError):
        return str(error)
    where = "" if error.filename is None else f"{printable(str(error.filename))}: "
    return f"{where}{error.strerror or error} (errno {error.errno})"


def _parser() -> argparse.ArgumentParser:
    about = "Look at a flat-tokens dataset, or check it."
    parser = _Parser(
        prog="python -m flat_tokens",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  python -m flat_tokens info owt.zarr\n"
        "  python -m flat_tokens verify owt.zarr && echo sound\n"
        "  python -m flat_tokens head owt.zarr -n 5 --split validation\n"
        "  python -m flat_tokens report owt.zarr -o owt.html\n\n"
        "Each command has its own --help. Exit codes: 0 done and sound, 2 arguments or no such path,\n"
        "3 no dataset or a damaged one, 4 the machine (I/O, permission), 5 worker or memory lost, 6 refused\n"
        "(a file is in the way), 130 interrupted.",
    )
    commands = parser.add_subparsers(required=True, metavar="info | verify | head | report")
    about = "counts, lengths, sizes, tokenizer, options, sources"
    info = commands.add_parser("info", help=about, description=f"Print what a dataset is: {about}.")
    info.add_argument("--json", action="store_true", help="the same as one JSON object")
    info.set_defaults(run=_info)
    about = "check every file and every token"
    verify = commands.add_parser(
        "verify",
        help=about,
        description="Check every file and every token; exit 0 if all is sound, 3 if not.",
    )
    verify.add_argument(
        "--workers",
        type=_positive,
        default=DEFAULT_WORKERS,
        metavar="N",
        help="processes (default %(default)s: the cores)",
    )
    verify.set_defaults(run=_verify)
    about = "the first sequences, as ids and text"
    head = commands.add_parser("head", help=about, description=f"Print {about}.")
    head.add_argument(
        "-n", "--sequences", type=_positive, default=3, metavar="N", help="how many sequences (default 3)"
    )
    head.add_argument("--split", choices=SPLITS, default="train", help="whose sequences (default train)")
    head.add_argument(
        "--tokens", type=_positive, default=64, metavar="N", help="ids shown of each sequence (default 64)"
    )
    head.add_argument(
        "--tokenizer",
        type=Path,
        metavar="PATH",
        help="tokenizer.json to decode with (default: the dataset's own)",
    )
    head.set_defaults(run=_head)
    about = "one HTML page: sizes, lengths, entries, sequences with their tokens coloured"
    report = commands.add_parser(
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
        type=_positive,
        default=6,
        metavar="N",
        help="sequences shown of each split (default 6)",
    )
    report.add_argument(
        "--tokens",
        type=_positive,
        default=400,
        metavar="N",
        help="tokens shown of each of them (default 400)",
    )
    report.add_argument(
        "--sample-tokens",
        type=_positive,
        default=2**23,
        metavar="N",
        help="tokens counted of each split, spread evenly (default 8,388,608)",
    )
    report.add_argument(
        "--tokenizer",
        type=Path,
        metavar="PATH",
        help="tokenizer.json to show text by (default: the dataset's own)",
    )
    report.set_defaults(run=_report)
    for command in (info, verify, head, report):
        command.add_argument("dataset", type=Path, metavar="DATASET", help="its folder, such as owt.zarr")
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value < 2**31:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return value


def _info(arguments: argparse.Namespace) -> int:
    facts = statistics.describe(reader.open(arguments.dataset))
    if arguments.json:
        print(json.dumps(facts))
        return 0
    print(f"{printable(facts['path'])}: flat-tokens, zarr format {facts['zarr_format']}")
    for name, split in facts["splits"].items():
        print(
            f"{name}: {split['token_count']:,} tokens in {split['seq_count']:,} sequences"
            + (f", ids up to {split['max_token_id']:,}" if split["token_count"] else "")
        )
        if split["seq_tokens"]:
            tokens = split["seq_tokens"]
            print(
                f"  tokens a sequence: median {tokens['median']:,.10g}, mean {tokens['mean']:,.10g}, "
                f"{tokens['min']:,} to {tokens['max']:,}"
            )
            print(
                f"  on disk: {split['disk_bytes']:,} bytes, {split['disk_bytes_per_token']:.2f} a token, "
                f"{split['compression']}, {_cuts(split)}"
            )
    tokenizer = facts["tokenizer"]
    shown = f"{tokenizer.get('path')}, sha256 {tokenizer.get('sha256')}" if tokenizer else "not recorded"
    print(f"tokenizer: {printable(shown)}")
    if facts["options"]:
        print(f"options: {', '.join(_fact(name, value) for name, value in facts['options'].items())}")
    if facts["versions"]:
        print(f"made by: {', '.join(_fact(name, value) for name, value in facts['versions'].items())}")
    print(f"sources: {len(facts['sources']) or ('none' if facts['has_manifest'] else 'not recorded')}")
    for source in facts["sources"][:20]:
        print(f"  {_source(source)}")
    if len(facts["sources"]) > 20:
        print(f"  ... and {len(facts['sources']) - 20} more")
    if not facts["has_manifest"]:
        print("manifest: none, so lost files cannot be noticed")
    return 0


def _fact(name: str, value: object) -> str:
    """("seed", 0) -> "seed 0"; ("documents", {"train": 17}) -> "documents (train 17)"."""
    name = printable(name.replace("_", " "))
    if isinstance(value, dict):
        return f"{name} ({', '.join(_fact(str(key), inner) for key, inner in value.items())})"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{name} {value}" if name == "seed" else f"{name} {value:,}"
    shown = (
        value
        if isinstance(value, str)
        else "default"
        if value is None
        else json.dumps(value, ensure_ascii=False)
    )
    return f"{name} {printable(shown)}"


def _source(source: dict[str, Any]) -> str:
    """{"path": "en.txt", "bytes": 9323, "split": "by hash", ...} -> "en.txt: 9,323 bytes, split by hash"; the digest
    is left to --json."""
    facts = [f"{source['bytes']:,} bytes"] if isinstance(source.get("bytes"), int) else []
    facts += [
        _fact(name, value)
        for name, value in source.items()
        if name not in ("path", "bytes", "digest", "digest_of")
    ]
    return f"{printable(str(source.get('path', 'without a name')))}: {', '.join(facts) or 'nothing recorded'}"


def _cuts(split: dict[str, Any]) -> str:
    if split["chunk_tokens"] is None:
        return "zarr chunks unknown"
    shards = f", shards of {split['shard_tokens']:,}" if split["shard_tokens"] else ""
    return f"zarr chunks of {split['chunk_tokens']:,} tokens{shards}"


def _verify(arguments: argparse.Namespace) -> int:
    with _Bar() as bar:
        if arguments.workers == 1:
            report = verify_dataset(arguments.dataset, progress=bar.show)
        else:
            with ProcessPoolExecutor(
                arguments.workers, get_context("forkserver"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
            ) as executor:
                report = verify_dataset(arguments.dataset, executor, bar.show)
    for problem in report.problems:
        print(f"error: {problem}", file=sys.stderr)
    print(_verdict(report))
    return 0 if report.ok else 3


class _Bar:
    """A bar in bytes on stderr if that is a terminal, else nothing; a context, so that it ends with its line."""

    def __init__(self) -> None:
        self._bar: Any = None

    def show(self, done_bytes: int, total_bytes: int) -> None:
        """So much is done."""
        if self._bar is None and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(desc="verify", unit="B", unit_scale=True, file=sys.stderr, dynamic_ncols=True)
        if self._bar is not None:
            self._bar.total = total_bytes
            self._bar.update(done_bytes - self._bar.n)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._bar is not None:
            if kind is None:  # the manifest is in the total, but was read before there was a bar
                self._bar.total = self._bar.n
            self._bar.close()


def _verdict(report: VerifyReport) -> str:
    where = printable(str(report.path))
    if not report.ok:
        return f"{where}: DAMAGED, {len(report.problems)} problem{'s' if len(report.problems) != 1 else ''}, told above"
    read = f"{report.file_count:,} files, {report.byte_count:,} bytes"
    checked = (
        "all files match the manifest"
        if report.has_manifest
        else "no manifest, only the format's rules were checked"
    )
    return f"{where}: sound, {report.token_count:,} tokens, {report.seq_count:,} sequences, {read}; {checked}"


def _head(arguments: argparse.Namespace) -> int:
    dataset = reader.open(arguments.dataset)
    path = arguments.tokenizer or dataset.tokenizer_path
    if arguments.tokenizer is not None and not arguments.tokenizer.is_file():
        raise ArgumentError(f"--tokenizer {printable(str(path))}: no such file")
    known = entries.load_entries(path) if path is not None else None
    array = dataset[arguments.split]
    for index, sequence in enumerate(array.iter_sequences(0, arguments.sequences)):
        ids = sequence[: arguments.tokens].tolist()
        more = "" if len(ids) == len(sequence) else " ..."
        print(f"{arguments.split}[{index}]: {len(sequence):,} tokens")
        print(f"  ids: {' '.join(map(str, ids))}{more}")
        if known is not None:
            print(f"  text: {printable(entries.decode(ids, known), 2**31)}{more}")
    if array.seq_count == 0:
        print(f"{arguments.split}: no sequences")
    return 0


def _report(arguments: argparse.Namespace) -> int:
    from flat_tokens.report.command import write_report  # the other commands start without it
    from flat_tokens.report.figures import Bounds

    bounds = Bounds(arguments.sample_tokens, sequences=arguments.sequences, shown_tokens=arguments.tokens)
    written = write_report(
        arguments.dataset, arguments.output, bounds, arguments.tokenizer, arguments.overwrite
    )
    if written is not None:
        print(printable(str(written)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
