"""How a run ends early: by Ctrl-C, by a signal or by an error.

The first Ctrl-C (or SIGTERM or SIGHUP) gives the workers a few seconds to finish their tasks, so that little work is
lost. The second one ends them at once. Finished work is kept either way, and no process outlives the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tokenmill.engines.engine import Engine, Notice

GRACE_SECONDS = 3.0


@contextmanager
def ending(engine: Engine, notice: Notice) -> Iterator[None]:
    """Stop the engine when the block raises, and shut it down when the block is done."""
    try:
        yield
    except BaseException as error:
        try:
            if isinstance(error, KeyboardInterrupt):
                notice(
                    f"stopping: workers have {GRACE_SECONDS:g} s to finish. Interrupt again to stop at once."
                )
            with suppress(Exception):  # the error that ended the run is the one to report
                engine.stop(GRACE_SECONDS)
        except KeyboardInterrupt:  # the second one, which may arrive during the notice
            engine.kill()
        raise
    engine.shutdown()
