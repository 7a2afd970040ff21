"""python -m convert INPUT... --tokenizer tokenizer.json --output owt.zarr

stdout: the summary. stderr: progress, and one line if something is wrong. Exit codes: docs/reference/guarantees.md.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence

if __name__ == "__main__":
    # Ctrl-C during imports ends the process at once. As an exception it could be reported as a failed import.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(100_000)  # a conversion makes many objects and no reference cycles

# Nothing here uses the threads of numpy's linear algebra, and a process with threads could not fork its workers.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from convert.cli.arguments import build_parser as build_parser
from convert.cli.arguments import parse_arguments
from convert.errors import COMPLETE
from tokenmill.cli.failures import run_command
from tokenmill.cli.standard_streams import complain, flush_and_leave, print_result
from tokenmill.engines.choose import quiet_loggers
from tokenmill.engines.stop_signals import stop_signals
from tokenmill.stores import shown_url


def main(arguments: Sequence[str] | None = None, prog: str = "python -m convert") -> int:
    """Convert and return the exit code. prog: the name of the program in messages."""

    def run() -> int:
        options, parsed = parse_arguments(sys.argv[1:] if arguments is None else list(arguments), prog)
        # Slow, and --help does not need it.
        from convert.driver.conversion import convert, dry_run, encode_share

        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if parsed.dry_run:
            print_result(dry_run(options))
            return 0
        quiet_loggers(options.engine.executor)
        try:
            with stop_signals():
                if options.share is None:
                    print_result(convert(options).lines(parsed.debug))
                else:
                    task = f"task {options.task_index} of {options.task_count}"
                    done = f"encoded {encode_share(options):,} text chunks; run without --task-index to merge"
                    print_result([f"{shown_url(options.output)}: {task} {done}"])
        except KeyboardInterrupt as error:
            if COMPLETE not in getattr(error, "__notes__", ()):
                raise
            complain("interrupted, but the dataset is complete", "note")
        return 0

    return run_command(run, arguments, "Lower --workers or --text-chunk-bytes.")


if __name__ == "__main__":
    flush_and_leave(main())
