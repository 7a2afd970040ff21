"""Appending to a dataset: the new documents become a part of their own, and a new version lists it with those before.

The part is a conversion like any other, to `<dataset>/part-<number>`; nothing that was there is written again. A run
that is interrupted goes on when the same command is given again (flat_tokens/storage/versions.py has the format).
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convert.document_ends import document_ends, recorded_template
from convert.driver.made_parts import difference, given_by
from convert.driver.tokenizers import load_tokenizer
from convert.errors import Refused, printable
from convert.options import CHAT_RULES, RECORDED, ConvertOptions
from convert.workdir.store import open_workdir
from flat_tokens import opening
from flat_tokens.storage.existing_output import is_part
from flat_tokens.storage.manifest import MANIFEST_NAME
from flat_tokens.storage.places import Place, is_there, locate
from flat_tokens.storage.versions import (
    VERSIONS_NAME,
    Version,
    describe_part,
    newest,
    part_path,
    read_version,
    within,
    write_version,
)
from tokenmill.engines.background_call import BackgroundCall
from tokenmill.inputs.sources import STANDARD_INPUT
from tokenmill.stores import AlreadyThere, open_store, shown_url
from tokenmill.stores.durability import sync

if TYPE_CHECKING:
    from bpe.tokenizer import Tokenizer
    from convert.shown.summary import Summary
    from flat_tokens.opening import Dataset

# Of a dataset's options those that its parts share: how many documents are held out, each part says by itself.
_INHERITED = ("chat_date", "template", *(name for name in RECORDED if name != "validation_docs"))


def append(
    options: ConvertOptions,
    executor: Executor | None = None,
    started: float | None = None,
) -> Summary | None:
    """Convert the inputs to a new part of the dataset at options.output, and list it as a new version.

    As `convert` but for the output, which must be a finished dataset with the same tokenizer (DatasetError); the
    summary is that of the part. None where a run that was killed had finished this very part, which is listed then;
    Refused (exit 6) where it was another one, which is listed, too, and where another run appends.
    """
    root = options.output.rstrip("/")
    place = locate("--append-to", root, options.storage_options)
    if isinstance(place, Path) and is_part(place):
        raise Refused(f"{root}: is a part of {place.absolute().parent}. Pass that dataset as --append-to.")
    dataset = opening.open(place)
    if not dataset.has_manifest:
        raise Refused(f"{shown_url(root)}: has no manifest. Convert it again before using --append-to.")
    record = dataset.tokenizer_record
    if record is None:
        raise Refused(
            f"{shown_url(root)}: does not record its tokenizer. Import it again with --tokenizer before using "
            "--append-to."
        )
    number = dataset.version + 1
    if list_finished(options, number):
        _check_is_asked_for(options, place, number)
        return None
    with BackgroundCall(partial(load_tokenizer, options.tokenizer, options.storage_options)) as loading:
        from convert.driver.conversion import prepare, run

        prepared = prepare(as_part(options, number), started)
    tokenizer, source = loading.result()
    is_imported = record.get("fingerprint") is None
    if is_imported:
        opening.check_made_with(dataset, "sha256", source["source_sha256"])
    else:
        opening.check_tokenizer(dataset, tokenizer)
    _check_template(options, tokenizer, dataset)
    if not is_imported and STANDARD_INPUT not in options.inputs:
        given = given_by(prepared.options, tokenizer)
        if difference(place, dataset.version, prepared.sources, given) is None:
            what = f"version {dataset.version}" if dataset.version else "the dataset"
            prepared.progress.note(
                f"warning: {shown_url(root)}: {what} was made from the same files and options, so their documents "
                "will be in it twice"
            )
    summary = run(prepared, tokenizer, source, executor)
    _list_part(place, number, options.output)
    return summary


def _check_is_asked_for(options: ConvertOptions, place: Place, number: int) -> None:
    """Refused unless the part, which an earlier run had finished, is of these files and options."""
    from convert.driver.conversion import find_sources

    listed = f"{place}: listed version {number}, which an earlier run had finished"
    if STANDARD_INPUT in options.inputs:
        raise Refused(f"{listed}. Run the command again if that run read other text.")
    tokenizer, _ = load_tokenizer(options.tokenizer, options.storage_options)
    other = difference(place, number, find_sources(options, options.inputs), given_by(options, tokenizer))
    if other is not None:
        raise Refused(f"{listed}, but it has {other}. Run the command again to append the rest.")


def _check_template(options: ConvertOptions, tokenizer: Tokenizer, dataset: Dataset) -> None:
    """Raise Refused if the dataset was made with another template or chat template."""
    manifest = dataset.without_sources
    recorded = {} if manifest is None else manifest.options
    if options.template and recorded.get("template"):
        given, former = document_ends(options, tokenizer).template, recorded_template(recorded)
        if given != former:
            raise Refused(
                f"{shown_url(options.output)}: with its template each document {former}, but with "
                f"{printable(shown_url(options.tokenizer))} it {given}. Pass the tokenizer's folder as --tokenizer."
            )
    theirs = recorded.get(CHAT_RULES)
    if theirs is None or not options.has_mask or options.chat_template is not None:
        return
    if options.with_chat_rules(tokenizer).recorded().get(CHAT_RULES) != theirs:
        raise Refused(
            f"{shown_url(options.output)}: its chats were rendered with another template than the tokenizer's. Pass "
            "that file as --chat-template."
        )


def list_finished(options: ConvertOptions, number: int) -> bool:
    """Whether a run was killed when it had made the part of a version of the dataset at options.output and not yet
    listed it, which is done now. What that run left is removed."""
    place = locate("--append-to", options.output.rstrip("/"), options.storage_options)
    if not is_there(within(place, f"{part_path(number)}/{MANIFEST_NAME}")):
        return False
    part = as_part(options, number)
    open_workdir(replace(part, overwrite=False)).remove_remains()
    _list_part(place, number, options.output)
    return True


def as_part(options: ConvertOptions, number: int | None = None) -> ConvertOptions:
    """The options of the conversion that makes a part of the dataset at options.output. number: None for the next."""
    root = options.output.rstrip("/")
    if number is None:
        number = newest(locate("--append-to", root, options.storage_options)) + 1
    return replace(options, output=f"{root}/{part_path(number)}")


def _list_part(place: Place, number: int, output: str) -> None:
    before = read_version(place, number - 1).parts if number > 1 else (describe_part(place, ""),)
    version = Version(number, (*before, describe_part(place, part_path(number))))
    try:
        write_version(open_store(place) if isinstance(place, Path) else place.store, version)
    except AlreadyThere:
        # A run that began meanwhile may have taken this one for ended, and listed its part.
        if read_version(place, number) != version:
            raise Refused(
                f"{place}: another run has listed a different version {number}. Inspect it, then run the command again."
            ) from None
    try:
        if isinstance(place, Path):
            # The file itself was on the disk before it had its name.
            for path in (place / VERSIONS_NAME, place):
                sync(path)
    except KeyboardInterrupt as error:
        error.made = output  # type: ignore[attr-defined]
        raise


def inherited(root: str, storage_options: Mapping[str, str]) -> dict[str, Any]:
    """The options of the dataset at `root` that are the defaults for its parts, and its own tokenizer."""
    dataset = opening.open(root, storage_options=storage_options)
    manifest = dataset.without_sources
    recorded = {} if manifest is None else manifest.options
    found = {name: recorded[name] for name in _INHERITED if recorded.get(name) is not None}
    for name in () if recorded.get("template") else ("prepend_token", "append_token"):
        if recorded.get(name) is not None:
            found[name] = recorded[name]["id"]  # a number, not its text, which may be a special token's
    if (place := dataset.tokenizer_path) is not None:
        found["tokenizer"] = str(place)
    return found
