"""A dataset becomes files of another tool, in a folder with export.json, which says what they are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flat_tokens.arguments import invalid, output_outside, tokenizer_file
from flat_tokens.errors import ArgumentError, printable
from flat_tokens.exchange.blocks import NO_TOKEN, Block, append_token, blocks_of
from flat_tokens.exchange.formats import Contents, Writer, writer_of, wrong_dtype
from flat_tokens.exchange.unfinished import Unfinished
from flat_tokens.format import LARGEST_TOKEN_ID
from flat_tokens.opening import Dataset
from flat_tokens.storage import entries

NOTE_NAME = "export.json"
NOTE_BYTES = 2**20


@dataclass(frozen=True)
class ExportOptions:
    """What to export. append: a token that is put behind each document, NO_TOKEN for none, None where
    nothing is said;
    dtype: of the ids, None for what the format has; text: whether documents are written as text, too, by `tokenizer`
    or the dataset's own."""

    target_format: str
    output: Path
    splits: Sequence[str]
    append: int | None = None
    dtype: str | None = None
    text: bool = False
    tokenizer: Path | None = None
    overwrite: bool = False


@dataclass
class Exported:
    """The result. end_token: the token that ends each document in the files, None without one. splits: the tokens, the
    documents and the file names of each. notes: lines for people."""

    dtype: str | None
    end_token: int | None
    splits: dict[str, dict[str, Any]]
    notes: list[str]


def export_dataset(dataset: Dataset, options: ExportOptions) -> Exported:
    """Write the folder. ArgumentError where the format cannot hold the ids, or would lose the documents: before a byte
    is written; RefusedError; DatasetError for a damaged dataset. Nothing is left of a run that fails."""
    writer = writer_of(options.target_format)
    output_outside(options.output, dataset.path)
    own_end = _own_end(dataset)
    append = _appended(options, writer, own_end)
    dtype = _dtype(dataset, options, writer, append)
    known = _entries(dataset, options, writer)
    separator = own_end if append is None else append
    exported = Exported(None if dtype is None else dtype.name, separator, {}, [])
    with Unfinished(options.output, options.overwrite, not_an_export) as unfinished:
        for split in options.splits:
            array = dataset[split]
            count = _Count(None if writer.marks_documents else separator, append is not None)
            tokens = array.token_count + (0 if append is None else array.seq_count)
            if array.loss_mask is not None and not writer.has_mask:
                exported.notes.append(f"{split}: the loss mask is not exported. Only jsonl keeps it.")
            contents = Contents(split, tokens, array.seq_count, dtype or np.dtype("<u4"), known)
            blocks = count.of(blocks_of(array))
            names = writer.write(
                unfinished.folder, contents, blocks if append is None else append_token(blocks, append)
            )
            exported.splits[split] = {"tokens": tokens, "documents": array.seq_count, "files": names}
            if count.inside:
                exported.notes.append(
                    f"{split}: token {separator} occurs {count.inside:,} times within documents. "
                    "Readers that split at this token will split those documents."
                )
        _write_note(unfinished.folder, dataset, options, exported)
        unfinished.publish()
    return exported


class _Count:
    """How often a token is in documents, but for that at their ends; a stream passes through."""

    def __init__(self, token: int | None, is_appended: bool) -> None:
        self._token, self._is_appended = token, is_appended
        self.inside = 0

    def of(self, blocks: Iterator[Block]) -> Iterator[Block]:
        for block in blocks:
            if self._token is not None:
                assert block.ends is not None
                self.inside += int(np.count_nonzero(block.ids == self._token))
                self.inside -= 0 if self._is_appended else len(block.ends)
            yield block


def _own_end(dataset: Dataset) -> int | None:
    """The token that ends each document of the dataset, if it says so."""
    manifest = dataset.manifest
    appended = manifest.options.get("append_token") if manifest is not None else None
    token = appended.get("id") if isinstance(appended, dict) else None
    return token if isinstance(token, int) else None


def _appended(options: ExportOptions, writer: Writer, own_end: int | None) -> int | None:
    """The token to be put behind each document; ArgumentError where it must be said."""
    if options.append not in (None, NO_TOKEN) and own_end is not None:
        raise ArgumentError(
            f"--append-token: every document already ends with token {own_end} (got {options.append}). "
            "Pass --append-token none."
        )
    if options.append is not None:
        return None if options.append == NO_TOKEN else options.append
    if not writer.marks_documents and own_end is None:
        raise ArgumentError(
            f"--append-token: required, since {options.target_format} files have no document boundaries. "
            "Pass the ID of an end-of-text token, or none to export without boundaries."
        )
    return None


def _dtype(
    dataset: Dataset, options: ExportOptions, writer: Writer, append: int | None
) -> np.dtype[Any] | None:
    """The type of the ids in the files; None where they have none."""
    largest = max([append or 0, *(dataset[split].max_token_id for split in options.splits)])
    if largest > LARGEST_TOKEN_ID:
        raise invalid("--append-token", f"must be in [0, {LARGEST_TOKEN_ID}]", largest)
    fitting = [name for name in writer.dtypes if largest <= np.iinfo(name).max]
    if options.dtype is not None and options.dtype not in writer.dtypes:
        raise wrong_dtype(options.target_format, writer.dtypes, options.dtype)
    if not writer.dtypes:
        return None
    wanted = options.dtype or (writer.dtypes[0] if writer.is_fixed else fitting[0])
    if wanted not in fitting:
        hint = f"Pass --dtype {fitting[0]}"
        if writer.is_fixed:
            hint += f" and configure the reader for it, since {options.target_format} expects {wanted}"
        rule = f"{wanted} holds IDs up to {np.iinfo(wanted).max}"
        raise invalid("--dtype", rule, largest, f"{hint}.")
    return np.dtype(wanted).newbyteorder("<")


def _entries(dataset: Dataset, options: ExportOptions, writer: Writer) -> dict[int, bytes] | None:
    if not options.text:
        return None
    if not writer.has_text:
        raise ArgumentError(f"--text: {options.target_format} files hold only IDs. Pass --to jsonl.")
    path = options.tokenizer or dataset.tokenizer_path
    if path is None:
        raise ArgumentError("--text: the dataset has no tokenizer. Pass --tokenizer.")
    tokenizer_file(options.tokenizer)
    return entries.load_entries(path)


def _write_note(folder: Path, dataset: Dataset, options: ExportOptions, exported: Exported) -> None:
    manifest = dataset.manifest
    note = {
        "exported_to": options.target_format,
        "dataset": str(dataset.path),
        "dtype": exported.dtype,
        "append_token": exported.end_token,
        "splits": exported.splits,
        "tokenizer": None if manifest is None else manifest.tokenizer,
    }
    (folder / NOTE_NAME).write_text(json.dumps(note, indent=2) + "\n", encoding="ascii")


def not_an_export(output: Path) -> str | None:
    """Why a folder must not be replaced, None if it is an export and holds nothing else."""
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
