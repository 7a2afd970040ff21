"""tokenmill COMMAND [options]: the commands of bpe, convert and flat_tokens; each has its own parser and help."""

from __future__ import annotations

import gc
import os
import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C during imports ends the process at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Final, NoReturn

import tokenmill
from tokenmill.cli.parser import nearest
from tokenmill.cli.standard_streams import complain, flush_and_leave, prepare_standard_streams
from tokenmill.errors import printable, shown
from tokenmill.stores import is_url

_BPE: Final = "bpe.__main__"
_DATASET: Final = "flat_tokens.__main__"
_BOTH: Final = (_BPE, _DATASET)
# Command -> (modules with its `main`, help). If there are two modules, the arguments select one.
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
    },
}
COMMANDS: Final = {name: command for group in _GROUPS.values() for name, command in group.items()}
_END: Final = """

Examples:
  tokenmill train corpus/ --vocab-size 32k --special-token '<|endoftext|>' --output tokenizer.json
  tokenmill convert corpus/ --tokenizer tokenizer.json --output corpus.zarr
  tokenmill info corpus.zarr

Run 'tokenmill COMMAND --help' for the options of a command,
'tokenmill --version' for the version."""
_WHOLE: Final = ("convert", "retokenize", "compare")  # modules with a single command
_OF_DATASETS: Final = (".zgroup", "zarr.json", "manifest.json")
_OF_TOKENIZERS: Final = (".json", ".tiktoken", ".model", ".counts")
_FLAGS: Final = ("--json", "--overwrite", "--debug")  # options of `info` and `report` without a value


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
    if command.startswith("-"):
        complain(f"{printable(command)}: options must follow a command. Run tokenmill --help.")
        return 2
    if command not in COMMANDS:
        advice = nearest(command, COMMANDS) or f". Choose one of {', '.join(COMMANDS)}."
        complain(f"unknown command: {shown(command)}{advice}")
        return 2
    modules = COMMANDS[command][0]
    if modules == _BOTH and not {"-h", "--help"} & set(rest):
        modules = (_DATASET,) if are_of_dataset(rest) else (_BPE,)
    words, prog = (rest, f"tokenmill {command}") if command in _WHOLE else (words, "tokenmill")
    for number, module in enumerate(modules):
        if number:
            print()
        try:
            tokenmill.import_package(module.partition(".")[0])
        except ImportError as error:
            complain(str(error))
            return 4
        code: int = import_module(module).main(words, prog=prog)
    return code


def are_of_dataset(words: Sequence[str]) -> bool:
    """Whether the first positional argument names a dataset; without one, whether any word does."""
    options = [word for word in words if word.startswith("-") and "=" not in word and word not in _FLAGS]
    named = [
        word for before, word in pairwise(["", *words]) if not word.startswith("-") and before not in options
    ]
    return any(map(_names_dataset, named[:1] or words))


def _names_dataset(word: str) -> bool:
    """Whether the word is a URL, ends with .zarr, or is a folder with the files of a dataset."""
    path = word.rstrip("/")
    if path.endswith((".zarr", ".zarr.partial")) or (is_url(word) and not path.endswith(_OF_TOKENIZERS)):
        return True
    return any(os.path.exists(os.path.join(path, name)) for name in _OF_DATASETS)  # noqa: PTH110, PTH118 - Path raises for long names


def _help() -> str:
    lines = [
        "usage: tokenmill COMMAND [options]\n",
        "Train BPE tokenizers, and convert text to token datasets for training language models.",
    ]
    for title, group in _GROUPS.items():
        lines += [f"\n{title}:", *(f"  {name:<11} {about}" for name, (_, about) in group.items())]
    return "\n".join(lines) + _END


def run() -> NoReturn:
    """Run the console command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(100_000)  # a conversion makes many objects and no reference cycles
    flush_and_leave(main())


if __name__ == "__main__":
    run()
