"""What a finished conversion should be told of: all went well, but it may not be what was meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from convert.errors import printable
from convert.options import ConvertOptions
from convert.shards.intake import END_TEXT
from convert.shown.summary import Summary, roles_text
from tokenmill.inputs.sizes import counted
from tokenmill.inputs.source_list import SourceList

LONG_DOCUMENT_BYTES = 1 << 20  # files that are one document each are shorter, on average


def remarks(
    options: ConvertOptions, sources: SourceList, summary: Summary, special_tokens: Collection[str]
) -> Iterator[str]:
    """A line for each: an empty dataset, an empty split, a separator that is nowhere, END_TEXT that is no token.

    special_tokens: the tokenizer's.
    """
    intake = summary.intake
    if not summary.tokens:
        yield f"warning: the dataset has no tokens: {_why_empty(summary)}"
        return
    if summary.has_mask and not summary.trained_tokens:
        yield f"warning: no token is trained: {_why_untrained(options, summary)}"
    front = summary.ends.added.front_ids
    if front and list(intake.first_ids[: 2 * len(front)]) == front * 2:
        yield (
            f"warning: the first document begins with {printable(summary.ends.added.front[0].text)} twice: its text "
            "has the token already; leave --prepend-token out"
        )
    if not summary.splits["validation"].documents and options.fraction > 0:
        yield (
            f"warning: of {counted(summary.documents, 'document')} none fell into validation by --validation-fraction "
            f"{options.fraction:g}; --validation-docs N holds out a number of them"
        )
    if not options.inputs:  # all that follows --validation belongs to it
        yield "warning: all inputs are those of --validation and train is empty; others stand before --validation"
    elif not summary.splits["train"].tokens and options.validation_docs is not None:
        yield f"warning: --validation-docs {options.validation_docs} holds out all there is; nothing is left for train"
    if (
        all(kind.format == "text" for kind in sources.kinds)
        and intake.records <= summary.source_count
        and intake.text_bytes > LONG_DOCUMENT_BYTES * summary.source_count
    ):
        yield (
            f"warning: the separator {options.separator!r} is in none of the inputs, so each file is one document; "
            "if that is not meant, name another with --separator"
        )
    end = END_TEXT.decode()
    if intake.with_end_text:
        yield (
            f"warning: {counted(intake.with_end_text, 'document')} held {end}, which the tokenizer has no entry for: "
            "it was encoded as ordinary text; if it ends documents, name it with --separator, or train with "
            "--special-token"
        )
    cut = intake.records - summary.source_count  # at separators, where all inputs are text
    if (
        options.separator == end
        and end not in special_tokens
        and cut > 0
        and all(kind.format == "text" for kind in sources.kinds)
    ):
        yield (
            f"warning: documents are cut at {end} in {counted(cut, 'place')}, but the tokenizer has no such entry, so "
            "no model can be told where a document ends; train it with --special-token"
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
        f"the chat template marks no text of the messages ({roles_text(summary.intake.messages)}); the messages to "
        "train on must have the role that it names, usually assistant"
    )
