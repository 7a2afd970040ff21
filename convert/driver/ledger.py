"""What is known of the conversion while it goes on: shards come in, runs of the arrays come out.

    add(record) of each shard  ->  ready() runs to write  ->  written(run)  ->  files of shards that nothing reads

Shards come in any order and are taken in theirs: what lies before a shard is the sum of the shards before it, so its
place in the arrays is known as soon as all of those are encoded. A *run* is a part of one array, aligned to the unit
that one writer may write alone: any worker can write it at any time. It reads each token of its shards once. Of a shard
that is written only what the end of the work needs is kept: counts, and the digests of the sources' blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from convert.errors import BrokenInvariant
from convert.planning.plan import Plan, ShardId
from convert.shards.intake_counts import IntakeCounts
from convert.shards.runs import NO_SHARD, Run, RunPlanner, part_of, run_tokens
from convert.shards.shard import NOTHING, PARTS, SPLITS, Part, ShardRecord
from convert.shards.write_run import WrittenFile
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.token_facts import TokenFacts
from tokenmill.inputs.digest import DIGEST_BYTES

ARRAYS = ("tokens", "starts", "places")


class _OpenShard:
    """A shard that runs have still to read. unread: of each of PARTS, the items in runs that are not written.

    has_places: whether they write the places, too."""

    __slots__ = ("record", "unread")

    def __init__(self, record: ShardRecord, has_places: bool) -> None:
        self.record = record
        counts = [record.split(split) for split in SPLITS]
        # Tokens are flagged by the starts: those are read by the runs of both arrays.
        unread = [own.tokens for own in counts] + [own.tokens + own.sequences for own in counts]
        unread += [own.sequences if has_places else 0 for own in counts]
        self.unread = [0 if inline else items for items, inline in zip(unread, record.inline, strict=True)]

    def read(self, part: str, items: int) -> bool:
        """So many items of a part are written; whether that was the last of it."""
        index = PARTS.index(part)
        if self.record.inline[index]:
            return False
        self.unread[index] -= items
        return self.unread[index] == 0

    def needed_files(self) -> set[str]:
        """The files of the shard that some run has still to read."""
        return {name for (name, _), items in zip(self.record.places, self.unread, strict=True) if items}


class Ledger:
    """The shards of a plan, their places in the arrays, and what of the arrays is written.

    counts: of each split, intake, replaced: of the shards before `next`, the one whose turn it is. shard_count,
    token_count: of all shards so far. unreadable: by source, the error of each file that is left out from its damage
    on. files: the files of the arrays that are written; facts: by path, for the files of encoded_tokens. digests: for
    all blocks of the sources so far, in order. intakes: of shards with quarantined records or lines to be counted, if
    kept. sources: int64[sources, 4], the sequences and tokens of each in train, then those in validation. has_places:
    whether seq_places is written, for shards that have them.
    """

    def __init__(
        self, plan: Plan, layout: ArrayLayout, keeps_intakes: bool, has_places: bool = False
    ) -> None:
        self._plan, self._keeps_intakes = plan, keeps_intakes
        self._arrays = ARRAYS if has_places else ARRAYS[:2]
        self._parts = tuple(part_of(split, name) for name in self._arrays for split in SPLITS)
        self.sources: NDArray[np.int64] = np.zeros((len(plan.sources), 4), dtype=np.int64)
        self.counts = dict.fromkeys(SPLITS, NOTHING)
        self.intake = IntakeCounts()
        self.replaced = self.text_bytes = 0
        self.shard_count = self.token_count = self._skipped_count = 0
        self.unreadable: dict[int, str] = {}
        self.files: list[FileRecord] = []
        self.facts: dict[str, TokenFacts] = {}
        self.digests = bytearray()
        self.intakes: list[tuple[ShardId, IntakeCounts]] = []
        self.unmerged_bytes = 0
        self.next = ShardId(0)
        self._waiting: dict[int, dict[int, ShardRecord]] = {}  # by text chunk: came before their turn
        self._open: dict[ShardId, _OpenShard] = {}
        self._ended = False
        self._planners = [
            RunPlanner(
                split,
                array_name,
                layout.write_unit_tokens if array_name == "tokens" else layout.write_unit_starts,
                run_tokens(plan.chunk_bytes),
            )
            for split in SPLITS
            for array_name in self._arrays
        ]
        self._ready: list[Run] = []

    @property
    def has_places(self) -> bool:
        """Whether seq_places is written."""
        return "places" in self._arrays

    def bytes_to_merge(self, record: ShardRecord) -> int:
        """How many bytes runs have to read of the files of a shard."""
        return sum(part.size for part in map(record.part, self._parts) if not part.inline)

    @property
    def bad_count(self) -> int:
        """How many records and files are left out."""
        return self._skipped_count + len(self.unreadable)

    @property
    def is_complete(self) -> bool:
        """Whether all shards are there."""
        return self.next.chunk_index == self._plan.chunk_count

    def add(self, record: ShardRecord) -> None:
        """A shard is there, in whatever order. BrokenInvariant for one that is there already, or for wrong counts."""
        index, number = record.id
        known = self._waiting.setdefault(index, {})
        if record.id < self.next or number in known:
            raise BrokenInvariant(f"text chunk {index}, shard {number}: added twice")
        known[number] = record
        self.unmerged_bytes += self.bytes_to_merge(record)
        self.shard_count += 1
        self.token_count += record.train.tokens + record.validation.tokens
        self._skipped_count += record.intake.skipped_count
        while self.next.number in (own := self._waiting.get(self.next.chunk_index, {})):
            index, number = self.next
            following = own.pop(number)
            if not own:
                del self._waiting[index]
            self._take(following)
            self.next = ShardId(index + 1) if following.is_last else ShardId(index, number + 1)

    def _take(self, record: ShardRecord) -> None:
        self._check(record)
        opened = _OpenShard(record, self.has_places)
        for planner in self._planners:
            self._ready += planner.take(record, self.counts[planner.split].tokens)
        if any(opened.unread):
            self._open[record.id] = opened
        for split in SPLITS:
            self.counts[split] = self.counts[split].plus(record.split(split))
        self.intake = self.intake.plus(record.intake)
        if self._keeps_intakes and (record.intake.quarantine_bytes >= 0 or record.intake.lines):
            self.intakes.append((record.id, record.intake))
        for index, *counts in record.sources:
            self.sources[index] += counts
        for index, error in record.intake.unreadable:
            self.unreadable.setdefault(index, error)
        self.replaced += record.replaced
        self.text_bytes += record.text_bytes
        self.digests += record.digests

    def _check(self, record: ShardRecord) -> None:
        """BrokenInvariant unless every byte, block and document of the shard's text is accounted for."""
        chunk = self._plan.chunk(record.id.chunk_index)
        what = f"text chunk {chunk.index}" + (f", shard {record.id.number}" if record.id.number else "")
        expected = sum(1 for _ in self._plan.blocks(chunk)) if record.is_last else 0
        if len(record.digests) != expected * DIGEST_BYTES:
            raise BrokenInvariant(
                f"{what}: {len(record.digests) / DIGEST_BYTES:g} source blocks were hashed instead of {expected}"
            )
        taken = 0
        for split in SPLITS:
            counts = record.split(split)
            taken += counts.documents
            if counts.documents != counts.sequences + counts.empty:
                raise BrokenInvariant(
                    f"{what}, {split}: {counts.documents} documents, but {counts.sequences} written + "
                    f"{counts.empty} empty"
                )
        if record.intake.records != taken + record.intake.skipped_count:
            raise BrokenInvariant(
                f"{what}: {record.intake.records} records, but {taken} documents + "
                f"{record.intake.skipped_count} skipped"
            )

    def ready(self) -> Iterator[Run]:
        """The runs that became possible since the last call, each once; with the last shard the arrays end."""
        if self.is_complete and not self._ended:
            self._ended = True
            for planner in self._planners:
                self._ready += planner.end(self.counts[planner.split].tokens)
        ready, self._ready = self._ready, []
        yield from ready

    def written(self, run: Run, files: list[WrittenFile]) -> list[str]:
        """A run is written and its record kept: the files of shards that no other run reads."""
        self.files += (file.record for file in files)
        self.facts.update((file.record.path, file.facts) for file in files if file.facts is not None)
        unneeded = []
        for own in run.slices:
            shard = own.parts[0].shard
            if shard == NO_SHARD:
                continue
            opened = self._open[shard]
            for part in own.parts:
                if opened.read(part.name, own.stop - own.start):
                    self.unmerged_bytes -= part.size
                    name = opened.record.part(part.name).file
                    if name not in opened.needed_files():
                        unneeded.append(name)
            if not any(opened.unread):
                del self._open[shard]
        return unneeded

    def missing(self, chunk_index: int) -> tuple[list[int], int | None]:
        """Which shards of a text chunk are not there, below the first behind all that are: that one too, or None if the
        last of the chunk is there."""
        if chunk_index < self.next.chunk_index:
            return [], None
        taken = self.next.number if chunk_index == self.next.chunk_index else 0
        waiting = self._waiting.get(chunk_index, {})
        following = max([taken - 1, *waiting]) + 1
        gaps = [number for number in range(taken, following) if number not in waiting]
        last = waiting.get(following - 1)
        return gaps, None if last is not None and last.is_last else following

    def is_encoded(self, chunk_index: int) -> bool:
        """Whether all shards of a text chunk are there."""
        return self.missing(chunk_index) == ([], None)

    def needed_files(self) -> set[str]:
        """The names of the files that some run has still to read."""
        waiting = {name for record in self._waiting_records() for name, _ in record.places}
        return waiting.union(*(own.needed_files() for own in self._open.values())) - {""}

    def record(self, shard: ShardId) -> ShardRecord | None:
        """That of a shard of which something is still to be read; None for one that is written whole, or not there."""
        opened = self._open.get(shard)
        return self._waiting.get(shard.chunk_index, {}).get(shard.number) if opened is None else opened.record

    def replace(self, record: ShardRecord) -> set[str]:
        """A shard was made again: it holds the same and lies elsewhere. The files that nothing reads any more: all of
        the former ones, and of its own those that are written already."""
        opened = self._open[record.id]
        all_files = {name for name, _ in (*opened.record.places, *record.places)} - {""}
        opened.record = record
        return all_files - opened.needed_files()

    def current(self, run: Run) -> Run:
        """The run with the places where its shards lie now."""

        def moved(part: Part) -> Part:
            if part.shard == NO_SHARD:
                return part
            now = self._open[part.shard].record.part(part.name)
            return part._replace(file=now.file, offset=now.offset)

        slices = (own._replace(parts=tuple(map(moved, own.parts))) for own in run.slices)
        return run._replace(slices=tuple(slices))

    def _waiting_records(self) -> Iterator[ShardRecord]:
        return chain.from_iterable(own.values() for own in self._waiting.values())

    def check_whole(self) -> None:
        """BrokenInvariant unless all text chunks are there, and their bytes are the corpus."""
        if not self.is_complete or self._waiting or self._open:
            raise BrokenInvariant(
                f"text chunk {self.next.chunk_index} of {self._plan.chunk_count}: incomplete, with "
                f"{len(list(self._waiting_records()))} shards waiting and {len(self._open)} not written"
            )
        if self.text_bytes != self._plan.total_bytes:
            raise BrokenInvariant(
                f"encoded text chunks of {self.text_bytes} bytes, but the sources have {self._plan.total_bytes}"
            )
        of_splits = [
            count for split in SPLITS for count in (self.counts[split].sequences, self.counts[split].tokens)
        ]
        if self.sources.sum(axis=0).tolist() != of_splits:
            raise BrokenInvariant(
                f"the sources have {self.sources.sum(axis=0).tolist()} sequences and tokens, but the splits {of_splits}"
            )
