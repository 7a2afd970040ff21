"""Whether a part that is finished is one of the files and options that are given."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from bpe.tokenizer import Tokenizer
from convert.document_ends import document_ends
from convert.options import CHAT_RULES, RECORDED_OF_MARKS, ConvertOptions
from flat_tokens import opening
from flat_tokens.storage.places import Place
from flat_tokens.storage.versions import part_path, within
from tokenmill.inputs.source_list import SourceList
from tokenmill.inputs.sources import recorded_path

# What a part may have that another has not: `auto` is decided for each by itself.
_OWN: Final = ("source_places",)


class Given(NamedTuple):
    """What a finished part must have been made with."""

    tokenizer: Tokenizer
    recorded: dict[str, Any]


def given_by(options: ConvertOptions, tokenizer: Tokenizer) -> Given:
    ends = document_ends(options, tokenizer).added
    recorded = {**options.with_chat_rules(tokenizer).recorded(), **ends.recorded()}
    return Given(tokenizer, dict.fromkeys((*RECORDED_OF_MARKS, CHAT_RULES, "template")) | recorded)


def difference(place: Place, number: int, sources: SourceList, given: Given) -> str | None:
    """What a part was made of that is not given, None where nothing is. DatasetError: of another tokenizer."""
    part = opening.open(within(place, part_path(number) if number else ""), version=0)
    manifest = part.with_sources(len(sources))  # what is made once may be a million, the run one file
    if manifest is None:
        return "no manifest"
    opening.check_tokenizer(part, given.tokenizer)
    named = [(recorded_path(source.name), source.size_bytes) for source in sources]
    made = [(str(source["path"]), source.get("bytes", "unknown")) for source in manifest.sources]
    made_count = len(made) + manifest.sources_left_out
    if len(named) != made_count:
        return f"{made_count} input files instead of {len(named)}"
    for (path, size), (made_path, made_size) in zip(named, made, strict=True):
        if (path, size) != (made_path, made_size):
            return f"{made_path} ({made_size} bytes) instead of {path} ({size} bytes)"
    for name, value in given.recorded.items():
        made_with = manifest.options.get(name)
        if name not in _OWN and made_with != value:
            return f"{name} {made_with} instead of {value}"
    return None
