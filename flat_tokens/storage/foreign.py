"""Arrays that this package does not decode itself: the zarr library reads them, if their codecs are known to run no
code and a zarr chunk does not decode to more than it can have (flat_tokens/storage/foreign_bounds.py).

Invariant: what is returned equals what zarr reads, but that a file that is not there, is empty or is no regular file is
an error, where zarr reads zeros or waits for a pipe. A zarr chunk that a shard lacks is still read as zeros here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import DatasetError, cause, damaged, printable
from flat_tokens.storage import zarr_metadata
from flat_tokens.storage.chunks import file_chunks, largest_file_bytes
from flat_tokens.storage.codecs import CodecChain
from flat_tokens.storage.files import AbsentFileError, check_length, open_regular, read_part, refuse_link
from flat_tokens.storage.foreign_bounds import HARMLESS_CODECS, ForeignBounds, not_allowed
from flat_tokens.storage.zarr_metadata import ForeignLayoutError, StoredArray

Stamp = tuple[int, int, int]  # of a file: inode, bytes, time of its last change

MOST_CHECKED = 2**14  # zarr chunks that are known to be within their bounds


class ForeignArray:
    """An array of integers in one dimension, read by zarr. Picklable; safe to read from several threads.

    reason: why this package does not read it, told where zarr cannot either."""

    def __init__(self, path: Path, reason: ForeignLayoutError) -> None:
        self._path = path
        zarr_format, node = _metadata(path)
        self._array: Any = _open(path, zarr_format, node, reason)
        self.dtype: np.dtype[Any] = self._array.dtype
        self.element_count = int(self._array.shape[0])
        self.chunk_elements = int(self._array.chunks[0])
        self._file_elements = _file_elements(self._array)
        self._bounds, self._stored = _bounded(path, zarr_format, node, self._array)
        self._checked: dict[int, Stamp] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_array": None, "_checked": {}}

    @property
    def file_count(self) -> int:
        """Files that a complete array has."""
        return self._stored.file_count

    def read(self, start: int, stop: int, missing_is_zero: bool) -> npt.NDArray[Any]:
        """The elements [start, stop), which must be inside. missing_is_zero: as for ChunkSource. Cost: what zarr takes,
        and the opening of each file."""
        for first, _ in self.file_sizes(start, stop, missing_is_zero):
            self._check(first // self._file_elements, start, stop)
        try:
            return np.asarray(self._opened()[start:stop])
        except (MemoryError, OSError):
            raise
        except Exception as error:  # zarr has no common base for what damaged zarr chunks provoke
            raise damaged(self._path, f"zarr cannot read it ({cause(error, 200)})") from error

    def file_sizes(self, start: int, stop: int, missing_is_zero: bool) -> Iterator[tuple[int, int]]:
        """(first element, bytes) of each file with elements of [start, stop); DatasetError for one that is not there,
        unless missing_is_zero, or cannot be."""
        length = self._file_elements
        for index in range(start // length, -(-stop // length)):
            path = self._chunk_path(index)
            try:
                file, size = open_regular(path)
            except AbsentFileError:
                if not missing_is_zero:
                    raise
                continue
            file.close()
            if size == 0:
                raise damaged(path, "empty file")
            yield index * length, size

    def _check(self, file_index: int, start: int, stop: int) -> None:
        """Raise DatasetError if a zarr chunk of a file with elements of [start, stop) decodes to more than it may."""
        stored = self._stored
        path = self._chunk_path(file_index)
        length = stored.chunk_elements
        first = max(start, file_index * stored.shard_elements) // length
        last = (min(stop, (file_index + 1) * stored.shard_elements) - 1) // length
        file, size = open_regular(path)
        with file:
            status = os.fstat(file.fileno())
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            if all(self._checked.get(index) == stamp for index in range(first, last + 1)):
                return
            check_length(path, size, largest_file_bytes(stored))
            read = partial(read_part, file, path)
            for index, place in file_chunks(stored, file_index, read, size):
                if first <= index <= last and place is not None and self._checked.get(index) != stamp:
                    self._bounds.check(read(*place), path)
                    if len(self._checked) >= MOST_CHECKED:
                        self._checked.clear()
                    self._checked[index] = stamp

    def _chunk_path(self, file_index: int) -> Path:
        key: str = self._opened().metadata.encode_chunk_key((file_index,))
        return self._path / key

    def _opened(self) -> Any:
        if self._array is None:
            self._array = _open(self._path, *_metadata(self._path), None)
        return self._array


def _metadata(path: Path) -> tuple[Literal[2, 3], dict[str, Any]]:
    """The format of an array and its metadata; DatasetError for what zarr would read beside them and must not."""
    node = zarr_metadata.read_if_there(path / "zarr.json")
    if node is not None:
        return 3, node
    zarr_metadata.read_if_there(path / ".zattrs")
    return 2, zarr_metadata.read_json(path / ".zarray")


def _open(
    path: Path, zarr_format: Literal[2, 3], node: dict[str, Any], reason: ForeignLayoutError | None
) -> Any:
    import zarr

    strange = sorted(_codec_names(node, zarr_format == 3) - HARMLESS_CODECS - {"sharding_indexed"})
    if strange:
        raise damaged(path, not_allowed(strange), "Rewrite the dataset without it.")
    try:
        array = zarr.open_array(path, mode="r", zarr_format=zarr_format)
    except Exception as error:  # zarr has no common base for what hostile metadata provokes
        raise DatasetError(str(reason or "") or f"{printable(str(path))}: {cause(error, 200)}") from error
    if array.ndim != 1 or array.dtype.kind not in "iu":
        got = f"{array.dtype} of {array.ndim} dimensions"
        raise DatasetError(f"{printable(str(path))}: must have integers in one dimension (got {got})")
    if not 0 <= array.shape[0] < 2**63 or not _file_elements(array) > 0:
        got = f"{array.shape[0]} elements in files of {_file_elements(array)}"
        raise damaged(path, f"impossible shape of the array (got {got})")
    if not 0 < array.chunks[0] * array.dtype.itemsize <= zarr_metadata.LARGEST_CHUNK_BYTES:
        raise damaged(path, zarr_metadata.large_chunks(array.chunks[0]), zarr_metadata.SMALLER)
    return array


def _file_elements(array: Any) -> int:
    """Elements a file: of a shard, where there are shards."""
    return int((getattr(array, "shards", None) or array.chunks)[0])


def _bounded(
    path: Path, zarr_format: Literal[2, 3], node: dict[str, Any], array: Any
) -> tuple[ForeignBounds, StoredArray]:
    """What bounds the decoding of an array, and how its files are made of zarr chunks. DatasetError where that is not
    known."""
    is_v3 = zarr_format == 3
    try:
        bounds = ForeignBounds.of(node, is_v3, int(array.chunks[0]), array.dtype.itemsize)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        fix = "Rewrite the dataset with other codecs."
        raise damaged(path, f"unsupported codecs ({cause(error, 120)})", fix) from None
    shard, file_elements = bounds.shard, _file_elements(array)
    stored = StoredArray(
        path=path,
        zarr_format=zarr_format,
        dtype=array.dtype.str,
        element_count=int(array.shape[0]),
        chunk_elements=file_elements if shard is None else shard.chunk_elements,
        shard_elements=file_elements,
        codecs=CodecChain(),
        sharded=shard is not None,
        index_at_end=shard is None or shard.index_at_end,
        index_crc32c=shard is not None and shard.index_crc32c,
    )
    zarr_metadata.check_sizes(stored, path)
    for folder in Path(array.metadata.encode_chunk_key((0,))).parents[:-1]:
        refuse_link(path / folder)
    return bounds, stored


def _codec_names(node: dict[str, Any], v3: bool) -> set[str]:
    """All codec names in an array's metadata, wherever they hide; the prefix `numcodecs.` is left out."""
    found: set[str] = set()
    todo: list[Any] = [node.get("codecs")] if v3 else [node.get("filters"), node.get("compressor")]
    while todo:
        value = todo.pop()
        if isinstance(value, list):
            todo.extend(value)
        elif isinstance(value, dict):
            found.add(str(value.get("name" if v3 else "id")).removeprefix("numcodecs."))
            todo.extend(nested for nested in value.values() if isinstance(nested, dict | list) and v3)
    return found - {"None"}
