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
import sys
import traceback

# numpy's linear algebra would start threads that nothing here uses; with them workers could not be forked.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Sequence
from importlib import import_module
from typing import Final

from bpe.cli.arguments import build_parser
from bpe.errors import BadArgument, BpeError, printable
from command_line.standard_streams import complain, prepare_standard_streams

# Where a command is done, if not in bpe/cli/commands.py: each imports what it needs and no more.
_MODULES: Final = {"train": "training_commands", "count": "training_commands", "report": "report_command"}


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
        code: int = getattr(commands, options.command)(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt as error:
        return _failed(str(error) or "interrupted", getattr(error, "exit_code", 130), debug)
    except BrokenPipeError:
        # Whoever read our output has gone; that is no error, but the interpreter must not flush into it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except BpeError as error:
        name, space, rest = str(error).partition(" ")
        if f"--{name.replace('_', '-')}" in words and isinstance(error, BadArgument):  # as Python calls it
            name = f"--{name.replace('_', '-')}"
        return _failed(name + space + rest, error.exit_code, debug)
    except MemoryError:
        return _failed("out of memory; give --max-memory, less text or fewer threads", 5, debug)
    except ImportError as error:
        missing = "the core is not built" if "_core" in str(error) else f"{error.name} is not installed"
        return _failed(
            f"{missing}; install the package first: pip install . (in its folder)", 2, options.debug
        )
    except OSError as error:
        name = (
            f"{error.filename or 'stdout'}: "  # every other file's errors are given its name where it is used
        )
        return _failed(f"{name}{error.strerror or error}", 4, debug)


def _failed(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    complain(printable(message))
    return code


if __name__ == "__main__":
    sys.exit(main())
