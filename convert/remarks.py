"""What a finished conversion should be told of: all went well, but it may not be what was meant."""

from __future__ import annotations

from collections.abc import Iterator

from bpe.sizes import counted
from convert.inputs.source_list import SourceList
from convert.options import ConvertOptions
from convert.summary import Summary

LONG_DOCUMENT_BYTES = 1 << 20  # files that are one document each are shorter, on average


def remarks(options: ConvertOptions, sources: SourceList, summary: Summary) -> Iterator[str]:
    """A line for each: an empty dataset, an empty split, a separator that is nowhere."""
    intake = summary.intake
    if not summary.tokens:
        what = "all documents are empty or left out" if intake.records else "the inputs are empty"
        yield f"warning: {what}, and so is the dataset"
        return
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
        and intake.records <= len(sources)
        and intake.text_bytes > LONG_DOCUMENT_BYTES * len(sources)
    ):
        yield (
            f"warning: the separator {options.separator!r} is in none of the inputs, so each file is one document; "
            "if that is not meant, name another with --separator"
        )
