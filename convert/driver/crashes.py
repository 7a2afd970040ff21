"""What a worker crashed at, named to the byte and put aside for a report.

A crash is a fault in the program. The worker in place of the first that died tells what it is about to do, so when the
same text ends it too, that is known: the text is a stretch of some records, or a piece of a long one.
"""

from __future__ import annotations

from contextlib import suppress

from convert.errors import WorkerLost, printable, with_sentence
from convert.places.store_workspace import AnyWorkspace
from convert.planning.plan import Plan
from tokenmill.stores import StoreError, read_at

KEPT_BYTES = 8 << 20  # a stretch has 1 MiB, a block of lines up to 8


def with_place(error: WorkerLost, plan: Plan, workspace: AnyWorkspace) -> WorkerLost:
    """The error with the place in its message; the text there goes to `workspace.crashed_text` if it was a crash."""
    if error.place is None:
        return error
    source_index, start, stop = error.place
    source = plan.sources[source_index]
    where = f"{printable(source.shown)}, {'' if source.kind.is_divisible else 'decompressed '}bytes {start} to {stop}"
    message = f"{where}: {error}"
    if error.crashed and source.kind.is_divisible:
        with suppress(OSError, StoreError), source.open() as file:
            text = read_at(file, start, min(stop - start, KEPT_BYTES))
            workspace.crashed_text.write_bytes(text)
            message = with_sentence(
                message, f"Attach {workspace.crashed_text}, which contains the text, to the report."
            )
    lost = WorkerLost(message)
    lost.place, lost.crashed = error.place, error.crashed
    return lost
