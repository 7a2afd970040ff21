"""Any number of counts added up, in memory or in files: `FAN_IN` at once, more in several rounds through files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from bpe.errors import BadArgument
from bpe.pretoken_counts.counts_facts import Arrays, CountsFacts, merged_facts
from bpe.pretoken_counts.counts_file import CountsFile, write_counts_file
from bpe.pretoken_counts.merge_counts import merge_sorted
from bpe.pretoken_counts.workspace import Workspace

FAN_IN: Final = 64  # streams merged at once: 40 MB of blocks, and far from any limit of open files


class Counted(Protocol):
    """A part: counts that can be read block by block."""

    def blocks(self) -> Iterable[Arrays]:
        """Blocks that ascend, within and from one to the next, and no pretoken twice."""
        ...


def merge_parts(parts: Sequence[Counted], workspace: Workspace | None = None) -> Iterator[Arrays]:
    """The sum of the parts, sorted, in blocks; BadArgument for more than FAN_IN parts without a workspace."""
    parts = list(parts)
    while len(parts) > FAN_IN:
        if workspace is None:
            raise BadArgument(f"more than {FAN_IN} parts are merged through files; give a workspace")
        # The first ones only: when FAN_IN are left, none is copied twice in vain.
        group = min(FAN_IN, len(parts) - FAN_IN + 1)
        merged = workspace.new_file()
        write_counts_file(merged, _merge(parts[:group]), CountsFacts(), temporary=True)
        parts = [*parts[group:], CountsFile(merged)]
    return _merge(parts)


def facts_of(files: Sequence[CountsFile]) -> CountsFacts:
    """The facts of all files together; BadArgument naming two whose pattern or special tokens differ."""
    return merged_facts([(str(file.path), file.facts) for file in files])


def _merge(parts: Sequence[Counted]) -> Iterator[Arrays]:
    return merge_sorted([part.blocks() for part in parts])
