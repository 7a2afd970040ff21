"""The summary of a conversion: its counts, which must add up, its times, and warnings about an unintended result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bpe.end_tokens import usual_end
from bpe.tokenizer import Tokenizer
from convert.document_ends import DocumentEnds
from convert.errors import printable, shown
from convert.options import ConvertOptions
from convert.shards.intake import END_TEXT
from convert.shards.shard import IntakeCounts, SplitCounts
from tokenmill.inputs.sizes import bytes_text, counted
from tokenmill.inputs.source_list import SourceList
from tokenmill.stores import shown_url

MAX_BEGINNING = 80  # characters shown of the first sequence
MAX_FILES = 5  # unreadable files listed
LONG_DOCUMENT_BYTES = 1 << 20  # text files of one document each are shorter than this on average


@dataclass(frozen=True)
class Summary:
    """A finished conversion.

    disk_bytes: all files of the dataset. array_bytes: the files of its arrays.
    shards, reused_shards: temporary shards, and those taken over from an earlier run.
    seconds: by stage, in order. worker_seconds: by step, summed over all workers.
    unreadable: one error for each file that was skipped from the damaged part on.
    quarantine: the name of the file with bad records, "" if there is none.
    """

    options: ConvertOptions
    tokenizer: Tokenizer
    sources: SourceList
    ends: DocumentEnds
    disk_bytes: int
    array_bytes: int
    splits: Mapping[str, SplitCounts]
    intake: IntakeCounts
    shards: int
    reused_shards: int
    workers: int
    seconds: Mapping[str, float]
    worker_seconds: Mapping[str, float]
    unreadable: tuple[str, ...]
    quarantine: str

    @property
    def source_count(self) -> int:
        """The number of input files."""
        return len(self.sources)

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
        """The documents of both splits, empty ones included."""
        return sum(counts.documents for counts in self.splits.values())

    def lines(self, timings: bool = False) -> list[str]:
        """Return the summary as lines for people. timings: with the seconds of the workers by step."""
        lines = [*self._counts(), *self._exceptions(), f"  seconds    {_times(self.seconds)}"]
        if timings and self.worker_seconds:
            workers = counted(self.workers, "worker")
            lines.append(f"  workers    {_times(self.worker_seconds)} (total over {workers})")
        return lines

    def _counts(self) -> Iterator[str]:
        intake, text_bytes = self.intake, self.intake.text_bytes
        seconds = max(sum(self.seconds.values()), 1e-9)
        # Like other tools, report the throughput in uncompressed text.
        source_bytes = sum(source.size_bytes for source in self.sources)
        rate = bytes_text(max(source_bytes, text_bytes) / seconds)
        text = f" with {bytes_text(text_bytes)} of text" if text_bytes > source_bytes else ""
        yield (
            f"{printable(self.options.output)}: {counted(self.tokens, 'token')} from {bytes_text(source_bytes)} "
            f"in {counted(self.source_count, 'file')}{text}, {seconds:.2f} s ({rate}/s), verified"
        )
        written = sum(counts.sequences for counts in self.splits.values())
        empty = sum(counts.empty for counts in self.splits.values())
        parts = f"{written:,} written + {empty:,} empty + {intake.skipped_count:,} skipped"
        yield f"  documents  {intake.records:,} = {parts}"
        for name, counts in self.splits.items():
            parts = (
                f"{counts.sequences:,} written + {counts.empty:,} empty; {counted(counts.tokens, 'token')}"
            )
            yield f"  {name:<10} {counted(counts.documents, 'document')} = {parts}"
        if self.options.has_mask:
            not_trained = self.tokens - self.trained_tokens
            yield f"  loss mask  {counted(self.trained_tokens, 'token')} trained, {not_trained:,} not"
        size = f"  size       {bytes_text(self.disk_bytes)} on disk"
        if self.tokens:
            per_token = f"{self.array_bytes / self.tokens:.2f} bytes in the arrays and "
            size += f"; per token, {per_token}{text_bytes / self.tokens:.2f} bytes of text"
        yield size
        yield from ends_lines(self.ends, self.tokenizer, self.options)
        if words := printable(self.tokenizer.decode(list(self.intake.first_ids))):
            yield f"  begins     {words[:MAX_BEGINNING]}{'...' if len(words) > MAX_BEGINNING else ''}"

    def _exceptions(self) -> Iterator[str]:
        intake = self.intake
        if intake.dropped:
            dropped = counted(sum(intake.dropped.values()), "message")
            yield f"  dropped    {dropped} by the chat template: {roles_text(intake.dropped)}"
        for reason, count in intake.skipped.items():
            yield f"  skipped    {counted(count, 'record')}: {reason}"
        if self.unreadable:
            yield f"  unreadable {counted(len(self.unreadable), 'file')}, skipped from the damaged part on:"
            yield from (f"             {error}" for error in self.unreadable[:MAX_FILES])
            if (more := len(self.unreadable) - MAX_FILES) > 0:
                yield f"             and {more:,} more, listed in the manifest"
        if self.quarantine:
            yield f"  quarantine {printable(self.options.output)}/{self.quarantine} has the bad records"
        if intake.with_special:
            documents = counted(intake.with_special, "document")
            yield f"  special    {documents} contain the text of a special token, which was encoded as ordinary text"
        if intake.replaced:
            yield f"  replaced   {counted(intake.replaced, 'invalid UTF-8 sequence')} with U+FFFD"
        if self.reused_shards:
            shards = counted(self.shards, "temporary shard")
            yield f"  reused     {self.reused_shards:,} of {shards} from an earlier run"


def ends_lines(ends: DocumentEnds, tokenizer: Tokenizer, options: ConvertOptions) -> Iterator[str]:
    """Describe the tokens that the run adds, and the tokenizer's template if it differs."""
    of_chats, end = options.messages_field is not None, usual_end(tokenizer)
    if ends.added.per_document:
        yield f"  ends       each document {ends.added}"
    elif end is not None and not of_chats:
        advice = f"add one with --append-token '{end}'"
        yield f"  ends       no token ends a document, so a model can't learn to stop; {advice}"
    if ends.template.per_document and ends.differ and not of_chats:
        template = f"with the tokenizer's own template, each document {ends.template}"
        yield f"  template   differs: {template}; add those tokens with --template"


def roles_text(counts: Mapping[str, int]) -> str:
    """{"user": 2, "system": 1} -> "2 user, 1 system"."""
    return printable(", ".join(f"{count:,} {role}" for role, count in counts.items()))


def _times(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())


def warnings_of(summary: Summary) -> Iterator[str]:
    """Yield the text of each warning."""
    options = summary.options
    intake, splits, end = summary.intake, summary.splits, END_TEXT.decode()
    output, tokenizer = (printable(shown_url(path)) for path in (options.output, options.tokenizer))
    if not summary.tokens:
        yield f"{output}: the dataset has no tokens ({_why_empty(summary)})"
        return
    if options.has_mask and not summary.trained_tokens:
        why = f"every {options.completion_field} is empty"
        if intake.messages:
            why = (
                f"the chat template marks none of the messages ({roles_text(intake.messages)}). Give the messages to "
                "train on the role that it marks, usually assistant."
            )
        yield f"{output}: no token contributes to the loss: {why}"
    front = summary.ends.added.front_ids
    if front and list(intake.first_ids[: 2 * len(front)]) == front * 2:
        yield (
            f"--prepend-token: the first document begins with {printable(summary.ends.added.front[0].text)} twice, "
            "because its text already has the token. Leave --prepend-token out."
        )
    if not splits["validation"].documents and options.fraction > 0:
        yield (
            f"--validation-fraction: selected none of {counted(summary.documents, 'document')} for validation "
            f"(got {options.fraction:g}). Pass --validation-docs N to hold out a fixed number."
        )
    if not options.inputs:  # --validation takes all arguments after it
        yield "--validation: takes all the inputs, so train is empty. Put training inputs before --validation."
    elif not splits["train"].tokens and options.validation_docs is not None:
        docs = options.validation_docs
        yield f"--validation-docs: holds out every document, so train is empty (got {docs})"
    is_all_text = all(kind.format == "text" for kind in summary.sources.kinds)
    cuts = intake.records - summary.source_count
    if is_all_text and intake.text_bytes > LONG_DOCUMENT_BYTES * summary.source_count and cuts <= 0:
        yield (
            "--separator: occurs in none of the inputs, so each file is one document "
            f"(got {shown(options.separator)}). Pass another separator if this is not intended."
        )
    if intake.with_end_text:
        yield (
            f"{tokenizer}: lacks an entry for {end}, so it was encoded as ordinary text in "
            f"{counted(intake.with_end_text, 'document')}. If it ends documents, pass it as --separator or train the "
            "tokenizer with --special-token."
        )
    if is_all_text and cuts > 0 and options.separator == end and end not in summary.tokenizer.special_tokens:
        yield (
            f"{tokenizer}: lacks an entry for {end}, where documents are split ({counted(cuts, 'time')}), so models "
            "cannot learn where a document ends. Train the tokenizer with --special-token."
        )


def _why_empty(summary: Summary) -> str:
    intake = summary.intake
    if not intake.records:
        return "no input could be read" if summary.unreadable else "the inputs are empty"
    empty = sum(counts.empty for counts in summary.splits.values())
    reasons = [f"{counted(count, 'record')} skipped ({reason})" for reason, count in intake.skipped.items()]
    return ", ".join([*([f"{counted(empty, 'document')} empty"] if empty else []), *reasons])
