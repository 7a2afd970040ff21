"""Imports files of another tool: read, checked, written by `Writer`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from flat_tokens.dataset_writer import Writer
from flat_tokens.errors import ArgumentError, DatasetError, printable
from flat_tokens.exchange.blocks import cut_at
from flat_tokens.exchange.formats import FORMATS, NO_TOKEN, ReadOptions, check_dtype, module_of
from flat_tokens.format import SPLITS
from flat_tokens.split_writer import Block, WrittenSplit
from flat_tokens.storage.layout import ArrayLayout


def import_dataset(options: Namespace) -> tuple[dict[str, WrittenSplit], list[str]]:
    """Write the dataset. Return the splits, and notes to print. Nothing is left of a run that fails.

    options: the arguments of the command; see `command.add_import`.

    Raise ArgumentError, RefusedError, DatasetError for damaged inputs or invalid IDs, and OSError.
    """
    name = options.source
    check_dtype(name, FORMATS[name].read_dtypes or (), options.dtype)
    if options.column is not None and name != "mds":
        raise ArgumentError(f"--column: {name} files have no columns. Omit it.")
    read_options = ReadOptions(options.dtype, options.column, [])
    facts = {"imported_from": name, "separator_token": options.separator_token}
    layout = ArrayLayout.create(options.zarr_format, compression=options.compression)
    with Writer(
        options.output, options.tokenizer, layout=layout, options=facts, overwrite=options.overwrite
    ) as writer:
        ends_with = options.separator_token if options.separator_place == "last" else None
        for split in SPLITS:
            last = -1
            for block in _blocks(options, read_options, split, writer):
                assert block.ends is not None
                writer.add_many(split, block.ids, block.ends)
                last = int(block.ids[-1]) if len(block.ids) else last
            if last not in (-1, ends_with):
                ends_with = None
        writer.options["append_token"] = None if ends_with in (None, NO_TOKEN) else {"id": ends_with}
    return writer.written, list(dict.fromkeys(read_options.notes))


def _blocks(options: Namespace, read_options: ReadOptions, split: str, writer: Writer) -> Iterator[Block]:
    """Yield the blocks of all inputs of a split."""
    separator: int | None = options.separator_token
    largest, reason = writer.max_token_id, "the limit of the format"
    if options.tokenizer is not None:
        reason = "the IDs of --tokenizer"
    if options.vocabulary is not None and options.vocabulary - 1 < largest:
        largest, reason = options.vocabulary - 1, "the range of --vocabulary"

    def of_inputs() -> Iterator[Block]:
        for path in options.inputs if split == "train" else options.validation:
            token_count = 0
            blocks: Iterator[Block] = module_of(options.source).read(Path(path), read_options)
            for block in cut_at(blocks, NO_TOKEN, "last") if separator == NO_TOKEN else blocks:
                if block.ends is None and separator is None:
                    raise ArgumentError(
                        f"{printable(path)}: has no document boundaries. Pass --separator-token ID for the token "
                        "between documents, or --separator-token none for a single document."
                    )
                yield _checked(block, path, token_count, largest, reason)
                token_count += len(block.ids)
            facts = {"path": path, "kind": options.source, "split": split, "tokens": token_count}
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
