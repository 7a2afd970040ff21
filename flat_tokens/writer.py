"""Writes the arrays of a dataset, with many processes at once if you like. `flat_tokens.Writer` is the simple form.

1. `create_split` writes the metadata of a split.
2. Any number of processes write disjoint runs with `write_run`. A run begins at a
   multiple of the layout's write unit and has a multiple of its length, except at the end of the array.
3. `write_root` writes the manifest last. Without it, readers of a store see no dataset.

Invariant: no file holds parts of two runs, so a run can be written again with the same result. Files and objects appear
whole, and of two writers of one manifest on a store the first succeeds. All-zero Zarr chunks are stored like others:
zarr reads a missing chunk as zeros, which would hide a lost file. zarr is not imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens import format as flat_format
from flat_tokens.arguments import choice, invalid
from flat_tokens.errors import ArgumentError
from flat_tokens.storage.file_digest import FileDigest, file_digest
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import (
    FILES_NAME,
    MANIFEST_NAME,
    SOURCES_NAME,
    FileRecord,
    ListRecord,
    Manifest,
    SplitRecord,
    check_relative_path,
    file_lines,
)
from flat_tokens.storage.nodes import group_files, split_files
from flat_tokens.storage.places import StorePath, locate
from flat_tokens.storage.shards import join_shard, pad
from tokenmill.stores import Store
from tokenmill.stores.names import write_whole

_LINES_AT_ONCE = 1000
Destination = Path | Store


def create_arrays(root: Destination, split: str, layout: ArrayLayout, has_mask: bool = False) -> None:
    """Make the folders of a split's arrays, so that runs can be written before the sizes of the arrays are known.

    `create_split` writes the metadata, before or after the runs. A store has no folders.
    """
    place = locate("root", root)
    if isinstance(place, Path):
        for array in flat_format.DTYPES:
            if has_mask or array != flat_format.MASK_NAME:
                folder = place / flat_format.array_folder(split, array)
                (folder / ("c" if layout.zarr_format == 3 else "")).mkdir(parents=True, exist_ok=True)


def create_split(
    root: Destination,
    split: str,
    token_count: int,
    seq_count: int,
    max_token_id: int,
    layout: ArrayLayout,
    has_mask: bool = False,
) -> list[FileRecord]:
    """Write the metadata of a split and return the records of the files. The arrays have their final size at once.

    root need not exist. A split without sequences has token_count 0, max_token_id 0 and seq_starts [0], which must be
    written like any other. Raise ArgumentError for counts that no sequences have, or format 2 on a store.
    """
    choice("split", split, flat_format.SPLITS)
    if not 0 <= seq_count <= token_count or (seq_count == 0) != (token_count == 0):
        rule = f"sequences must have at least one token each, of {token_count} tokens in all"
        raise invalid("seq_count", rule, seq_count)
    if not 0 <= max_token_id <= flat_format.LARGEST_TOKEN_ID:
        raise invalid("max_token_id", f"must be in [0, {flat_format.LARGEST_TOKEN_ID}]", max_token_id)
    if layout.zarr_format != 3 and isinstance(locate("root", root), StorePath):
        raise invalid("zarr_format", "must be 3 for a dataset on a store", layout.zarr_format)
    create_arrays(root, split, layout, has_mask)
    files = split_files(layout, split, token_count, seq_count, max_token_id, has_mask)
    return [write_file(root, name, data) for name, data in files.items()]


def write_run(
    root: Destination,
    split: str,
    layout: ArrayLayout,
    array: str,
    first: int,
    values: npt.NDArray[Any],
    scratch: Path | None = None,
) -> list[FileRecord]:
    """Write a run of one array of a split and return the records of the files.

    array: name of the array, one of these:
        "encoded_tokens", with values uint32[n].
        "seq_starts", with values uint64[n]: token indices in the whole split. The very last entry of the array is the
            token count.
        "loss_mask", with values bool[n]: whether each token contributes to the loss.
    first: index of the first value in the array, a multiple of its write unit.
    scratch: a folder of the same file system in which each file gets a random name before it is renamed, so that
        several processes may write the same run at once. A store does not need it.

    Cost: 5 to 10 ns per token with zstd level 1, and memory for one file. Raise ArgumentError for a run off the units.
    """
    folder = flat_format.array_folder(split, array)
    chunk, unit = layout.cuts(array)
    values_per_unit, dtype = run_unit(layout, array)
    if first < 0 or first % values_per_unit:
        raise invalid(folder, f"first element must be a multiple of the write unit {values_per_unit}", first)
    if values.ndim != 1 or values.dtype != dtype:
        got = f"{values.dtype.name} of {values.ndim} dimensions"
        raise ArgumentError(f"values: must be {dtype.name}[n] (got {got})")
    is_mask = array == flat_format.MASK_NAME
    values = np.packbits(values, bitorder="little") if is_mask else np.ascontiguousarray(values)
    metadata = layout.array(array, Path(folder), 0)
    written = []
    for start in range(0, len(values), unit):
        part = values[start : start + unit]
        encoded = [
            metadata.codecs.encode(pad(part[at : at + chunk], chunk)) for at in range(0, len(part), chunk)
        ]
        payload = join_shard(encoded, unit // chunk) if metadata.sharded else encoded[0]
        relative = metadata.file_name(first // values_per_unit + start // unit)
        _put(root, relative, payload, scratch)
        written.append(FileRecord(relative, len(payload), file_digest((payload,))))
    return written


def run_unit(layout: ArrayLayout, array: str) -> tuple[int, np.dtype[Any]]:
    """The values of an array that `write_run` puts into one file, and their type: a bool per token for a loss mask."""
    is_mask, unit = array == flat_format.MASK_NAME, layout.cuts(array)[1]
    return (
        (unit * flat_format.MASK_BITS, np.dtype(np.bool_)) if is_mask else (unit, flat_format.DTYPES[array])
    )


def write_file(root: Destination, relative: str, payload: bytes | Iterable[bytes]) -> FileRecord:
    """Write one file of the dataset, whole or not at all, and return its record.

    Also for companions at the root: write_file(root, "tokenizer.json", data). payload may come in blocks. OSErrors pass
    through.
    """
    check_relative_path(relative)
    size, digest = 0, FileDigest()

    def blocks() -> Iterator[bytes]:
        nonlocal size
        for block in (payload,) if isinstance(payload, bytes) else payload:
            size += len(block)
            digest.update(block)
            yield block

    _put(root, relative, blocks())
    return FileRecord(relative, size, digest.text())


def write_root(
    root: Destination,
    splits: Mapping[str, SplitRecord],
    files: Iterable[FileRecord],
    layout: ArrayLayout,
    *,
    tokenizer: Mapping[str, Any] | None = None,
    sources: Iterable[Mapping[str, Any]] = (),
    options: Mapping[str, Any] | None = None,
    versions: Mapping[str, Any] | None = None,
) -> tuple[FileRecord, ...]:
    """Write the root group, the lists of files and sources, and the manifest last. Return the records of all files
    except the manifest.

    The bytes of the manifest should follow from the inputs alone, so its values hold no times and machine names.

    splits: both splits, with the counts given to `create_split`.
    files: the records of all files written so far, in any order.
    tokenizer: {"path": file at the root, "sha256": of that file, "fingerprint": of the tokenizer, "source_sha256": of
        the file it was read from}, or None.
    sources, options, versions: JSON values. Sources are written one at a time, in the order of their sequences.

    Raise ArgumentError if a split is missing. Raise AlreadyThere (tokenmill.stores.errors) if the store has a manifest,
    which is not replaced.
    """
    if set(splits) != set(flat_format.SPLITS):
        raise invalid("splits", f"must be {' and '.join(flat_format.SPLITS)}", sorted(splits))
    group = group_files(layout.zarr_format, {})
    records = [*files, *(write_file(root, name, data) for name, data in group.items())]
    # Splits share the group of the masks, so it comes twice.
    records = sorted({record.path: record for record in records}.values())
    of_files, listed_files = _write_list(root, FILES_NAME, file_lines(records))
    of_sources, listed_sources = _write_list(
        root, SOURCES_NAME, (json.dumps(dict(source)) for source in sources)
    )
    manifest = Manifest(
        splits={name: splits[name] for name in flat_format.SPLITS},
        files=listed_files,
        sources=listed_sources,
        layout=layout.to_json(),
        tokenizer=tokenizer,
        options=options or {},
        versions=versions or {},
    )
    _put(root, MANIFEST_NAME, manifest.to_bytes(), if_absent=True)
    return (*records, of_files, of_sources)


def _write_list(root: Destination, name: str, lines: Iterable[str]) -> tuple[FileRecord, ListRecord]:
    count, rest = 0, iter(lines)

    def blocks() -> Iterator[bytes]:
        nonlocal count
        while some := list(islice(rest, _LINES_AT_ONCE)):
            count += len(some)
            yield ("\n".join(some) + "\n").encode("ascii")

    record = write_file(root, name, blocks())
    return record, ListRecord(count, record.bytes, record.xxh64)


def _put(
    root: Destination,
    relative: str,
    payload: bytes | Iterable[bytes],
    scratch: Path | None = None,
    if_absent: bool = False,
) -> None:
    """Write a file or object, whole or not at all. if_absent: on a store, raise AlreadyThere if it exists."""
    place = locate("root", root)
    if isinstance(place, StorePath):
        place.store.put(relative, payload, if_absent)
        return
    path = f"{place}/{relative}"
    folder, _, name = path.rpartition("/")
    # Without scratch, a successor replaces the remains of a process that died.
    temporary = f"{scratch}/{os.urandom(8).hex()}.partial" if scratch else f"{folder}/.{name}.partial"
    blocks = (payload,) if isinstance(payload, bytes) else payload
    write_whole(path, blocks, temporary, synced=False)
