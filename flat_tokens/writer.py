"""Writing a dataset, made for many processes that write disjoint aligned runs of one split.

One process calls `create_split` for each split; any number of processes call `write_tokens`, `write_starts` and, for a
dataset with loss masks, `write_mask` with runs that begin at multiples of the layout's write units and
end there too, except for the array's last run; then one process calls `write_root`, which puts the manifest last.
Invariant: no file holds parts of two runs, so a run can be written again after a failure with the same result. A file
of a run that failed may be cut off: whoever goes on must write it again. All other files appear under their names only
when they are whole, and so do all objects of a store, of which the manifest is put only if there is none: of two
writers one succeeds.

Bytes are encoded by numcodecs here: zarr is never imported, and all-zero zarr chunks are stored like any
others (zarr leaves them out by default and reads a missing one as zeros, which hides a lost file).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens import format as flat_format
from flat_tokens.arguments import choice, invalid
from flat_tokens.errors import ArgumentError
from flat_tokens.storage import written_metadata
from flat_tokens.storage.chunks import join_shard, pad
from flat_tokens.storage.file_digest import FileDigest, file_digest
from flat_tokens.storage.files import write_all
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
    source_lines,
)
from flat_tokens.storage.places import Place, StorePath
from flat_tokens.storage.token_facts import TokenFacts, content_digest, token_facts
from tokenmill.stores import Store
from tokenmill.stores.names import rename

_LIST_BLOCK_BYTES = 1 << 16
Destination = Path | Store  # the dataset's folder, or the container that it is


def load_codecs(layout: ArrayLayout) -> None:
    """Import what the layout's codecs need, once, so that processes forked later inherit it: 30 ms each otherwise."""
    written_metadata.write_chain(layout).encode(np.zeros(1, dtype=flat_format.TOKENS_DTYPE))


def create_arrays(root: Destination, split: str, layout: ArrayLayout, has_mask: bool = False) -> None:
    """Make the folders of a split's arrays, so that runs can be written before the arrays' sizes are known; nothing on
    a store, which has no folders.

    `create_split` writes the metadata, without which they can't be opened, before or after the runs."""
    place = place_of(root)
    if isinstance(place, Path):
        names = [f"{split}/{flat_format.TOKENS_NAME}", f"{split}/{flat_format.STARTS_NAME}"]
        for name in [*names, f"{flat_format.MASK_NAME}/{split}"][: 2 + has_mask]:
            folder = place / name / ("c" if layout.zarr_format == 3 else "")
            folder.mkdir(parents=True, exist_ok=True)


def create_split(
    root: Destination,
    split: str,
    token_count: int,
    seq_count: int,
    max_token_id: int,
    layout: ArrayLayout,
    has_mask: bool = False,
) -> list[FileRecord]:
    """Write the metadata of a split, whose arrays have their final size from the start; records of the files
    written. has_mask: whether it has a loss mask.

    root need not exist. A split without sequences has token_count 0, max_token_id 0, and seq_starts [0],
    which must be written like any other. ArgumentError for counts that no sequences could have, and for a layout that
    is not for a store."""
    choice("split", split, flat_format.SPLITS)
    if not 0 <= seq_count <= token_count or (seq_count == 0) != (token_count == 0):
        rule = f"sequences must have at least one token each, of {token_count} tokens in all"
        raise invalid("seq_count", rule, seq_count)
    if not 0 <= max_token_id <= flat_format.LARGEST_TOKEN_ID:
        raise invalid("max_token_id", f"must be in [0, {flat_format.LARGEST_TOKEN_ID}]", max_token_id)
    if layout.zarr_format != 3 and isinstance(place_of(root), StorePath):
        raise invalid("zarr_format", "must be 3 for a dataset on a store", layout.zarr_format)
    create_arrays(root, split, layout, has_mask)
    files = written_metadata.split_files(layout, split, token_count, seq_count, max_token_id, has_mask)
    return [write_file(root, name, data) for name, data in files.items()]


def write_tokens(
    root: Destination, split: str, layout: ArrayLayout, first_token: int, tokens: npt.NDArray[np.uint32]
) -> list[FileRecord]:
    """Write a run of encoded tokens from position first_token on; records of the files written.

    tokens: uint32[n], `id * 2 + 1` at starts and `id * 2` elsewhere (`format.encode_tokens`); first_token: a
    multiple of layout.write_unit_tokens. Only the last run of the array may have a length that is no
    multiple. Cost: 5 to 10 ns a token with zstd level 1, and memory for one file. ArgumentError for a run
    off the units."""
    written = _write_run(
        root,
        f"{split}/{flat_format.TOKENS_NAME}",
        layout,
        (layout.chunk_tokens, layout.write_unit_tokens),
        first_token,
        _as(tokens, flat_format.TOKENS_DTYPE),
    )
    return [record for record, _ in written]


def write_tokens_with_facts(
    root: Destination,
    split: str,
    layout: ArrayLayout,
    first_token: int,
    tokens: npt.NDArray[np.uint32],
    scratch: Path | None = None,
) -> list[tuple[FileRecord, TokenFacts | None]]:
    """As `write_tokens`, with the facts that `verify_dataset` takes in place of decoding each file; None for a file
    that it must decode. scratch: a folder of the same file system, where each file is written under a name of its own
    before it is renamed: then a run may be written by several processes at once. On a store it may be without."""
    return _write_run(
        root,
        f"{split}/{flat_format.TOKENS_NAME}",
        layout,
        (layout.chunk_tokens, layout.write_unit_tokens),
        first_token,
        _as(tokens, flat_format.TOKENS_DTYPE),
        with_facts=True,
        scratch=scratch,
    )


def write_starts(
    root: Destination,
    split: str,
    layout: ArrayLayout,
    first_index: int,
    starts: npt.NDArray[np.uint64],
    scratch: Path | None = None,
) -> list[FileRecord]:
    """Write a run of seq_starts from entry first_index on; records of the files written.

    starts: uint64[n], positions in the whole split; the array's very last entry is token_count. first_index:
    a multiple of layout.write_unit_starts, as for `write_tokens`. scratch: as for `write_tokens_with_facts`."""
    cuts = (layout.chunk_starts, layout.write_unit_starts)
    written = _write_run(
        root,
        f"{split}/{flat_format.STARTS_NAME}",
        layout,
        cuts,
        first_index,
        _as(starts, flat_format.STARTS_DTYPE),
        scratch=scratch,
    )
    return [record for record, _ in written]


def write_mask(
    root: Destination,
    split: str,
    layout: ArrayLayout,
    first_token: int,
    trained: npt.NDArray[np.bool_],
    scratch: Path | None = None,
) -> list[FileRecord]:
    """Write a run of the loss mask from token first_token on; records of the files written.

    trained: bool[n], whether each token contributes to the loss. first_token: a multiple of layout.write_unit_tokens,
    as for `write_tokens`. scratch: as for `write_tokens_with_facts`."""
    folder = f"{flat_format.MASK_NAME}/{split}"
    cuts, bits = layout.mask_cuts, flat_format.packed_mask(trained)
    _check_begin(folder, first_token, layout.write_unit_tokens)
    written = _write_run(
        root, folder, layout, cuts, first_token // flat_format.MASK_BITS, bits, scratch=scratch
    )
    return [record for record, _ in written]


def _check_begin(folder: str, first: int, unit: int) -> None:
    if first < 0 or first % unit:
        raise invalid(folder, f"first element must be a multiple of the write unit {unit}", first)


def _as(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if values.ndim != 1 or values.dtype != dtype:
        got = f"{values.dtype.name} of {values.ndim} dimensions"
        raise ArgumentError(f"values: must be {dtype.name}[n] (got {got})")
    return np.ascontiguousarray(values)


def _write_run(
    root: Destination,
    folder: str,
    layout: ArrayLayout,
    chunk_and_unit: tuple[int, int],
    first: int,
    values: npt.NDArray[Any],
    with_facts: bool = False,
    scratch: Path | None = None,
) -> list[tuple[FileRecord, TokenFacts | None]]:
    chunk, unit = chunk_and_unit
    _check_begin(folder, first, unit)
    codecs = written_metadata.write_chain(layout)
    prefix, place = "c/" if layout.zarr_format == 3 else "", place_of(root)
    written = []
    for start in range(0, len(values), unit):
        part = values[start : start + unit]
        chunks = [pad(part[at : at + chunk], chunk) for at in range(0, len(part), chunk)]
        facts, digests = None, []
        if with_facts:
            # Before they are compressed: they are in the core's cache, and a change of them meanwhile is noticed.
            facts, digests = token_facts(part), [content_digest(values) for values in chunks]
        encoded = [codecs.encode(values) for values in chunks]
        if not all(map(codecs.is_content, encoded, digests)):
            facts = None
        payload = join_shard(encoded, unit // chunk) if layout.zarr_format == 3 else encoded[0]
        relative = f"{folder}/{prefix}{(first + start) // unit}"
        if isinstance(place, StorePath):
            place.store.put(relative, payload)
        elif scratch is None:
            _put(f"{place}/{relative}", payload)
        else:
            _put_and_rename(f"{scratch}/{os.urandom(8).hex()}.partial", f"{place}/{relative}", payload)
        written.append((_record(relative, payload), facts))
    return written


def write_file(root: Destination, relative: str, payload: bytes | Iterable[bytes]) -> FileRecord:
    """Write one file of the dataset, whole or not at all, and return its record. For the tokenizer and other
    companions at the dataset's root as well: write_file(root, "tokenizer.json", data). payload: may come block by
    block. OSError passes through."""
    check_relative_path(relative)
    size, digest = 0, FileDigest()

    def blocks() -> Iterator[bytes]:
        nonlocal size
        for block in (payload,) if isinstance(payload, bytes) else payload:
            size += len(block)
            digest.update(block)
            yield block

    _put_whole(root, relative, blocks())
    return FileRecord(relative, size, digest.text())


def place_of(root: Destination) -> Place:
    """Where a dataset is read from that is written to `root`."""
    if isinstance(root, Path):
        return root
    return Path(root.path) if root.is_local else StorePath(root)


def _put_whole(
    root: Destination, relative: str, payload: bytes | Iterable[bytes], if_absent: bool = False
) -> None:
    """if_absent: on a store AlreadyThere if another was faster; in a folder it is replaced."""
    place = place_of(root)
    if isinstance(place, StorePath):
        place.store.put(relative, payload, if_absent)
        return
    path = f"{place}/{relative}"
    folder, _, name = path.rpartition("/")
    # One name whoever writes it: what a process that died has left is replaced by the one that takes its place.
    _put_and_rename(f"{folder}/.{name}.partial", path, payload)


def _put_and_rename(temporary: str, path: str, payload: bytes | Iterable[bytes]) -> None:
    _put(temporary, payload)
    try:
        rename(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)  # noqa: PTH108
        raise


def _put(path: str, payload: bytes | Iterable[bytes]) -> None:
    """The file with these bytes alone, or none."""
    try:
        write_all(path, payload, os.O_TRUNC)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = path
        with suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108
        raise


def _record(relative: str, payload: bytes) -> FileRecord:
    return FileRecord(relative, len(payload), file_digest((payload,)))


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
    """Write the root group, the lists of files and sources and, last of all, the manifest. Return the records of all
    files except the manifest.

    splits: both of them, as given to `create_split`.
    files: the records of everything written so far, in any order.
    tokenizer: {"path": of the file at the root, "sha256": of that file, "fingerprint": of the tokenizer,
        "source_sha256": of the file or files it was read from} or None.
    sources: plain JSON values, in the order of their sequences; each is written before the next one is requested.
    options, versions: plain JSON values. No times or host names: the manifest should follow from the inputs alone.

    Raise ArgumentError if a split is missing, and AlreadyThere (tokenmill.stores.errors) if the store has a manifest,
    which then remains unchanged."""
    if set(splits) != set(flat_format.SPLITS):
        raise invalid("splits", f"must be {' and '.join(flat_format.SPLITS)}", sorted(splits))
    group = written_metadata.group_files(layout.zarr_format, {})
    records = [*files, *(write_file(root, name, data) for name, data in group.items())]
    listed = sorted(
        {record.path: record for record in records}.values()
    )  # splits share the group of the masks
    lists = [
        _write_list(root, FILES_NAME, file_lines(listed)),
        _write_list(root, SOURCES_NAME, source_lines(sources)),
    ]
    manifest = Manifest(
        splits={name: splits[name] for name in flat_format.SPLITS},
        files=lists[0],
        sources=lists[1],
        layout=layout.to_json(),
        tokenizer=tokenizer,
        options=options or {},
        versions=versions or {},
    )
    _put_whole(root, MANIFEST_NAME, manifest.to_bytes(), if_absent=True)
    of_lists = (
        FileRecord(name, *record[1:]) for name, record in zip((FILES_NAME, SOURCES_NAME), lists, strict=True)
    )
    return (*listed, *of_lists)


def _write_list(root: Destination, name: str, lines: Iterable[str]) -> ListRecord:
    count = 0

    def blocks() -> Iterator[bytes]:
        nonlocal count
        block = bytearray()
        for line in lines:
            count += 1
            block += line.encode("ascii") + b"\n"
            if len(block) >= _LIST_BLOCK_BYTES:
                yield bytes(block)
                block.clear()
        yield bytes(block)

    record = write_file(root, name, blocks())
    return ListRecord(count, record.bytes, record.digest)
