"""What a finished conversion should be told of: all went well, but it may not be what was meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from convert.errors import printable, shown
from convert.options import ConvertOptions
from convert.shards.intake import END_TEXT
from convert.shown.summary import Summary, roles_text
from tokenmill.inputs.sizes import counted
from tokenmill.inputs.source_list import SourceList
from tokenmill.stores import shown_url

LONG_DOCUMENT_BYTES = 1 << 20  # files that are one document each are shorter, on average


def remarks(
    options: ConvertOptions, sources: SourceList, summary: Summary, special_tokens: Collection[str]
) -> Iterator[str]:
    """A line for each: an empty dataset, an empty split, a separator that is nowhere, END_TEXT that is no token.

    special_tokens: the tokenizer's.
    """
    intake = summary.intake
    output, tokenizer = (printable(shown_url(path)) for path in (options.output, options.tokenizer))
    if not summary.tokens:
        yield f"warning: {output}: the dataset has no tokens ({_why_empty(summary)})"
        return
    if summary.has_mask and not summary.trained_tokens:
        yield f"warning: {output}: no token contributes to the loss: {_why_untrained(options, summary)}"
    front = summary.ends.added.front_ids
    if front and list(intake.first_ids[: 2 * len(front)]) == front * 2:
        yield (
            f"warning: --prepend-token: the first document begins with "
            f"{printable(summary.ends.added.front[0].text)} twice, because its text already has the token. "
            "Leave --prepend-token out."
        )
    if not summary.splits["validation"].documents and options.fraction > 0:
        yield (
            f"warning: --validation-fraction: selected none of {counted(summary.documents, 'document')} for "
            f"validation (got {options.fraction:g}). Pass --validation-docs N to hold out a fixed number."
        )
    if not options.inputs:  # all that follows --validation belongs to it
        yield (
            "warning: --validation: takes all the inputs, so train is empty. Put training inputs before --validation."
        )
    elif not summary.splits["train"].tokens and options.validation_docs is not None:
        yield (
            f"warning: --validation-docs: holds out every document, so train is empty (got {options.validation_docs})"
        )
    if (
        all(kind.format == "text" for kind in sources.kinds)
        and intake.records <= summary.source_count
        and intake.text_bytes > LONG_DOCUMENT_BYTES * summary.source_count
    ):
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
    cut = intake.records - summary.source_count  # at separators, where all inputs are text
    if (
        options.separator == end
        and end not in special_tokens
        and cut > 0
        and all(kind.format == "text" for kind in sources.kinds)
    ):
        yield (
            f"warning: {tokenizer}: lacks an entry for {end}, where documents are split ({counted(cut, 'time')}), so "
            "models cannot learn where a document ends. Train the tokenizer with --special-token."
        )


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
