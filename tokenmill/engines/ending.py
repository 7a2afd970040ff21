"""How a conversion ends early: by Ctrl-C, by a signal of the system, by an error.

The first Ctrl-C (or SIGTERM, or SIGHUP) lets the workers finish what they are at for a few seconds, so that little work
is lost; the second ends them at once. Either way nothing is lost that was finished, and no process stays behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tokenmill.engines.engine import Engine

GRACE_SECONDS = 3.0


@contextmanager
def ending(engine: Engine, notice: Callable[[str], None]) -> Iterator[None]:
    """For the length of the work; after an error no task is begun, and none goes on that can be ended."""
    try:
        yield
    except BaseException as error:
        try:
            if isinstance(error, KeyboardInterrupt):
                notice(
                    f"stopping: workers have {GRACE_SECONDS:g} s to finish. Interrupt again to stop at once."
                )
            with suppress(Exception):  # what ended the work is what is told
                engine.stop(GRACE_SECONDS)
        except KeyboardInterrupt:  # the second one, which may be as quick as the notice
            engine.kill()
        raise
    engine.shutdown()
