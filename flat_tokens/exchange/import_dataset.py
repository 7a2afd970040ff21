"""Imports files of another tool: read, checked, written by `Writer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from flat_tokens.dataset_writer import Block, Writer, WrittenSplit
from flat_tokens.errors import ArgumentError, DatasetError, printable
from flat_tokens.exchange.blocks import cut_at
from flat_tokens.exchange.formats import FORMATS, NO_TOKEN, ReadOptions, check_dtype, module_of
from flat_tokens.format import SPLITS
from flat_tokens.storage.layout import ArrayLayout


@dataclass(frozen=True)
class ImportOptions:
    """What to import.

    source_format: name of a format.
    inputs: paths by split.
    separator: token at which documents are cut, NO_TOKEN for one document per input, None if the files mark documents.
    separator_place: position of that token in its document; see `blocks.cut_at`.
    dtype: type of the IDs, where the files do not state it.
    column: column of the IDs in mds.
    tokenizer: tokenizer.json of the IDs, which is stored with the dataset.
    vocabulary: IDs must be below this.
    """

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


@dataclass
class Imported:
    """The result. notes: lines to print."""

    splits: dict[str, WrittenSplit]
    notes: list[str]


def import_dataset(options: ImportOptions) -> Imported:
    """Write the dataset. Nothing is left of a run that fails.

    Raise ArgumentError, RefusedError, DatasetError for damaged inputs or invalid IDs, and OSError.
    """
    name = options.source_format
    check_dtype(name, FORMATS[name].read_dtypes or (), options.dtype)
    if options.column is not None and name != "mds":
        raise ArgumentError(f"--column: {name} files have no columns. Omit it.")
    read_options = ReadOptions(options.dtype, options.column, [])
    facts = {"imported_from": name, "separator_token": options.separator}
    with Writer(
        options.output, options.tokenizer, layout=options.layout, options=facts, overwrite=options.overwrite
    ) as writer:
        ends_with = options.separator if options.separator_place == "last" else None
        for split in SPLITS:
            last = -1
            for block in _blocks(options, read_options, split, writer):
                assert block.ends is not None
                writer.add_many(split, block.ids, block.ends)
                last = int(block.ids[-1]) if len(block.ids) else last
            if last not in (-1, ends_with):
                ends_with = None
        writer.options["append_token"] = None if ends_with in (None, NO_TOKEN) else {"id": ends_with}
    return Imported(writer.written, list(dict.fromkeys(read_options.notes)))


def _blocks(options: ImportOptions, read_options: ReadOptions, split: str, writer: Writer) -> Iterator[Block]:
    """Yield the blocks of all inputs of a split."""
    separator = options.separator
    largest, reason = writer.max_token_id, "the limit of the format"
    if options.tokenizer is not None:
        reason = "the IDs of --tokenizer"
    if options.vocabulary is not None and options.vocabulary - 1 < largest:
        largest, reason = options.vocabulary - 1, "the range of --vocabulary"

    def of_inputs() -> Iterator[Block]:
        for path in options.inputs.get(split, []):
            token_count = 0
            blocks: Iterator[Block] = module_of(options.source_format).read(Path(path), read_options)
            for block in cut_at(blocks, NO_TOKEN, "last") if separator == NO_TOKEN else blocks:
                if block.ends is None and separator is None:
                    raise ArgumentError(
                        f"{printable(path)}: has no document boundaries. Pass --separator-token ID for the token "
                        "between documents, or --separator-token none for a single document."
                    )
                yield _checked(block, path, token_count, largest, reason)
                token_count += len(block.ids)
            facts = {"path": path, "kind": options.source_format, "split": split, "tokens": token_count}
            writer.sources.append(facts)

    if separator is not None and separator != NO_TOKEN:
        return cut_at(of_inputs(), separator, options.separator_place)
    return of_inputs()


def _checked(block: Block, path: str, first: int, largest: int, reason: str) -> Block:
    """Return the block with IDs as uint32. Raise DatasetError for an ID outside [0, largest]."""
    ids = block.ids
    if len(ids) and not (int(ids.min()) >= 0 and int(ids.max()) <= largest):
        at = int(np.flatnonzero((ids < 0) | (ids > largest))[0])
        what = f"must be in [0, {largest}], {reason} (got {ids[at]})"
        raise DatasetError(
            f"{printable(path)}: token {first + at}: {what}. Check the type of the IDs and the tokenizer."
        )
    return Block(ids.astype(np.uint32, copy=False), block.ends)
