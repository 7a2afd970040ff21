"""tokenmill COMMAND ...: the commands of bpe, convert and flat_tokens under one name; each parses and helps itself."""

from __future__ import annotations

import gc
import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C while modules are imported ends the process at once: there is nothing yet to keep.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NoReturn

from tokenmill.cli.standard_streams import complain, flush_and_leave, prepare_standard_streams

_BPE: Final = "bpe.__main__"
_DATASET: Final = "flat_tokens.__main__"
_TOLD: Final = (_BPE, _DATASET)
# Where a command's `main` is, and an example. Tokenizers and datasets have `info` and `report` (tokenmill/kinds.py).
COMMANDS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "train": (
        (_BPE,),
        "train corpus/ --vocab-size 32k --special-token '<|endoftext|>' --output tokenizer.json",
    ),
    "count": ((_BPE,), "count corpus/ --special-token '<|endoftext|>' --output corpus.counts"),
    "encode": ((_BPE,), "encode --tokenizer tokenizer.json text.txt --output ids.npy"),
    "decode": ((_BPE,), "decode --tokenizer tokenizer.json ids.npy"),
    "convert": (("convert.__main__",), "convert corpus/ --tokenizer tokenizer.json --output corpus.zarr"),
    "retokenize": (
        ("convert.retokenize.__main__",),
        "retokenize corpus.zarr --tokenizer other.json --output other.zarr",
    ),
    "info": (_TOLD, "info tokenizer.json; tokenmill info corpus.zarr"),
    "report": (_TOLD, "report tokenizer.json text.txt; tokenmill report corpus.zarr -o corpus.html"),
    "compare": ((_BPE,), "compare mine.json theirs.json --output compare.html"),
    "verify": ((_DATASET,), "verify corpus.zarr"),
    "head": ((_DATASET,), "head corpus.zarr -n 5"),
    "export": ((_DATASET,), "export corpus.zarr --to megatron --output corpus-megatron"),
    "import": ((_DATASET,), "import train.bin --from nanogpt --separator-token 50256 --output corpus.zarr"),
    "compact": ((_DATASET,), "compact corpus.zarr --output whole.zarr"),
    "completion": (
        ("tokenmill.completion",),
        "completion bash > ~/.local/share/bash-completion/completions/tokenmill",
    ),
}
_OTHER_NAMES: Final = {
    **{
        "tokenize": "encode",
        "detokenize": "decode",
        "check": "verify",
        "validate": "verify",
        "merge": "compact",
    },
    **{"show": "head", "view": "head", "tail": "head", "inspect": "info", "stats": "info", "ls": "info"},
}
_WHOLE: Final = ("convert", "retokenize", "completion")  # the command is all of its module


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code, as the command gives it; 2 if there is no such command."""
    prepare_standard_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help"):
        print(_help())
        return 0 if words else 2
    if words[0] in ("-V", "--version", "version"):
        import tokenmill

        print(tokenmill.__version__)
        return 0
    command, rest = words[0], words[1:]
    if command not in COMMANDS:
        from tokenmill.cli.hints import nearest
        from tokenmill.errors import shown

        if command.startswith("-"):
            complain(
                f"{shown(command)}: the command comes first: tokenmill COMMAND ...; see tokenmill --help"
            )
            return 2
        near = nearest(_OTHER_NAMES.get(command, command), COMMANDS)
        known = near or f"; there are {', '.join(COMMANDS)}"
        complain(f"no such command: {shown(command)}{known}; see tokenmill --help")
        return 2
    modules = COMMANDS[command][0]
    asks = modules == _TOLD and any(word in ("-h", "--help") for word in rest)
    if modules == _TOLD and not asks:
        from tokenmill.kinds import are_of_dataset

        modules = (_DATASET,) if are_of_dataset(rest) else (_BPE,)
    for module in modules:
        code = _run(module, command, rest)
    return code


def _run(module: str, command: str, rest: list[str]) -> int:
    import tokenmill

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
        "usage: tokenmill COMMAND ...",
        "",
        "Raw text in, a BPE tokenizer and a training-ready token dataset out.",
        "",
    ]
    for name, (_, example) in COMMANDS.items():
        lines.append(f"  {name:<11} tokenmill {example}")
    return "\n".join(
        [*lines, "", "tokenmill COMMAND --help says what a command does; tokenmill --version the version."]
    )


def run() -> NoReturn:
    """The console command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # A conversion makes many objects and no reference cycles: garbage collection would slow its start.
    gc.set_threshold(100_000)
    flush_and_leave(main())


if __name__ == "__main__":
    run()
