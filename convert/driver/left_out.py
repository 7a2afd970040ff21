"""Files that an unfinished run was to read, and that are no longer among the inputs of the command that resumes it.

They stay in the plan without their text, so that all text chunks keep their boundaries. Their text chunks are encoded
again, and none of their documents may have been encoded before.
"""

from __future__ import annotations

from convert.driver.context import Context
from convert.errors import Refused, printable
from convert.workdir.journal import Recorded


def leave_out(context: Context, recorded: Recorded) -> None:
    """Forget the recorded shards of text chunks with such files, and note in the plan that the files are left out.

    Refused (exit 6) if a shard holds documents of such a file.
    """
    plan, workspace = context.plan, context.workspace
    left_out = {number for number, source in enumerate(plan.sources) if source.is_left_out}
    if not left_out:
        return
    chunks: set[int] = set()
    for number in left_out:
        start, stop = plan.source_starts[number : number + 2]
        chunks.update(range(start // plan.chunk_bytes, -(-stop // plan.chunk_bytes)))
    has_places = context.recorded["source_places"] == "yes"
    for shard in list(recorded.shards):
        record = recorded.shard(shard)
        assert record is not None
        if gone := left_out.intersection(counts.source_index for counts in record.sources):
            raise Refused(
                f"{printable(plan.sources[min(gone)].shown)}: is no longer an input, but {workspace.root} already "
                "contains its documents. Add it again, or start over with --restart."
            )
        if has_places and record.sources and not (record.part_digests[-2] or record.part_digests[-1]):
            raise Refused(
                f"{workspace.root}: started without source places. Resume it with --source-places no."
            )
        if shard.chunk_index in chunks:
            del recorded.shards[shard]
    workspace.write_plan()
