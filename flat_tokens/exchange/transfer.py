"""Export of a dataset to a folder of files of another tool, and import of such files.

Blocks pass between a dataset and a format, a bounded part of the tokens at a time. Nothing is left of a run that fails.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from flat_tokens.arguments import invalid, tokenizer_file
from flat_tokens.dataset_writer import Writer
from flat_tokens.errors import CONVERT_AGAIN, ArgumentError, DatasetError, damaged, printable
from flat_tokens.exchange.formats import (
    BLOCK_TOKENS,
    FORMATS,
    NO_TOKEN,
    Contents,
    Format,
    ReadOptions,
    check_dtype,
    module_of,
)
from flat_tokens.format import LARGEST_TOKEN_ID, SPLITS, decode_ids, decode_start_flags
from flat_tokens.opening import Dataset
from flat_tokens.reader import FlatTokensArray
from flat_tokens.split_writer import Block, WrittenSplit
from flat_tokens.storage import entries
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.unfinished import Unfinished

NOTE_NAME = "export.json"
NOTE_BYTES = 2**20


def export_dataset(dataset: Dataset, options: Namespace) -> tuple[dict[str, Any], list[str]]:
    """Write the folder. Return the content of export.json, which describes the files, and notes to print.

    options: the arguments of the command; see `command.add_export`.

    Raise ArgumentError, before a byte is written, if the format cannot hold the IDs or would lose the documents. Raise
    RefusedError, and DatasetError for a damaged dataset.
    """
    name, target = options.to, FORMATS[options.to]
    chosen = SPLITS if options.split == "both" else (options.split,)
    manifest = dataset.manifest
    own = manifest.options.get("append_token") if manifest is not None else None
    own_end = own.get("id") if isinstance(own, dict) else None
    append = _appended(options, target, own_end)
    dtype = _dtype([dataset[split].max_token_id for split in chosen], options, target, append)
    separator = own_end if append is None else append
    splits: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    known = _entries(dataset, options)
    with Unfinished(options.output, options.overwrite, not_an_export) as unfinished:
        for split in chosen:
            array = dataset[split]
            if array.loss_mask is not None and name != "jsonl":
                notes.append(f"{split}: the loss mask is not exported. Only jsonl keeps it.")
            blocks, inside = _blocks_of(array), [0]
            if separator is not None and not target.marks_documents:
                blocks = _counted(blocks, separator, append is not None, inside)
            tokens = array.token_count + (0 if append is None else array.seq_count)
            stored = np.dtype(dtype or "uint32").newbyteorder("<")
            contents = Contents(split, tokens, array.seq_count, stored, known)
            if append is not None:
                blocks = _with_token(blocks, append)
            files = module_of(name).write(unfinished.folder, contents, blocks)
            splits[split] = {"tokens": tokens, "documents": array.seq_count, "files": files}
            if inside[0]:
                notes.append(
                    f"{split}: token {separator} occurs {inside[0]:,} times within documents. "
                    "Readers that split at this token will split those documents."
                )
        note = {
            "exported_to": name,
            "dataset": str(dataset.path),
            "dtype": dtype,
            "append_token": separator,
            "splits": splits,
            "tokenizer": None if manifest is None else manifest.tokenizer,
        }
        (unfinished.folder / NOTE_NAME).write_text(json.dumps(note, indent=2) + "\n", encoding="ascii")
        unfinished.publish()
    return note, notes


def _appended(options: Namespace, target: Format, own_end: int | None) -> int | None:
    """Return the token to append to each document. Raise ArgumentError if the user must decide."""
    append: int | None = options.append_token
    if append not in (None, NO_TOKEN) and own_end is not None:
        raise ArgumentError(
            f"--append-token: every document already ends with token {own_end} (got {append}). "
            "Pass --append-token none."
        )
    if append is None and own_end is None and not target.marks_documents:
        raise ArgumentError(
            f"--append-token: required, since {options.to} files have no document boundaries. "
            "Pass the ID of an end-of-text token, or none to export without boundaries."
        )
    return None if append == NO_TOKEN else append


def _dtype(largest_ids: list[int], options: Namespace, target: Format, append: int | None) -> str | None:
    """Return the type of the IDs in the files, None in text."""
    largest = max([append or 0, *largest_ids])
    if largest > LARGEST_TOKEN_ID:
        raise invalid("--append-token", f"must be in [0, {LARGEST_TOKEN_ID}]", largest)
    dtypes = target.write_dtypes or ()
    check_dtype(options.to, dtypes, options.dtype)
    if not dtypes:
        return None
    fitting = [name for name in dtypes if largest <= np.iinfo(name).max]
    wanted: str = options.dtype or (dtypes[0] if target.is_fixed else fitting[0])
    if wanted not in fitting:
        hint = f"Pass --dtype {fitting[0]}"
        if target.is_fixed:
            hint += f" and configure the reader for it, since {options.to} expects {wanted}"
        raise invalid("--dtype", f"{wanted} holds IDs up to {np.iinfo(wanted).max}", largest, f"{hint}.")
    return wanted


def _entries(dataset: Dataset, options: Namespace) -> dict[int, bytes] | None:
    if not options.text:
        return None
    if options.to != "jsonl":
        raise ArgumentError(f"--text: {options.to} files hold only IDs. Pass --to jsonl.")
    path = options.tokenizer or dataset.tokenizer_path
    if path is None:
        raise ArgumentError("--text: the dataset has no tokenizer. Pass --tokenizer.")
    tokenizer_file(options.tokenizer)
    return entries.load_entries(path)


def _blocks_of(split: FlatTokensArray) -> Iterator[Block]:
    """Yield the tokens of a split, with all ends. Raise DatasetError if start flags and seq_starts disagree."""
    seq_count = 0
    for start in range(0, split.token_count, BLOCK_TOKENS):
        stop = min(start + BLOCK_TOKENS, split.token_count)
        encoded = split.encoded_tokens[start:stop]
        ends = np.flatnonzero(decode_start_flags(encoded))
        seq_count += len(ends)
        if start == 0:
            if len(ends) == 0 or ends[0] != 0:
                raise damaged(split.name, "token 0 must start a sequence", CONVERT_AGAIN)
            ends = ends[1:]
        if stop == split.token_count:
            ends = np.append(ends, stop - start)
        trained = None if split.loss_mask is None else split.loss_mask[start:stop]
        yield Block(decode_ids(encoded), ends, trained)
    if seq_count != split.seq_count:
        what = f"start flags must agree with the {split.seq_count} sequences of seq_starts (got {seq_count})"
        raise damaged(split.name, what, CONVERT_AGAIN)


def _counted(blocks: Iterator[Block], token: int, is_appended: bool, total: list[int]) -> Iterator[Block]:
    """Yield the same blocks. Add the occurrences of a token in documents to total[0], except at their ends if they have
    it there already."""
    last = -1
    for block in blocks:
        is_token = np.append(last == token, block.ids == token)
        total[0] += int(np.count_nonzero(is_token[1:]))
        total[0] -= 0 if is_appended else int(np.count_nonzero(is_token[block.ends]))
        last = int(block.ids[-1]) if len(block.ids) else last
        yield block


def _with_token(blocks: Iterator[Block], token: int) -> Iterator[Block]:
    """Append a trained token to each document. [[1, 2], [3]], 9 -> [[1, 2, 9], [3, 9]]."""
    for ids, ends, trained in blocks:
        assert ends is not None
        bits = None if trained is None else np.insert(trained, ends, True)
        yield Block(np.insert(ids, ends, token), ends + np.arange(1, len(ends) + 1), bits)


def not_an_export(output: Path) -> str | None:
    """Return why a folder must not be replaced, None if it is an export and holds nothing else."""
    try:
        with (output / NOTE_NAME).open("rb") as file:
            note = json.loads(file.read(NOTE_BYTES))
        listed = {name for split in note["splits"].values() for name in split["files"]} | {NOTE_NAME}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return f"not an export (no valid {NOTE_NAME} in it)"
    if output.is_symlink():
        return "a symbolic link"
    foreign = sorted({path.name for path in output.iterdir()} - listed)
    return f"contains {printable(foreign[0])}, which {NOTE_NAME} does not list" if foreign else None


def import_dataset(options: Namespace) -> tuple[dict[str, WrittenSplit], list[str]]:
    """Write the dataset. Return the splits, and notes to print.

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
            for block in _cut_at(blocks, NO_TOKEN, "last") if separator == NO_TOKEN else blocks:
                if block.ends is None and separator is None:
                    raise ArgumentError(
                        f"{printable(path)}: has no document boundaries. Pass --separator-token ID for the token "
                        "between documents, or --separator-token none for a single document."
                    )
                yield _checked(block, path, token_count, largest, reason)
                token_count += len(block.ids)
            facts = {"path": path, "kind": options.source, "split": split, "tokens": token_count}
            writer.sources.append(facts)

    has_separator = separator not in (None, NO_TOKEN)
    return _cut_at(of_inputs(), separator, options.separator_place) if has_separator else of_inputs()


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


def _cut_at(blocks: Iterator[Block], token: int | None, place: str) -> Iterator[Block]:
    """Cut documents at each separator token and nowhere else. Tokens after the last one are a document, too.

    token: the separator, or NO_TOKEN for one document.
    place: "last" of the document before it, "first" of the document after it, or "dropped". With separator 9,
        [1, 9, 2] is [[1, 9], [2]], [[1], [9, 2]] or [[1], [2]].
    """
    is_open = False
    for ids, _, _ in blocks:
        found = np.empty(0, np.int64) if token == NO_TOKEN else np.flatnonzero(ids == token)
        ends = found + 1 if place == "last" else found
        if place == "dropped" and len(found):
            ids = np.delete(ids, found)
            ends = found - np.arange(len(found))
        elif place == "first" and not is_open and len(ends) and ends[0] == 0:
            ends = ends[1:]  # nothing is before it
        last = int(ends[-1]) if len(ends) else 0
        is_open = len(ids) > last or (is_open and not len(ends))
        yield Block(ids, ends)
    if is_open:
        yield Block(np.empty(0, np.uint32), np.zeros(1, np.int64))
