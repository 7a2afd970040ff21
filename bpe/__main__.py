"""python -m bpe: train a tokenizer, encode and decode with one, say what one is.

stdout carries data, stderr progress and errors. Exit codes: 0 done, 2 bad arguments or tokenizer, 3 bad text or ids,
4 environment, 5 out of memory, 130 interrupted. An error is one line; --debug adds the traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from bpe.errors import BpeError, printable
from bpe.standard_streams import prepare_standard_streams


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (--help tells more)\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all four commands; numpy and the core are imported by the commands only."""
    parser = _Parser(prog="python -m bpe", description="Train and use byte-level BPE tokenizers.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="train | encode | decode | info")

    train = commands.add_parser("train", help="make a tokenizer.json from text files")
    train.add_argument("inputs", nargs="+", metavar="INPUT", help="UTF-8 text files, folders or globs")
    train.add_argument(
        "--vocab-size", required=True, help="entries, special tokens and the 256 bytes included: 32000, 32k"
    )
    train.add_argument("--output", required=True, help="the tokenizer.json to write")
    train.add_argument(
        "--special-token", action="append", default=[], metavar="TOKEN", help="may be repeated; cuts the text"
    )
    train.add_argument(
        "--pattern", default="gpt2", help="gpt2 (default), cl100k, o200k, llama3, qwen2, or an expression"
    )
    train.add_argument(
        "--min-frequency", type=int, default=1, help="merge only pairs that occur so often (default 1)"
    )
    train.add_argument("--tie-break", choices=["lexicographic", "huggingface"], default="lexicographic")
    train.add_argument("--threads", type=int, help="default: all cores")
    train.add_argument("--quiet", action="store_true", help="no progress")
    _add_invalid(train)

    encode = commands.add_parser("encode", help="text to ids")
    _add_tokenizer(encode)
    encode.add_argument(
        "input", nargs="?", default="-", metavar="INPUT", help="a UTF-8 text file; - or nothing: stdin"
    )
    encode.add_argument(
        "--output", default="-", help="a file: .npy, .bin (uint32) or text; -: stdout (default)"
    )
    encode.add_argument("--format", choices=["text", "npy", "bin"], help="default: by the output's ending")
    encode.add_argument("--plain", action="store_true", help="take special tokens in the text as plain text")
    _add_invalid(encode)

    decode = commands.add_parser("decode", help="ids to text")
    _add_tokenizer(decode)
    decode.add_argument(
        "input", nargs="?", default="-", metavar="INPUT", help="a file as encode writes; - or nothing: stdin"
    )
    decode.add_argument("--output", default="-", help="a file; -: stdout (default)")
    decode.add_argument("--format", choices=["text", "npy", "bin"], help="default: by the input's ending")

    info = commands.add_parser("info", help="what a tokenizer is")
    info.add_argument(
        "tokenizer", help="tokenizer.json, vocab.json, a folder of them, or *.tiktoken with --pattern"
    )
    _add_rank_file_options(info)
    info.add_argument("--json", action="store_true", help="as JSON")

    for command in (train, encode, decode, info):
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _add_invalid(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--invalid",
        choices=["error", "replace"],
        default="error",
        help="bytes that are not UTF-8: stop (default), or replace by U+FFFD as Python does",
    )


def _add_tokenizer(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--tokenizer",
        required=True,
        help="tokenizer.json, vocab.json, a folder of them, or *.tiktoken with --pattern",
    )
    _add_rank_file_options(command)


def _add_rank_file_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--pattern", help="for *.tiktoken and vocab.json: the pattern's name or expression")
    command.add_argument(
        "--special-token",
        action="append",
        metavar="TOKEN[=ID]",
        help="for *.tiktoken and vocab.json; may be repeated; without =ID the next free id",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    prepare_standard_streams()
    options = build_parser().parse_args(arguments)
    try:
        from bpe import commands

        code: int = getattr(commands, options.command)(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _failed("interrupted", 130, options.debug)
    except BrokenPipeError:
        # Whoever read our output has gone; that is no error, but the interpreter must not flush into it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except BpeError as error:
        return _failed(str(error), error.exit_code, options.debug)
    except MemoryError:
        return _failed("out of memory; train on less text or with fewer threads", 5, options.debug)
    except ImportError as error:
        if error.name is None or not error.name.startswith("bpe"):
            return _failed(f"{error}; install what is missing: pip install .", 4, options.debug)
        return _failed(
            "the core is not built; install the package first: pip install . (in its folder)",
            4,
            options.debug,
        )
    except OSError as error:
        name = (
            f"{error.filename or 'stdout'}: "  # every other file's errors are given its name where it is used
        )
        return _failed(f"{name}{error.strerror or error}", 4, options.debug)


def _failed(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    line = printable(message)
    with contextlib.suppress(OSError, ValueError):  # stderr is full; the exit code still tells
        print(f"bpe: {line}", file=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
