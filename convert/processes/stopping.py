"""How a conversion ends early: by Ctrl-C, by a signal of the system, by an error.

The first Ctrl-C (or SIGTERM, or SIGHUP) lets the workers finish what they are at for a few seconds, so that little work
is lost; the second ends them at once. Either way nothing is lost that was finished, and no process stays behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress

from convert.processes.executors import ProcessExecutor

GRACE_SECONDS = 3.0


@contextmanager
def ending(executor: Executor, notice: Callable[[str], None]) -> Iterator[Executor]:
    """The executor for the length of the work; after an error no task is begun and no worker left behind."""
    try:
        yield executor
    except BaseException as error:
        try:
            if isinstance(error, KeyboardInterrupt):
                notice(
                    f"stopping: what the workers are at has {GRACE_SECONDS:g} s to finish; again to stop at once"
                )
            if isinstance(executor, ProcessExecutor):
                executor.stop(GRACE_SECONDS)
            else:  # what has not begun is cancelled already: not all executors can do that here
                with suppress(Exception):  # what ended the work is what is told
                    executor.shutdown(wait=True)
        except KeyboardInterrupt:  # the second one, which may be as quick as the notice
            if isinstance(executor, ProcessExecutor):
                executor.kill()
        raise
    executor.shutdown(wait=True)
