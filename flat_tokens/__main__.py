"""python -m flat_tokens info | verify | head DATASET: what it is, whether it is sound, how it reads.

stdout holds the answer, stderr errors and progress. Exit codes: 0, 2 usage, 3 bad or damaged dataset, 4 the
machine (I/O, permission), 5 worker or memory lost, 130 interrupted; 141 if the reader of stdout went away,
without a word.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from flat_tokens import entries, reader, statistics
from flat_tokens.errors import ArgumentError, FlatTokensError, printable
from flat_tokens.format import SPLITS
from flat_tokens.verify import VerifyReport, verify_dataset

BROKEN_PIPE = 128 + signal.SIGPIPE
DEFAULT_WORKERS = min(os.cpu_count() or 1, 16)
INTERRUPTED = 128 + signal.SIGINT


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # the interpreter flushes once more at its end and would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
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


def _one_line(error: FlatTokensError | OSError) -> str:
    if isinstance(error, FlatTokensError):
        return str(error)
    where = "" if error.filename is None else f"{printable(str(error.filename))}: "
    return f"{where}{error.strerror or error} (errno {error.errno})"


def _parser() -> argparse.ArgumentParser:
    about = "Look at a flat-tokens dataset, or check it."
    parser = argparse.ArgumentParser(prog="python -m flat_tokens", description=about)
    commands = parser.add_subparsers(required=True, metavar="info | verify | head")
    info = commands.add_parser("info", help="counts, lengths, sizes, tokenizer, sources")
    info.add_argument("--json", action="store_true", help="the same as one JSON object")
    info.set_defaults(run=_info)
    verify = commands.add_parser("verify", help="check every file and every token")
    verify.add_argument(
        "--workers", type=_positive, default=DEFAULT_WORKERS, help="processes, default: cores"
    )
    verify.set_defaults(run=_verify)
    head = commands.add_parser("head", help="the first sequences, as ids and text")
    head.add_argument("-n", "--sequences", type=_positive, default=3, help="how many sequences, default 3")
    head.add_argument("--split", choices=SPLITS, default="train")
    head.add_argument("--tokens", type=_positive, default=64, help="ids shown of each sequence, default 64")
    head.add_argument(
        "--tokenizer", type=Path, help="tokenizer.json to decode with, default: the dataset's own"
    )
    head.set_defaults(run=_head)
    for command in (info, verify, head):
        command.add_argument("dataset", type=Path, metavar="DATASET")
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
            f"{name}: {split['token_count']:,} tokens in {split['seq_count']:,} sequences, ids up to "
            f"{split['max_token_id']:,}"
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
    print(f"sources: {len(facts['sources'])}" if facts["sources"] else "sources: not recorded")
    for source in facts["sources"][:20]:
        print(f"  {printable(json.dumps(source, ensure_ascii=False))}")
    if len(facts["sources"]) > 20:
        print(f"  ... and {len(facts['sources']) - 20} more")
    if not facts["has_manifest"]:
        print("manifest: none, so lost files cannot be noticed")
    return 0


def _cuts(split: dict[str, Any]) -> str:
    if split["chunk_tokens"] is None:
        return "zarr chunks unknown"
    shards = f", shards of {split['shard_tokens']:,}" if split["shard_tokens"] else ""
    return f"zarr chunks of {split['chunk_tokens']:,} tokens{shards}"


def _verify(arguments: argparse.Namespace) -> int:
    if arguments.workers == 1:
        report = verify_dataset(arguments.dataset)
    else:
        with ProcessPoolExecutor(
            arguments.workers, get_context("forkserver"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
        ) as executor:
            report = verify_dataset(arguments.dataset, executor)
    for problem in report.problems:
        print(f"error: {problem}", file=sys.stderr)
    print(_verdict(report))
    return 0 if report.ok else 3


def _verdict(report: VerifyReport) -> str:
    where = printable(str(report.path))
    if not report.ok:
        return f"{where}: DAMAGED, {len(report.problems)} problems"
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
    for index, sequence in enumerate(array.sequences(0, arguments.sequences)):
        ids = sequence[: arguments.tokens].tolist()
        more = "" if len(ids) == len(sequence) else " ..."
        print(f"{arguments.split}[{index}]: {len(sequence):,} tokens")
        print(f"  ids: {' '.join(map(str, ids))}{more}")
        if known is not None:
            print(f"  text: {printable(entries.decode(ids, known), 2**31)}{more}")
    if array.seq_count == 0:
        print(f"{arguments.split}: no sequences")
    return 0


if __name__ == "__main__":
    sys.exit(main())
