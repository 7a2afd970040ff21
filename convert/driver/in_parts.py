"""A conversion whose dataset can be read while it is made: each so many bytes of files become a part of their own.

The first part is a conversion, each further one is appended (append.py), so that a new version lists it once it is
whole. Sequences, their order and their split are those of one conversion of all files. A run that was stopped goes on
at the part that was not finished; of what is finished only the manifest is read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Final, NamedTuple

from bpe.end_tokens import end_tokens
from bpe.tokenizer import Tokenizer
from convert.driver.append import append, list_finished
from convert.driver.conversion import find_sources
from convert.driver.pipeline import convert, load_tokenizer
from convert.errors import Refused, UsageError
from convert.options import CHAT_RULES, RECORDED_OF_MARKS, ConvertOptions
from convert.places.store_workspace import open_workspace
from convert.shown.summary import Summary
from corpus.source_list import SourceList
from corpus.sources import STANDARD_INPUT, recorded_path
from flat_tokens import opening
from flat_tokens.storage.manifest import MANIFEST_NAME
from flat_tokens.storage.places import Place, is_there, locate
from flat_tokens.storage.versions import part_path, version_path, within

# What a part may have that another has not: `auto` is decided for each by itself.
_OWN: Final = ("source_places",)


def convert_in_parts(
    options: ConvertOptions, part_bytes: int, executor: Executor | None = None, started: float | None = None
) -> Iterator[Summary]:
    """Convert part by part; the summaries of the parts that are made, each once its part can be read.

    part_bytes: of files in a part, which ends with the file that reaches it; a file is never cut. The rest is as for
    `convert`. UsageError for standard input, validation_docs and overwrite; Refused (exit 6) for a dataset at
    options.output that does not begin with these files and options.
    """
    _check(options, part_bytes)
    place = locate("--output", options.output.rstrip("/"), options.storage_options)
    own: _Own | None = None
    for number, sources in enumerate(_parts_of(find_sources(options, options.inputs), part_bytes)):
        if _is_listed(options, place, number):
            own = own or _own_of(options)
            _check_made_of(place, number, sources, own)
        elif number == 0:
            yield convert(options, executor, started, sources)
        else:
            yield append(replace(options, validation=()), executor, started, sources)
        started = None


def _check(options: ConvertOptions, part_bytes: int) -> None:
    if part_bytes < 1:
        raise UsageError(f"--part-bytes must be at least 1, got {part_bytes}")
    if STANDARD_INPUT in options.inputs:
        raise UsageError("--part-bytes: standard input is one source, which is never cut; name files")
    if options.validation_docs is not None:
        raise UsageError(
            "--part-bytes: --validation-docs are chosen among all documents, which are known at the end only; give "
            "--validation-fraction"
        )
    if options.overwrite:
        raise UsageError(
            "--part-bytes goes on with a dataset that is there; remove it instead of --overwrite"
        )


def _parts_of(sources: SourceList, part_bytes: int) -> Iterator[SourceList]:
    """The sources in order, cut into parts; validation files go with the first."""
    part = SourceList(source for source in sources if source.split == "validation")
    held = 0
    for source in sources:
        if source.split == "validation":
            continue
        part.append(source)
        held += source.size_bytes
        if held >= part_bytes:
            yield part
            part, held = SourceList(), 0
    if len(part):
        yield part


def _is_listed(options: ConvertOptions, place: Place, number: int) -> bool:
    """Whether the part is finished, and can be read; what a run left that was killed when it had made it is removed."""
    if number:
        return is_there(within(place, version_path(number))) or list_finished(options, number)
    if not is_there(within(place, MANIFEST_NAME)):
        return False
    open_workspace(options.output, False, options.scratch, options.storage_options).remove_remains()
    return True


class _Own(NamedTuple):
    """What a finished part must have been made with."""

    tokenizer: Tokenizer
    recorded: dict[str, Any]


def _own_of(options: ConvertOptions) -> _Own:
    tokenizer, _ = load_tokenizer(options.tokenizer)
    ends = end_tokens(tokenizer, options.prepend_token, options.append_token)
    given = {**options.with_chat_rules(tokenizer).recorded(), **ends.recorded()}
    return _Own(tokenizer, dict.fromkeys((*RECORDED_OF_MARKS, CHAT_RULES)) | given)


def _check_made_of(place: Place, number: int, sources: SourceList, own: _Own) -> None:
    part = opening.open(within(place, part_path(number) if number else ""), version=0)
    manifest = part.manifest
    if manifest is None:
        raise Refused(f"{place}: has no manifest; it is no dataset of this run")
    opening.check_tokenizer(part, own.tokenizer)
    given = [(recorded_path(source.name), source.size_bytes) for source in sources]
    made = [(str(source["path"]), source["bytes"]) for source in manifest.sources]
    if given != made:
        other = next((pair for pair in zip(given, made, strict=False) if pair[0] != pair[1]), None)
        why = (
            f"{len(made)} files, the run has {len(given)} for it"
            if other is None
            else f"{other[1][0]} ({other[1][1]:,} bytes) where the run has {other[0][0]} ({other[0][1]:,} bytes)"
        )
        raise Refused(f"{place}: version {number} was made of {why}; give the same files and --part-bytes")
    for name, value in own.recorded.items():
        made_with = manifest.options.get(name)
        if name not in _OWN and made_with != value:
            raise Refused(
                f"{place}: version {number} was made with {name} {made_with}, the run has {value}; "
                "give the same options, or another --output"
            )
