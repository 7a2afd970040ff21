"""Exports a dataset to a folder of files of another tool, with export.json, which describes them."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from flat_tokens.arguments import invalid, output_outside, tokenizer_file
from flat_tokens.errors import ArgumentError, printable
from flat_tokens.exchange.blocks import append_token, blocks_of
from flat_tokens.exchange.formats import FORMATS, NO_TOKEN, Contents, Format, check_dtype, module_of
from flat_tokens.format import LARGEST_TOKEN_ID, SPLITS
from flat_tokens.opening import Dataset
from flat_tokens.split_writer import Block
from flat_tokens.storage import entries
from flat_tokens.unfinished import Unfinished

NOTE_NAME = "export.json"
NOTE_BYTES = 2**20


def export_dataset(dataset: Dataset, options: Namespace) -> tuple[dict[str, Any], list[str]]:
    """Write the folder. Return the content of export.json, and notes to print. Nothing is left of a run that fails.

    options: the arguments of the command; see `command.add_export`.

    Raise ArgumentError, before a byte is written, if the format cannot hold the IDs or would lose the documents. Raise
    RefusedError, and DatasetError for a damaged dataset.
    """
    name, target = options.to, FORMATS[options.to]
    chosen = SPLITS if options.split == "both" else (options.split,)
    output_outside(options.output, dataset.path)
    manifest = dataset.manifest
    appended = manifest.options.get("append_token") if manifest is not None else None
    own_end = appended.get("id") if isinstance(appended, dict) else None
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
            inside = _Inside(None if target.marks_documents else separator, append is not None)
            blocks = inside.count(blocks_of(array))
            tokens = array.token_count + (0 if append is None else array.seq_count)
            stored = np.dtype(dtype or "uint32").newbyteorder("<")
            contents = Contents(split, tokens, array.seq_count, stored, known)
            if append is not None:
                blocks = append_token(blocks, append)
            files = module_of(name).write(unfinished.folder, contents, blocks)
            splits[split] = {"tokens": tokens, "documents": array.seq_count, "files": files}
            if inside.total:
                notes.append(
                    f"{split}: token {separator} occurs {inside.total:,} times within documents. "
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


class _Inside:
    """Counts a token in documents, except at their ends if they have it there already."""

    def __init__(self, token: int | None, is_appended: bool) -> None:
        self._token, self._is_appended = token, is_appended
        self._last = -1  # the last token of the previous block
        self.total = 0

    def count(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yield the same blocks."""
        for block in blocks:
            if self._token is not None and block.ends is not None:
                is_token = np.append(self._last == self._token, block.ids == self._token)
                self.total += int(np.count_nonzero(is_token[1:]))
                self.total -= 0 if self._is_appended else int(np.count_nonzero(is_token[block.ends]))
                self._last = int(block.ids[-1]) if len(block.ids) else self._last
            yield block


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
