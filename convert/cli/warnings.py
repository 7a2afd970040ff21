"""Warnings about a finished conversion with a result that may not be intended."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from convert.cli.summary import Summary, roles_text
from convert.errors import printable, shown
from convert.options import ConvertOptions
from convert.shards.intake import END_TEXT
from tokenmill.inputs.sizes import counted
from tokenmill.inputs.source_list import SourceList
from tokenmill.stores import shown_url

LONG_DOCUMENT_BYTES = 1 << 20  # text files of one document each are shorter than this on average


def warnings_of(
    options: ConvertOptions, sources: SourceList, summary: Summary, special_tokens: Collection[str]
) -> Iterator[str]:
    """Yield a line for each warning. special_tokens: the special tokens of the tokenizer."""
    intake = summary.intake
    output, tokenizer = (printable(shown_url(path)) for path in (options.output, options.tokenizer))
    if not summary.tokens:
        yield f"warning: {output}: the dataset has no tokens ({_why_empty(summary)})"
        return
    if summary.has_mask and not summary.trained_tokens:
        yield f"warning: {output}: no token contributes to the loss: {_why_untrained(options, summary)}"
    front = summary.ends.added.front_ids
    if front and list(intake.first_ids[: 2 * len(front)]) == front * 2:
        token = printable(summary.ends.added.front[0].text)
        yield (
            f"warning: --prepend-token: the first document begins with {token} twice, because its text already has "
            "the token. Leave --prepend-token out."
        )
    yield from _split_warnings(options, summary)
    is_all_text = all(kind.format == "text" for kind in sources.kinds)
    is_long = intake.text_bytes > LONG_DOCUMENT_BYTES * summary.source_count
    if is_all_text and is_long and intake.records <= summary.source_count:
        yield (
            f"warning: --separator: occurs in none of the inputs, so each file is one document "
            f"(got {shown(options.separator)}). Pass another separator if this is not intended."
        )
    end = END_TEXT.decode()
    if intake.with_end_text:
        yield (
            f"warning: {tokenizer}: lacks an entry for {end}, so it was encoded as ordinary text in "
            f"{counted(intake.with_end_text, 'document')}. If it ends documents, pass it as --separator or train the "
            "tokenizer with --special-token."
        )
    cuts = intake.records - summary.source_count
    if is_all_text and cuts > 0 and options.separator == end and end not in special_tokens:
        yield (
            f"warning: {tokenizer}: lacks an entry for {end}, where documents are split ({counted(cuts, 'time')}), so "
            "models cannot learn where a document ends. Train the tokenizer with --special-token."
        )


def _split_warnings(options: ConvertOptions, summary: Summary) -> Iterator[str]:
    if not summary.splits["validation"].documents and options.fraction > 0:
        yield (
            f"warning: --validation-fraction: selected none of {counted(summary.documents, 'document')} for "
            f"validation (got {options.fraction:g}). Pass --validation-docs N to hold out a fixed number."
        )
    if not options.inputs:  # --validation takes all arguments after it
        yield (
            "warning: --validation: takes all the inputs, so train is empty. Put training inputs before --validation."
        )
    elif not summary.splits["train"].tokens and options.validation_docs is not None:
        docs = options.validation_docs
        yield f"warning: --validation-docs: holds out every document, so train is empty (got {docs})"


def _why_empty(summary: Summary) -> str:
    intake = summary.intake
    if not intake.records:
        return "no input could be read" if summary.unreadable else "the inputs are empty"
    empty = sum(counts.empty for counts in summary.splits.values())
    reasons = [f"{counted(count, 'record')} skipped ({reason})" for reason, count in intake.skipped.items()]
    return ", ".join([*([f"{counted(empty, 'document')} empty"] if empty else []), *reasons])


def _why_untrained(options: ConvertOptions, summary: Summary) -> str:
    if not summary.intake.messages:
        return f"every {options.completion_field} is empty"
    return (
        f"the chat template marks none of the messages ({roles_text(summary.intake.messages)}). Give the messages to "
        "train on the role that it marks, usually assistant."
    )
