"""python -m bpe: count text, train a tokenizer, report on it, encode and decode with it, say what it is.

stdout carries data, stderr progress and errors. Exit codes: 0 done, 2 bad arguments or tokenizer, 3 bad text, ids or
counts, 4 environment, 5 out of memory, 6 refused, 130 and 143 interrupted. An error is one line; --debug adds the
traceback.
"""

from __future__ import annotations

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C while modules are imported ends the process at once: there is nothing yet to keep.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import os
import re
import sys

# numpy's linear algebra would start threads that nothing here uses; with them workers could not be forked.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Container, Sequence
from importlib import import_module
from typing import Final

from bpe.cli.arguments import build_parser
from bpe.errors import BadArgument
from tokenmill.cli.failures import STDOUT, ended_by, reader_gone
from tokenmill.cli.standard_streams import prepare_standard_streams
from tokenmill.engines.stop_signals import stop_signals
from tokenmill.errors import naming

# Where a command is done, if not in bpe/cli/commands.py: each imports what it needs and no more.
_MODULES: Final = {
    "train": "training_commands",
    "count": "training_commands",
    "report": "report_command",
    "compare": "compare_command",
}
_NAME: Final = re.compile(r"(?<![^\s(])[a-z]+_[a-z_]+(?=[,;:.)]?(?:\s|$))")  # of an option, not within a path
_FIRST: Final = re.compile(r"^[a-z]\w*(?=:)")
_SECOND: Final = re.compile(r"(?<=cannot be combined with )[a-z]\w*")


def main(arguments: Sequence[str] | None = None, prog: str = "python -m bpe") -> int:
    """The exit code. prog: how the program was called."""
    prepare_standard_streams()
    words = {word.partition("=")[0] for word in (sys.argv[1:] if arguments is None else arguments)}
    debug = "--debug" in words
    try:
        options = build_parser(prog).parse_args(arguments)
        commands = import_module(f"bpe.cli.{_MODULES.get(options.command, 'commands')}")
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        # What is half written goes with the end.
        with stop_signals(), naming(STDOUT):  # every other file's errors are given its name where it is used
            code: int = getattr(commands, options.command)(options)
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        return reader_gone()
    except BadArgument as error:
        return ended_by(BadArgument(_with_flags(str(error), words)), debug)
    except SystemExit:
        raise
    except BaseException as error:  # also a panic of an extension module
        return ended_by(error, debug, with_less_memory="Pass --max-memory, less text or fewer threads.")


def _with_flags(message: str, words: Container[str]) -> str:
    """The message with the options that the command was given, which it names as Python does, as they were given.

    A name of one word is known by its place alone: "like: cannot be combined with pattern".
    """

    def flag(name: re.Match[str]) -> str:
        spelled = f"--{name[0].replace('_', '-')}"
        both = (spelled, spelled.removesuffix("s"))  # special_tokens: --special-token
        return next((each for each in both if each in words), name[0])

    message = _FIRST.sub(flag, message)
    message = _SECOND.sub(flag, message)
    return _NAME.sub(flag, message)


if __name__ == "__main__":
    sys.exit(main())
