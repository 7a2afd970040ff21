"""python -m bpe train | count | report | encode | decode | info: work with tokenizers.

stdout has the result, stderr progress and errors. Exit codes: 0 success; 2 bad arguments or tokenizer; 3 bad text, IDs
or counts; 4 environment; 5 out of memory; 6 refused; 130 and 143 interrupted. An error is one line; --debug adds the
traceback.
"""

from __future__ import annotations

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C during imports ends the process at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import os
import sys

# The linear algebra of NumPy would start unused threads, and a process with threads cannot fork workers.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Container, Sequence
from importlib import import_module
from typing import Final

from bpe.cli.arguments import build_parser
from bpe.errors import BadArgument
from tokenmill.cli.failures import STDOUT, run_command
from tokenmill.engines.stop_signals import stop_signals
from tokenmill.errors import naming

# Commands outside bpe/cli/commands.py and their modules, so that a command imports only its own dependencies.
_MODULES: Final = {
    "train": "training_commands",
    "count": "training_commands",
    "report": "report_command",
}
_COMBINED: Final = ": cannot be combined with "


def main(arguments: Sequence[str] | None = None, prog: str = "python -m bpe") -> int:
    """Run a command and return its exit code. prog: the name of the program in messages."""
    words = {word.partition("=")[0] for word in (sys.argv[1:] if arguments is None else arguments)}

    def run() -> int:
        try:
            options = build_parser(prog).parse_args(arguments)
            commands = import_module(f"bpe.cli.{_MODULES.get(options.command, 'commands')}")
            if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            # A stopped command removes unfinished files. Files except stdout are named where they are used.
            with stop_signals(), naming(STDOUT):
                code: int = getattr(commands, options.command)(options)
                return code
        except BadArgument as error:
            raise BadArgument(_with_flags(str(error), words)) from error

    return run_command(run, arguments, "Pass --max-memory, less text or fewer threads.")


def _with_flags(message: str, words: Container[str]) -> str:
    """Name arguments by the flags that were passed.

    "like: cannot be combined with pattern. ..." -> "--like: cannot be combined with --pattern. ..."
    """

    def flag(name: str) -> str:
        spelled = f"--{name.replace('_', '-')}"
        return next((each for each in (spelled, spelled.removesuffix("s")) if each in words), name)

    where, separator, rest = message.partition(_COMBINED)
    if separator:
        other, stop, rest = rest.partition(".")
        rest = flag(other) + stop + rest
    else:
        where, separator, rest = message.partition(": ")
    return flag(where) + separator + rest


if __name__ == "__main__":
    sys.exit(main())
