"""Files that an unfinished run planned to read and that are no longer among the inputs.

They stay in the plan without their text, so that all text chunks keep their boundaries. Their text chunks are encoded
again, which is only possible if none of their documents has been encoded.
"""

from __future__ import annotations

from convert.errors import Refused, printable
from convert.planning.plan import Plan
from convert.workdir.journal import Recorded
from convert.workdir.workdir import WorkDir


def leave_out(plan: Plan, workspace: WorkDir, recorded: Recorded) -> None:
    """Remove the recorded shards of text chunks with such files, and write the plan.

    Refused (exit 6) if a shard contains documents of such a file.
    """
    left_out = {number for number, source in enumerate(plan.sources) if source.is_left_out}
    if not left_out:
        return
    chunks = {index for number in left_out for index in plan.chunks_of(number)}
    for record in filter(None, map(recorded.shard, list(recorded.shards))):
        if gone := left_out.intersection(counts.source_index for counts in record.sources):
            raise Refused(
                f"{printable(plan.sources[min(gone)].shown)}: is no longer an input, but {workspace.root} already "
                "contains its documents. Add it again, or start over with --restart."
            )
        if record.id.chunk_index in chunks:
            del recorded.shards[record.id]
    workspace.write_plan()
