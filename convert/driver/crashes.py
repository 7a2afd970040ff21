"""Name the text that a worker crashed at, a fault in the program that the same text may cause again."""

from __future__ import annotations

from convert.errors import WorkerLost, printable
from convert.planning.plan import Plan


def with_place(error: WorkerLost, plan: Plan) -> WorkerLost:
    """Return the error with the source and the bytes of the text in its message, if they are known."""
    if error.place is None:
        return error
    source_index, start, stop = error.place
    source = plan.sources[source_index]
    where = f"{printable(source.shown)}, {'' if source.kind.is_divisible else 'decompressed '}bytes {start} to {stop}"
    lost = WorkerLost(f"{where}: {error}")
    lost.place, lost.crashed = error.place, error.crashed
    return lost
