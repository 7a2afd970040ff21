"""What summaries and dry runs say of the begin and end tokens of documents."""

from __future__ import annotations

from convert.document_ends import DocumentEnds


def ends_lines(ends: DocumentEnds, of_chats: bool, usual_end: str | None = None) -> list[str]:
    """Describe the tokens that the run adds, and the tokenizer's template if it differs.

    of_chats: whether a chat template makes all documents. usual_end: the special token of the tokenizer that by its
    name ends a document.
    """
    lines = []
    if ends.added.per_document:
        lines.append(f"  ends       each document {ends.added}")
    elif usual_end is not None and not of_chats:
        lines.append(
            f"  ends       no token ends a document, so a model can't learn to stop; add one with "
            f"--append-token '{usual_end}'"
        )
    if ends.template.per_document and ends.differ and not of_chats:
        lines.append(
            f"  template   differs: with the tokenizer's own template, each document {ends.template}; add those "
            "tokens with --template"
        )
    return lines
