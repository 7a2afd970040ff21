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
    """Yield the text of each warning. special_tokens: the special tokens of the tokenizer."""
    intake, splits, end = summary.intake, summary.splits, END_TEXT.decode()
    output, tokenizer = (printable(shown_url(path)) for path in (options.output, options.tokenizer))
    if not summary.tokens:
        yield f"{output}: the dataset has no tokens ({_why_empty(summary)})"
        return
    if summary.has_mask and not summary.trained_tokens:
        yield f"{output}: no token contributes to the loss: {_why_untrained(options, summary)}"
    front = summary.ends.added.front_ids
    if front and list(intake.first_ids[: 2 * len(front)]) == front * 2:
        token = printable(summary.ends.added.front[0].text)
        twice = f"the first document begins with {token} twice, because its text already has the token"
        yield f"--prepend-token: {twice}. Leave --prepend-token out."
    if not splits["validation"].documents and options.fraction > 0:
        none = f"selected none of {counted(summary.documents, 'document')} for validation"
        yield (
            f"--validation-fraction: {none} (got {options.fraction:g}). Pass --validation-docs N to hold out a fixed "
            "number."
        )
    if not options.inputs:  # --validation takes all arguments after it
        yield "--validation: takes all the inputs, so train is empty. Put training inputs before --validation."
    elif not splits["train"].tokens and options.validation_docs is not None:
        docs = options.validation_docs
        yield f"--validation-docs: holds out every document, so train is empty (got {docs})"
    is_all_text = all(kind.format == "text" for kind in sources.kinds)
    is_long = intake.text_bytes > LONG_DOCUMENT_BYTES * summary.source_count
    cuts = intake.records - summary.source_count
    if is_all_text and is_long and cuts <= 0:
        none = f"occurs in none of the inputs, so each file is one document (got {shown(options.separator)})"
        yield f"--separator: {none}. Pass another separator if this is not intended."
    lacks = f"{tokenizer}: lacks an entry for {end}"
    if intake.with_end_text:
        documents = counted(intake.with_end_text, "document")
        yield (
            f"{lacks}, so it was encoded as ordinary text in {documents}. If it ends documents, pass it as --separator "
            "or train the tokenizer with --special-token."
        )
    if is_all_text and cuts > 0 and options.separator == end and end not in special_tokens:
        yield (
            f"{lacks}, where documents are split ({counted(cuts, 'time')}), so models cannot learn where a document "
            "ends. Train the tokenizer with --special-token."
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
