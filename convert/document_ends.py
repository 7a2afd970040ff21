"""The begin and end tokens that a run adds to documents, and the tokens of the tokenizer's post-processor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from bpe.end_tokens import NO_ENDS, EndToken, EndTokens, end_tokens, post_processor_ends
from bpe.tokenizer import Tokenizer
from convert.options import ConvertOptions


class DocumentEnds(NamedTuple):
    """added: the tokens that the run adds to each document. template: the tokens that the tokenizer's files define."""

    added: EndTokens
    template: EndTokens

    @property
    def differ(self) -> bool:
        """Whether the run adds other tokens than the tokenizer's files define."""
        added, template = ((ends.front_ids, ends.back_ids) for ends in self)
        return added != template

    def recorded(self) -> dict[str, Any]:
        """Return the manifest's facts about the template; {} if it adds no token.

        {"tokenizer_template": {"front": [{"id": 1, "text": "<s>"}], "back": [], "is_added": True}}
        """
        if not self.template.per_document:
            return {}
        front, back = ([token._asdict() for token in tokens] for tokens in self.template)
        return {"tokenizer_template": {"front": front, "back": back, "is_added": not self.differ}}


def document_ends(options: ConvertOptions, tokenizer: Tokenizer) -> DocumentEnds:
    """Return the end tokens of a conversion."""
    template = post_processor_ends(tokenizer)
    if options.template:
        # A chat template writes begin and end tokens itself.
        return DocumentEnds(NO_ENDS if options.messages_field is not None else template, template)
    return DocumentEnds(end_tokens(tokenizer, options.prepend_token, options.append_token), template)


def recorded_ends(options: Mapping[str, Any]) -> EndTokens:
    """Return the tokens that a manifest says were added to each document: the inverse of both `recorded` methods."""
    if not options.get("template"):
        return EndTokens(*(_tokens([options.get(name)]) for name in ("prepend_token", "append_token")))
    template = options.get("tokenizer_template")
    sides = [template.get(side) for side in ("front", "back")] if isinstance(template, dict) else [None, None]
    return EndTokens(*map(_tokens, sides))


def _tokens(values: Any) -> tuple[EndToken, ...]:
    """[{"id": 1, "text": "<s>"}] -> (EndToken(1, "<s>"),); other values are left out."""
    return tuple(
        EndToken(token["id"], str(token.get("text") or ""))
        for token in (values if isinstance(values, list) else [])
        if isinstance(token, dict) and isinstance(token.get("id"), int)
    )
