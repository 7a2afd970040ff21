"""python -m convert.retokenize owt.zarr --tokenizer other.json --output other.zarr

stdout: what came of it; stderr: one line if something is wrong. Exit codes: convert/errors.py.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from bpe.cli.standard_streams import prepare_standard_streams
from convert.errors import exit_code_of, one_line, printable
from flat_tokens.storage.layout import COMPRESSIONS, ArrayLayout
from stores import shown_url

MOST_THREADS = 4096


def main(arguments: Sequence[str] | None = None) -> int:
    """Retokenize as the arguments say; the exit code."""
    prepare_standard_streams()
    parsed = _parser().parse_args(arguments)
    from convert.retokenize.run import RetokenizeOptions, retokenize

    options = RetokenizeOptions(
        parsed.dataset,
        parsed.tokenizer,
        Path(parsed.output),
        parsed.from_tokenizer,
        parsed.append_token,
        parsed.prepend_token,
        parsed.threads,
        ArrayLayout.create(parsed.zarr_format, compression=parsed.compression),
        parsed.overwrite,
        dict(parsed.storage_option),
    )
    try:
        written = retokenize(options)
    except KeyboardInterrupt:
        print("convert.retokenize: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        code = exit_code_of(error)
        if code is None or parsed.debug:
            traceback.print_exc()
            return code or 1
        print(f"convert.retokenize: error: {one_line(error)}", file=sys.stderr)
        return code
    print(f"{printable(parsed.output)}: verified, from {printable(shown_url(parsed.dataset))}")
    for split, found in written.items():
        empty = f", {found.empty_documents:,} without tokens left out" if found.empty_documents else ""
        print(f"{split}: {found.record.token_count:,} tokens in {found.record.seq_count:,} documents{empty}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m convert.retokenize",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Encode the documents of a dataset by another tokenizer, from its ids alone: the same documents,\n"
        "splits and order. Each document must encode to its ids again, else it is told and nothing is written.",
        epilog="examples:\n"
        "  python -m convert.retokenize owt.zarr --tokenizer o200k.json --output owt-o200k.zarr\n"
        "  python -m convert.retokenize owt.zarr --tokenizer llama.json --append-token '</s>' --output llama.zarr\n"
        "  python -m convert.retokenize old.zarr --from-tokenizer gpt2.json --tokenizer new.json --output new.zarr",
    )
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="its folder or URL")
    add("--tokenizer", required=True, metavar="PATH", help="the new one, as for python -m convert")
    add("--output", required=True, metavar="PATH", help="the dataset to make")
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
        type=_threads,
        default=os.cpu_count() or 1,
        metavar="N",
        help="(default %(default)s: the cores)",
    )
    add("--zarr-format", type=int, choices=(2, 3), default=2, help="layout (default 2)")
    add("--compression", choices=COMPRESSIONS, default="zstd", help="(default zstd)")
    add("--overwrite", action="store_true", help="replace an earlier dataset")
    add(
        "--storage-option",
        action="append",
        default=[],
        type=_option,
        metavar="NAME=VALUE",
        help="a setting of the store that DATASET is on; as often as needed",
    )
    add("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _threads(text: str) -> int:
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0
    if not 1 <= value <= MOST_THREADS:
        raise argparse.ArgumentTypeError(
            f"must be a whole number in [1, {MOST_THREADS}], got {printable(text)!r}"
        )
    return value


def _option(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {printable(text)!r}")
    return name, value


if __name__ == "__main__":
    sys.exit(main())
