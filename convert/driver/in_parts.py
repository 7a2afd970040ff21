"""A conversion whose dataset can be read while it is made: each so many bytes of files become a part of their own.

The first part is a conversion, each further one is appended (append.py), so that a new version lists it once it is
whole. Sequences, their order and their split are those of one conversion of all files. A run that was stopped goes on
at the part that was not finished; of what is finished only the manifest is read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import replace

from command_line.progress import make_progress
from convert.driver.append import append, list_finished
from convert.driver.conversion import find_sources
from convert.driver.made_parts import Given, difference, given_by
from convert.driver.pipeline import convert
from convert.driver.tokenizers import load_tokenizer
from convert.errors import Refused, UsageError
from convert.options import ConvertOptions
from convert.places.store_workspace import open_workspace
from convert.shown.summary import Summary
from corpus.source_list import SourceList
from corpus.sources import STANDARD_INPUT
from flat_tokens.storage.manifest import MANIFEST_NAME
from flat_tokens.storage.places import Place, is_there, locate
from flat_tokens.storage.versions import version_path, within


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
    given: Given | None = None
    note = make_progress(options.progress).note
    found = find_sources(options, options.inputs, note=note)
    for number, sources in enumerate(_parts_of(found, part_bytes)):
        if _is_listed(options, place, number):
            given = given or given_by(options, load_tokenizer(options.tokenizer, options.storage_options)[0])
            if other := difference(place, number, sources, given):
                raise Refused(
                    f"{place}: version {number} {other}; give the same files, options and --part-bytes, or another "
                    "--output"
                )
        elif number == 0:
            yield convert(options, executor, started, sources)
        else:
            summary = append(replace(options, validation=()), executor, started, sources)
            if summary is not None:
                yield summary
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
