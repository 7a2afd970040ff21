"""python -m convert INPUT... --tokenizer tokenizer.json --output owt.zarr

stdout: the summary. stderr: progress, and one line if something is wrong. Exit codes: convert/errors.py.
"""

from __future__ import annotations

import gc
import signal
from typing import TYPE_CHECKING

if __name__ == "__main__":
    # Ctrl-C while modules are imported ends the process at once: some make another error of the exception it raises
    # ("None is not installed"), and there is nothing yet to keep. One that is ignored stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # A conversion makes many objects and no reference cycles: garbage collection would slow its start.
    gc.set_threshold(100_000)

import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor

# numpy's linear algebra would start threads that nothing here uses; with them the workers could not be forked.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from convert.errors import BadInput, printable
from convert.shown.arguments import build_parser as build_parser
from convert.shown.arguments import parse_arguments
from tokenmill.cli.failures import MACHINE, MEMORY, ended_by, exit_code_of, one_line
from tokenmill.cli.standard_streams import complain, flush_and_leave, prepare_standard_streams
from tokenmill.errors import TokenmillError
from tokenmill.stores import is_url, shown_url

if TYPE_CHECKING:
    import argparse

    from convert.options import ConvertOptions
    from convert.shown.summary import Summary


def main(arguments: Sequence[str] | None = None, prog: str = "python -m convert") -> int:
    """Convert as the arguments say; the exit code. prog: how the program was called."""
    started = time.perf_counter()
    words = sys.argv[1:] if arguments is None else list(arguments)
    output, on_error, parsed, is_made = "the output", "fail", None, False
    prepare_standard_streams()
    try:
        options, parsed = parse_arguments(words, prog)
        output, on_error = options.output, options.on_error
        from convert.driver.pipeline import dry_run
        from tokenmill.engines.choose import quiet_loggers
        from tokenmill.engines.stop_signals import stop_signals

        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if parsed.dry_run:
            if parsed.append_to:
                from convert.driver.append import as_part

                options = as_part(options)
            _print("\n".join(dry_run(options)))
            return 0
        quiet_loggers(options.executor)
        with stop_signals():
            summary = _converted(options, parsed, started)
            is_made = True
            if not parsed.quiet and summary is not None:
                _print("\n".join(summary.lines(parsed.debug)))
            elif not parsed.quiet:
                _print(f"{printable(output)}: an earlier run wrote this part; it is listed now")
        return 0
    except SystemExit:
        raise
    except BaseException as error:  # also a panic of an extension module
        if isinstance(error, KeyboardInterrupt) and (is_made or _has_made(error, output, parsed)):
            complain(f"{shown_url(output)}: complete despite the interrupt", "note")
            return 0  # who saw another code would give the command again, and append twice
        return ended_by(error, "--debug" in words, more=_advice(output, error, on_error))


def _converted(options: ConvertOptions, parsed: argparse.Namespace, started: float) -> Summary | None:
    """Convert or append; None if an earlier run had made the part and not listed it."""
    if parsed.append_to:
        from convert.driver.append import append

        return append(options, started=started)
    from convert.driver.pipeline import convert

    return convert(options, started=started)


def _has_made(error: BaseException, output: str, parsed: argparse.Namespace | None) -> bool:
    """Whether the output was complete when the error came."""
    return parsed is not None and getattr(error, "made", None) == output


def _advice(output: str, error: BaseException, on_error: str) -> str:
    """Return the sentences that follow the error: how to need less memory and how to resume."""
    line = one_line(error)
    sentences = [f" {sentence}" for sentence in _sentences(output, error, on_error, line)]
    return ("" if line.endswith(".") else ".") + "".join(sentences) if sentences else ""


def _sentences(output: str, error: BaseException, on_error: str, line: str) -> Iterator[str]:
    code = exit_code_of(error)
    if isinstance(error, (MemoryError, BrokenExecutor)) and not isinstance(error, TokenmillError):
        yield "Lower --workers or --text-chunk-bytes."
    is_input = code == BadInput.exit_code
    if not is_input and code not in (MACHINE, MEMORY) and not isinstance(error, KeyboardInterrupt):
        return
    # A store is not asked: the error may be about it.
    partial = getattr(error, "work_at", f"{output.rstrip('/')}.partial")
    is_kept = getattr(error, "kept_work", False)
    if not is_url(output):
        is_kept = os.path.exists(partial)  # noqa: PTH110 - Path's raises where the name is too long
    if not is_kept:
        return
    yield printable(f"Finished work is kept in {shown_url(partial)}.")
    if is_input:
        if on_error == "fail":
            yield "To resume, add --on-error skip, --on-error quarantine or --exclude."
        elif "--max-errors" in line:
            yield "To resume, raise --max-errors."
        yield "After repairing a file or changing other options, pass --restart."
    elif "same command" not in line:
        yield "Run the same command to resume."


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except (
        OSError,
        ValueError,
    ):  # a closed pipe or a full disk behind stdout: the dataset is there all the same
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - or Python would complain once more at exit


if __name__ == "__main__":
    flush_and_leave(main())
