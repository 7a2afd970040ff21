"""The begin and end tokens that a run adds to documents, next to the tokens of the tokenizer's template.

The post-processor of a tokenizer.json decides. Without a tokenizer.json, `add_bos_token` and `add_eos_token` of
tokenizer_config.json decide. transformers does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bpe.end_tokens import NO_ENDS, EndToken, EndTokens, end_tokens, post_processor_ends
from bpe.formats.by_path import files_of
from bpe.hub import locate
from bpe.tokenizer import Tokenizer
from convert.chat_rules import configuration, folder_of, variables
from convert.errors import UsageError, printable
from stores import NO_OPTIONS, StoreDenied, is_url, shown_url

if TYPE_CHECKING:
    from convert.options import ConvertOptions


class DocumentEnds(NamedTuple):
    """added: the tokens that the run adds to each document. template: the tokens that the tokenizer's files ask for."""

    added: EndTokens = NO_ENDS
    template: EndTokens = NO_ENDS

    @property
    def differ(self) -> bool:
        """Whether the run adds other tokens than the tokenizer's files say."""
        added, template = ((ends.front_ids, ends.back_ids) for ends in self)
        return added != template

    def recorded(self) -> dict[str, Any]:
        """Return the manifest's facts about the template; an empty dict if it adds no token.

        {"tokenizer_template": {"front": [{"id": 1, "text": "<s>"}], "back": [], "is_added": True}}
        """
        if not self.template.per_document:
            return {}
        front, back = ([token._asdict() for token in tokens] for tokens in self.template)
        return {"tokenizer_template": {"front": front, "back": back, "is_added": not self.differ}}


def recorded_template(options: Mapping[str, Any]) -> EndTokens:
    """Return the template's tokens by the options of a manifest, the inverse of `DocumentEnds.recorded`."""
    template = options.get("tokenizer_template")
    sides = [template.get("front"), template.get("back")] if isinstance(template, dict) else [None, None]
    return EndTokens(*map(recorded_tokens, sides))


def recorded_tokens(tokens: Any) -> tuple[EndToken, ...]:
    """[{"id": 1, "text": "<s>"}] -> (EndToken(1, "<s>"),); anything else is left out."""
    return tuple(
        EndToken(token["id"], str(token.get("text") or ""))
        for token in (tokens if isinstance(tokens, list) else [])
        if isinstance(token, dict) and isinstance(token.get("id"), int)
    )


NO_DOCUMENT_ENDS: Final = DocumentEnds()


def document_ends(options: ConvertOptions, tokenizer: Tokenizer) -> DocumentEnds:
    """Return the end tokens of a conversion."""
    template = template_ends(options.tokenizer, tokenizer, options.storage_options)
    if options.template:
        # A chat template writes begin and end tokens itself.
        return DocumentEnds(NO_ENDS if options.messages_field is not None else template, template)
    return DocumentEnds(end_tokens(tokenizer, options.prepend_token, options.append_token), template)


def template_ends(
    name: str, tokenizer: Tokenizer, storage_options: Mapping[str, str] = NO_OPTIONS
) -> EndTokens:
    """Return the tokens that the files of a tokenizer put around a document. name: as `convert` takes it."""
    if tokenizer.post_processor is not None or _is_json(name):
        return post_processor_ends(tokenizer)
    folder = folder_of(name)
    try:
        path, config, tokens = configuration(folder, storage_options)
    except StoreDenied:  # some stores answer so for an object that does not exist
        return NO_ENDS
    named = dict(variables({**config, **tokens}))
    found: list[tuple[EndToken, ...]] = []
    for flag, variable in (("add_bos_token", "bos_token"), ("add_eos_token", "eos_token")):
        if config.get(flag) is not True:
            found.append(())
            continue
        text = named.get(variable, "")
        id_ = tokenizer.special_tokens.get(text)
        if id_ is None:
            raise UsageError(
                f"{printable(path)}: {flag} is true, but {variable} is no special token of the tokenizer (got {text!r})"
            )
        found.append((EndToken(id_, text),))
    return EndTokens(*found)


def _is_json(name: str) -> bool:
    """Whether one file in JSON holds the whole tokenizer."""
    if is_url(name):
        return shown_url(name).endswith(".json")
    files = files_of(Path(locate(name).path))
    return len(files) == 1 and files[0].suffix == ".json"
