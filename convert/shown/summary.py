"""The summary of a conversion: its counts, which must add up, and its times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from convert.document_ends import NO_DOCUMENT_ENDS, DocumentEnds
from convert.errors import printable
from convert.shards.intake_counts import IntakeCounts
from convert.shards.shard import SplitCounts
from convert.shown.ends import ends_lines
from tokenmill.inputs.sizes import bytes_text, counted

FIRST_WORDS = 80  # characters
SHOWN_FILES = 5


@dataclass(frozen=True)
class Summary:
    """A finished conversion. seconds: by stage, in order; worker_seconds: by step, all workers together."""

    output: str
    source_count: int
    source_bytes: int
    disk_bytes: int
    array_bytes: int  # of them, tokens and where sequences start
    splits: Mapping[str, SplitCounts]
    replaced: int
    intake: IntakeCounts
    text_chunks: int
    shards: int
    reused_shards: int
    workers: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    worker_seconds: Mapping[str, float] = field(default_factory=dict)
    first_words: str = ""  # of the first sequence of train, decoded
    unreadable: tuple[str, ...] = ()  # an error for each file that was left out from its damage on
    quarantine: str = ""  # the name of the file in the dataset, if there is one
    ends: DocumentEnds = NO_DOCUMENT_ENDS
    has_mask: bool = False
    without_checksums: str = ""  # the layout, where reading compares no checksum
    usual_end: str | None = None  # the special token of the tokenizer that by its name ends a document
    of_chats: bool = False  # whether a chat template makes all documents

    @property
    def tokens(self) -> int:
        """The tokens of both splits."""
        return sum(counts.tokens for counts in self.splits.values())

    @property
    def trained_tokens(self) -> int:
        """The tokens of both splits that are trained."""
        return self.tokens - sum(counts.not_trained for counts in self.splits.values())

    @property
    def documents(self) -> int:
        """The documents taken in, empty ones included."""
        return sum(counts.documents for counts in self.splits.values())

    @property
    def text_bytes(self) -> int:
        """The text of the documents; the files are shorter where they are compressed, else longer."""
        return self.intake.text_bytes

    def _conservation(self) -> str:
        written = sum(counts.sequences for counts in self.splits.values())
        empty = sum(counts.empty for counts in self.splits.values())
        return f"{written:,} written + {empty:,} empty + {self.intake.skipped_count:,} skipped"

    def lines(self, timings: bool = False) -> list[str]:
        """The summary for people; timings adds the seconds of the workers by step."""
        seconds = max(sum(self.seconds.values()), 1e-9)
        # The rate is of uncompressed text, as in other tools.
        text = f" with {bytes_text(self.text_bytes)} of text" if self.text_bytes > self.source_bytes else ""
        lines = [
            f"{printable(self.output)}: {counted(self.tokens, 'token')} from {bytes_text(self.source_bytes)} "
            f"in {counted(self.source_count, 'file')}{text}, {seconds:.2f} s "
            f"({bytes_text(max(self.source_bytes, self.text_bytes) / seconds)}/s), verified"
        ]
        lines.append(f"  documents  {self.intake.records:,} = {self._conservation()}")
        for name, counts in self.splits.items():
            lines.append(
                f"  {name:<10} {counted(counts.documents, 'document')} = {counts.sequences:,} written + "
                f"{counts.empty:,} empty; {counted(counts.tokens, 'token')}"
            )
        if self.has_mask:
            lines.append(
                f"  loss mask  {counted(self.trained_tokens, 'token')} trained, "
                f"{self.tokens - self.trained_tokens:,} not"
            )
        if self.intake.dropped:
            dropped = counted(sum(self.intake.dropped.values()), "message")
            lines.append(f"  dropped    {dropped} by the chat template: {roles_text(self.intake.dropped)}")
        size = f"  size       {bytes_text(self.disk_bytes)} on disk"
        if self.tokens:
            size += (
                f"; per token, {self.array_bytes / self.tokens:.2f} bytes in the arrays and "
                f"{self.text_bytes / self.tokens:.2f} bytes of text"
            )
        lines.append(size)
        if self.without_checksums:
            lines.append(
                f"  checksums  {self.without_checksums} has none that reading checks; `tokenmill verify` "
                "detects damage"
            )
        lines += ends_lines(self.ends, self.of_chats, self.usual_end)
        if self.intake.longest:
            *others, least = self.intake.longest
            lines.append(
                f"  longest    {''.join(f'{length:,}, ' for length in others)}{counted(least, 'token')}"
            )
        if self.first_words:
            shown = printable(self.first_words)
            lines.append(f"  begins     {shown[:FIRST_WORDS]}{'...' if len(shown) > FIRST_WORDS else ''}")
        for reason, count in self.intake.skipped.items():
            lines.append(f"  skipped    {counted(count, 'record')}: {reason}")
        if self.unreadable:
            lines.append(
                f"  unreadable {counted(len(self.unreadable), 'file')}, skipped from the damaged part on:"
            )
            lines += [f"             {error}" for error in self.unreadable[:SHOWN_FILES]]
            if len(self.unreadable) > SHOWN_FILES:
                more = len(self.unreadable) - SHOWN_FILES
                lines.append(f"             and {more:,} more, listed in the manifest")
        if self.quarantine:
            lines.append(f"  quarantine {printable(self.output)}/{self.quarantine} has the bad records")
        if self.intake.blank:
            lines.append(f"  blank      {counted(self.intake.blank, 'line')}")
        if self.intake.with_special:
            lines.append(
                f"  special    {counted(self.intake.with_special, 'document')} contain the text of a special token, "
                f"which was encoded as ordinary text"
            )
        if self.replaced:
            lines.append(f"  replaced   {counted(self.replaced, 'invalid UTF-8 sequence')} with U+FFFD")
        if self.reused_shards:
            lines.append(
                f"  reused     {self.reused_shards:,} of {counted(self.shards, 'temporary shard')} from an earlier run"
            )
        lines.append("  seconds    " + _times(self.seconds))
        if timings and self.worker_seconds:
            lines.append(
                f"  workers    {_times(self.worker_seconds)} (total over {counted(self.workers, 'worker')})"
            )
        return lines


def roles_text(counts: Mapping[str, int]) -> str:
    """{"user": 2, "system": 1} -> "2 user, 1 system"."""
    return printable(", ".join(f"{count:,} {role}" for role, count in counts.items()))


def _times(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())
