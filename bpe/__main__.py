"""python -m bpe: train a tokenizer, encode and decode with one, say what one is.

stdout carries data, stderr progress and errors. Exit codes: 0 done, 2 bad arguments or tokenizer, 3 bad text or ids,
4 environment, 5 out of memory, 130 interrupted. An error is one line; --debug adds the traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from bpe.errors import BpeError, printable
from bpe.standard_streams import prepare_standard_streams


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # "argument --threads: must be ..." reads as our own checks do: "--threads must be ..."
        message = re.sub(r"^argument (\S+): must ", r"\1 must ", message)
        self.exit(2, f"bpe: {message}; see {self.prog} --help\n")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None


def build_parser() -> argparse.ArgumentParser:
    """The parser of all four commands; numpy and the core are imported by the commands only."""
    parser = _Parser(
        prog="python -m bpe",
        description="Train and use byte-level BPE tokenizers.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  python -m bpe train corpus.txt --vocab-size 32k --special-token '<|endoftext|>' --output tokenizer.json\n"
        "  echo 'Hello' | python -m bpe encode --tokenizer tokenizer.json | python -m bpe decode "
        "--tokenizer tokenizer.json\n"
        "  python -m bpe encode --tokenizer tokenizer.json corpus.txt --output ids.npy\n"
        "  python -m bpe info tokenizer.json\n\n"
        "Each command has its own --help. Exit codes: 0 done, 2 arguments or tokenizer, 3 text or ids, 4 the machine\n"
        "(space, permission, I/O), 5 out of memory, 130 interrupted.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="train | encode | decode | info")

    train = commands.add_parser(
        "train",
        help="make a tokenizer.json from text files",
        description="Make a tokenizer.json from text files. The same files and options give the same tokenizer, "
        "whatever the number of threads.",
    )
    train.add_argument("inputs", nargs="+", metavar="INPUT", help="UTF-8 text files, folders or globs")
    train.add_argument(
        "--vocab-size",
        required=True,
        metavar="N",
        help="entries, special tokens and the 256 bytes included: 32000, 32k",
    )
    train.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help="the tokenizer.json to write; one that exists is replaced",
    )
    train.add_argument(
        "--special-token",
        action="append",
        default=[],
        metavar="TOKEN",
        help="a text with an id of its own, at which the text is cut; may be repeated",
    )
    train.add_argument(
        "--pattern",
        default="gpt2",
        help="how text is cut before merging: gpt2 (default), cl100k, o200k, llama3, qwen2, or an expression",
    )
    train.add_argument(
        "--min-frequency",
        type=_whole,
        default=1,
        metavar="N",
        help="merge only pairs that occur so often (default 1)",
    )
    train.add_argument(
        "--tie-break",
        choices=["lexicographic", "huggingface"],
        default="lexicographic",
        help="which of equally frequent pairs is merged first: the one whose bytes compare greater (default), or "
        "the one Hugging Face's trainer takes",
    )
    train.add_argument(
        "--threads", type=_whole, metavar="N", help="threads to count and merge with (default: all cores)"
    )
    train.add_argument("--quiet", action="store_true", help="no progress; warnings and errors only")
    _add_invalid(train)

    encode = commands.add_parser(
        "encode", help="text to ids", description="Encode a text of any size to ids."
    )
    _add_tokenizer(encode)
    encode.add_argument(
        "input", nargs="?", default="-", metavar="INPUT", help="a UTF-8 text file; - or nothing: stdin"
    )
    encode.add_argument(
        "--output",
        default="-",
        metavar="FILE",
        help="a file: .npy, .bin (uint32) or text; -: stdout (default)",
    )
    encode.add_argument("--format", choices=["text", "npy", "bin"], help="default: by the output's ending")
    encode.add_argument("--plain", action="store_true", help="take special tokens in the text as plain text")
    _add_invalid(encode)

    decode = commands.add_parser(
        "decode", help="ids to text", description="Decode ids of any number to text."
    )
    _add_tokenizer(decode)
    decode.add_argument(
        "input", nargs="?", default="-", metavar="INPUT", help="a file as encode writes; - or nothing: stdin"
    )
    decode.add_argument("--output", default="-", metavar="FILE", help="a file; -: stdout (default)")
    decode.add_argument("--format", choices=["text", "npy", "bin"], help="default: by the input's ending")

    info = commands.add_parser("info", help="what a tokenizer is", description="Print what a tokenizer is.")
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
        metavar="PATH",
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
        missing = "the core is not built" if "_core" in str(error) else f"{error.name} is not installed"
        return _failed(
            f"{missing}; install the package first: pip install . (in its folder)", 2, options.debug
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
