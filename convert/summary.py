"""What a conversion came to: the counts, which must add up, and where the time went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from convert.errors import BrokenInvariant, printable
from convert.plan import BLOCK_BYTES, Plan
from convert.progress import bytes_text
from convert.shard import SPLITS, ShardRecord, SplitCounts


@dataclass(frozen=True)
class Summary:
    """A finished conversion. seconds: by stage, in order; worker_seconds: by step, all workers together."""

    output: str
    source_count: int
    text_bytes: int
    disk_bytes: int
    splits: Mapping[str, SplitCounts]
    replaced: int
    text_chunks: int
    reused_chunks: int
    workers: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    worker_seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """The tokens of both splits."""
        return sum(counts.tokens for counts in self.splits.values())

    @property
    def documents(self) -> int:
        """The documents read, empty ones included."""
        return sum(counts.documents for counts in self.splits.values())

    def lines(self, timings: bool = False) -> list[str]:
        """The summary for people; timings adds the seconds of the workers by step."""
        seconds = max(sum(self.seconds.values()), 1e-9)
        files = f"{self.source_count:,} file{'s' if self.source_count != 1 else ''}"
        lines = [
            f"{printable(self.output)}: {self.tokens:,} tokens from {bytes_text(self.text_bytes)} of text "
            f"in {files}, {seconds:.2f} s ({bytes_text(self.text_bytes / seconds)}/s), verified"
        ]
        for name, counts in self.splits.items():
            documents = f"{counts.documents:,} document{'s' if counts.documents != 1 else ''}"
            lines.append(
                f"  {name:<10} {documents} = {counts.sequences:,} written + {counts.empty:,} empty; "
                f"{counts.tokens:,} tokens"
            )
        size = f"  size       {bytes_text(self.disk_bytes)} on disk"
        if self.tokens:
            size += f", {self.disk_bytes / self.tokens:.2f} bytes a token of {self.text_bytes / self.tokens:.2f} bytes"
            size += " of text"
        lines.append(size)
        if self.replaced:
            lines.append(f"  replaced   {self.replaced:,} invalid UTF-8 sequences by U+FFFD")
        if self.reused_chunks:
            lines.append(
                f"  reused     {self.reused_chunks:,} of {self.text_chunks:,} text chunks from an earlier run"
            )
        lines.append("  seconds    " + _times(self.seconds))
        if timings and self.worker_seconds:
            lines.append(f"  workers    {_times(self.worker_seconds)} (of {self.workers} together)")
        return lines


def _times(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())


def total_counts(records: Iterable[ShardRecord], split: str) -> SplitCounts:
    """The counts of a split over all shards."""
    counts = [record.split(split) for record in records]
    return SplitCounts(
        sum(c.documents for c in counts),
        sum(c.empty for c in counts),
        sum(c.sequences for c in counts),
        sum(c.tokens for c in counts),
        max((c.max_token_id for c in counts), default=0),
    )


def check_conservation(plan: Plan, records: Sequence[ShardRecord]) -> None:
    """Raise BrokenInvariant unless every byte, block and document of the sources is accounted for.

    Each text chunk once, their bytes the corpus, each block of each source hashed once, and in each chunk and split
    documents = written + empty.
    """
    if [record.chunk_index for record in records] != list(range(plan.chunk_count)):
        raise BrokenInvariant(
            f"{len(records)} shards do not match the {plan.chunk_count} text chunks of the plan"
        )
    text_bytes = sum(record.text_bytes for record in records)
    if text_bytes != plan.total_bytes:
        raise BrokenInvariant(
            f"text chunks of {text_bytes} bytes were encoded, the sources have {plan.total_bytes}"
        )
    blocks = sorted((source, block) for record in records for source, block, _ in record.digests)
    expected = [
        (index, block)
        for index, source in enumerate(plan.sources)
        for block in range(-(-source.size_bytes // BLOCK_BYTES))
    ]
    if blocks != expected:
        raise BrokenInvariant(f"{len(blocks)} blocks of the sources were hashed, {len(expected)} exist")
    for record in records:
        for split in SPLITS:
            counts = record.split(split)
            if counts.documents != counts.sequences + counts.empty:
                raise BrokenInvariant(
                    f"text chunk {record.chunk_index}, {split}: {counts.documents} documents are not "
                    f"{counts.sequences} written + {counts.empty} empty"
                )
