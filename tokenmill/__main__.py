"""tokenmill COMMAND [options]: the commands of bpe, convert and flat_tokens; each has its own parser and help."""

from __future__ import annotations

import gc
import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C during imports ends the process at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NoReturn

import tokenmill
from tokenmill.cli.hints import unknown_command
from tokenmill.cli.standard_streams import complain, flush_and_leave, prepare_standard_streams
from tokenmill.errors import printable
from tokenmill.kinds import are_of_dataset

_BPE: Final = "bpe.__main__"
_DATASET: Final = "flat_tokens.__main__"
_BOTH: Final = (_BPE, _DATASET)
# Command -> (modules with its `main`, help). If there are two modules, tokenmill/kinds.py selects one.
_GROUPS: Final[dict[str, dict[str, tuple[tuple[str, ...], str]]]] = {
    "Tokenizers": {
        "train": ((_BPE,), "Train a BPE tokenizer on text"),
        "count": ((_BPE,), "Count the pretokens of text, to train on later"),
        "encode": ((_BPE,), "Encode text to token IDs"),
        "decode": ((_BPE,), "Decode token IDs to text"),
        "compare": (("tokenmill.compare.__main__",), "Write an HTML page that compares two tokenizers"),
    },
    "Datasets": {
        "convert": (("convert.__main__",), "Convert text, JSON Lines, Parquet and more to a token dataset"),
        "retokenize": (("convert.retokenize.__main__",), "Encode a dataset with another tokenizer"),
        "verify": ((_DATASET,), "Check every file and token of a dataset"),
        "head": ((_DATASET,), "Print the first sequences of a dataset"),
        "export": ((_DATASET,), "Export a dataset to the format of another tool"),
        "import": ((_DATASET,), "Import the token files of another tool"),
    },
    "Other": {
        "info": (_BOTH, "Describe a tokenizer, a counts file, or a dataset"),
        "report": (_BOTH, "Write a report on a tokenizer or a dataset"),
        "completion": (("tokenmill.completion",), "Print a completion script for your shell"),
    },
}
COMMANDS: Final = {name: command for group in _GROUPS.values() for name, command in group.items()}
_EXAMPLES: Final = (
    "train corpus/ --vocab-size 32k --special-token '<|endoftext|>' --output tokenizer.json",
    "convert corpus/ --tokenizer tokenizer.json --output corpus.zarr",
    "info corpus.zarr",
)
_WHOLE: Final = ("convert", "retokenize", "compare", "completion")  # modules with a single command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; 2 if there is no such command."""
    prepare_standard_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help"):
        print(_help())
        return 0 if words else 2
    if words[0] in ("-V", "--version", "version"):
        print(tokenmill.__version__)
        return 0
    command, rest = words[0], words[1:]
    if command not in COMMANDS:
        if command.startswith("-"):
            complain(f"{printable(command)}: options must follow a command. Run tokenmill --help.")
            return 2
        complain(unknown_command(command, COMMANDS))
        return 2
    modules = COMMANDS[command][0]
    has_help = any(word in ("-h", "--help") for word in rest)
    if modules == _BOTH and not has_help:
        modules = (_DATASET,) if are_of_dataset(rest) else (_BPE,)
    for number, module in enumerate(modules):
        if number:
            print()
        code = _run(module, command, rest)
    return code


def _run(module: str, command: str, rest: list[str]) -> int:
    try:
        tokenmill.import_package(module.partition(".")[0])
    except ImportError as error:
        complain(str(error))
        return 4
    run = import_module(module).main
    try:
        if command in _WHOLE:
            code: int = run(rest, prog=f"tokenmill {command}")
        else:
            code = run([command, *rest], prog="tokenmill")
    except SystemExit as ended:  # argparse, after --help
        return int(ended.code or 0)
    return code


def _help() -> str:
    lines = [
        "usage: tokenmill COMMAND [options]",
        "",
        "Train BPE tokenizers, and convert text to token datasets for training language models.",
    ]
    for title, group in _GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:<11} {about}" for name, (_, about) in group.items())]
    lines += ["", "Examples:", *(f"  tokenmill {example}" for example in _EXAMPLES)]
    lines += [
        "",
        "Run 'tokenmill COMMAND --help' for the options of a command,",
        "'tokenmill --version' for the version.",
    ]
    return "\n".join(lines)


def run() -> NoReturn:
    """Run the console command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(100_000)  # a conversion makes many objects and no reference cycles
    flush_and_leave(main())


if __name__ == "__main__":
    run()
