"""Files of another tool become a dataset: read, checked, written, verified, then given its name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from flat_tokens import writer
from flat_tokens.errors import ArgumentError, DatasetError, printable
from flat_tokens.exchange.blocks import NO_TOKEN, Block, cut_at
from flat_tokens.exchange.dataset_writer import SplitWriter, WrittenSplit
from flat_tokens.exchange.formats import Reader, reader_of, wrong_dtype
from flat_tokens.exchange.inputs import ReadOptions
from flat_tokens.exchange.unfinished import Unfinished
from flat_tokens.format import LARGEST_TOKEN_ID, SPLITS
from flat_tokens.storage import entries
from flat_tokens.storage.existing_output import not_ours
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.places import read_whole
from flat_tokens.verify import verify_dataset

TOKENIZER_NAME = "tokenizer.json"


@dataclass(frozen=True)
class ImportOptions:
    """What to import. inputs: by split, paths or URLs; separator: the token at which documents are cut, NO_TOKEN for
    one document an input, None where the files tell; separator_place: see blocks.cut_at; vocabulary: ids must be
    below."""

    source_format: str
    inputs: Mapping[str, list[str]]
    output: Path
    separator: int | None = None
    separator_place: str = "last"
    dtype: str | None = None
    column: str | None = None
    tokenizer: Path | None = None
    vocabulary: int | None = None
    layout: ArrayLayout = field(default_factory=ArrayLayout)
    overwrite: bool = False
    storage: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Imported:
    """What came of it; notes: lines for people."""

    splits: dict[str, WrittenSplit]
    notes: list[str]


def import_dataset(options: ImportOptions) -> Imported:
    """Write the dataset. ArgumentError, RefusedError; DatasetError for inputs that are damaged, or ids that are none;
    OSError and StoreError for trouble of the machine and of the store. Nothing is left of a run that fails."""
    reader = reader_of(options.source_format)
    _check_options(options, reader)
    with Unfinished(options.output, options.overwrite, not_ours) as unfinished:
        imported = _write(options, reader, unfinished.folder)
        verify_dataset(unfinished.folder).require_ok()
        unfinished.publish()
    return imported


def _check_options(options: ImportOptions, reader: Reader) -> None:
    if options.dtype is not None and options.dtype not in reader.dtypes:
        raise wrong_dtype(options.source_format, reader.dtypes, options.dtype)
    if options.column is not None and not reader.has_columns:
        raise ArgumentError(f"--column: {options.source_format} files have no columns. Omit it.")


def _write(options: ImportOptions, reader: Reader, root: Path) -> Imported:
    files: list[FileRecord] = []
    tokenizer, largest, reason = None, LARGEST_TOKEN_ID, "the limit of the format"
    if options.tokenizer is not None:
        data = read_whole(options.tokenizer, entries.LARGEST_TOKENIZER_BYTES, follow_link=True)
        largest, reason = max(entries.load_entries(options.tokenizer)), "the IDs of --tokenizer"
        files.append(writer.write_file(root, TOKENIZER_NAME, data))
        sha256 = hashlib.sha256(data).hexdigest()
        tokenizer = {"path": TOKENIZER_NAME, "sha256": sha256, "source_sha256": sha256}
    if options.vocabulary is not None and options.vocabulary - 1 < largest:
        largest, reason = options.vocabulary - 1, "the range of --vocabulary"
    read_options = ReadOptions(options.dtype, options.column, options.storage, [])
    written: dict[str, WrittenSplit] = {}
    sources: list[dict[str, Any]] = []
    ends_with = options.separator if options.separator_place == "last" else None
    for split in SPLITS:
        split_writer = SplitWriter(root, split, options.layout)
        blocks = _blocks(options, reader, read_options, split, sources, (largest, reason))
        last = -1
        for block in blocks:
            split_writer.add(block)
            last = int(block.ids[-1]) if len(block.ids) else last
        written[split] = split_writer.end()
        files += written[split].files
        if last not in (-1, ends_with):
            ends_with = None
    documents = {name: split.record.seq_count + split.empty_documents for name, split in written.items()}
    writer.write_root(
        root,
        {name: split.record for name, split in written.items()},
        files,
        options.layout,
        tokenizer=tokenizer,
        sources=sources,
        options={
            "imported_from": options.source_format,
            "separator_token": options.separator,
            "append_token": None if ends_with in (None, NO_TOKEN) else {"id": ends_with},
            "documents": documents,
            "empty_documents": {name: split.empty_documents for name, split in written.items()},
        },
        versions={"tokenmill": _version()},
    )
    return Imported(written, list(dict.fromkeys(read_options.notes)))


def _version() -> str:
    try:
        return metadata.version("tokenmill")
    except metadata.PackageNotFoundError:  # a checkout on the path, never installed
        return "unknown"


def _blocks(
    options: ImportOptions,
    reader: Reader,
    read_options: ReadOptions,
    split: str,
    sources: list[dict[str, Any]],
    bound: tuple[int, str],
) -> Iterator[Block]:
    """A split's blocks, of all its inputs."""
    separator = options.separator

    def of_inputs() -> Iterator[Block]:
        for place in options.inputs.get(split, []):
            token_count = 0
            blocks = _checked(reader.read(place, read_options), place, *bound)
            for block in cut_at(blocks, NO_TOKEN, "last") if separator == NO_TOKEN else blocks:
                if block.ends is None and separator is None:
                    raise ArgumentError(
                        f"{printable(place)}: has no document boundaries. Pass --separator-token ID for the token "
                        "between documents, or --separator-token none for a single document."
                    )
                token_count += len(block.ids)
                yield block
            sources.append(
                {"path": place, "kind": options.source_format, "split": split, "tokens": token_count}
            )

    if separator is not None and separator != NO_TOKEN:
        yield from cut_at(of_inputs(), separator, options.separator_place)
    else:
        yield from of_inputs()


def _checked(blocks: Iterator[Block], place: str, largest: int, reason: str) -> Iterator[Block]:
    """The same blocks with ids as uint32. DatasetError for one outside [0, largest]."""
    done = 0
    for ids, ends, _ in blocks:
        if len(ids) and not (int(ids.min()) >= 0 and int(ids.max()) <= largest):
            at = int(np.flatnonzero((ids < 0) | (ids > largest))[0])
            where = f"{printable(place)}: token {done + at}"
            what = f"must be in [0, {largest}], {reason} (got {ids[at]})"
            raise DatasetError(f"{where}: {what}. Check the type of the IDs and the tokenizer.")
        done += len(ids)
        yield Block(ids.astype(np.uint32, copy=False), ends)
