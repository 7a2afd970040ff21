"""Arrays that this package does not decode itself: the zarr library reads them, if their codecs are known to run no
code.

Invariant: what is returned equals what zarr reads, but that a file that is not there, is empty or is no regular file is
an error, where zarr reads zeros or waits for a pipe. A zarr chunk that a shard lacks is still read as zeros here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import DatasetError, printable
from flat_tokens.storage import zarr_metadata
from flat_tokens.storage.codecs import COMPRESSORS, FILTERS
from flat_tokens.storage.files import AbsentFileError, open_regular
from flat_tokens.storage.zarr_metadata import ForeignLayoutError

# What the zarr library may be asked to decode. Names outside, pickle above all, are refused.
HARMLESS_CODECS = (
    COMPRESSORS
    | FILTERS
    | {"astype", "bitround", "fixedscaleoffset", "packbits", "quantize", "transpose"}
    | {"adler32", "bytes", "crc32", "crc32c", "fletcher32", "jenkins_lookup3", "sharding_indexed"}
)


class ForeignArray:
    """An array of integers in one dimension, read by zarr. Picklable; safe to read from several threads.

    reason: why this package does not read it, told where zarr cannot either."""

    def __init__(self, path: Path, reason: ForeignLayoutError) -> None:
        self._path = path
        self._array: Any = _open(path, reason)
        self.dtype: np.dtype[Any] = self._array.dtype
        self.element_count = int(self._array.shape[0])
        self.chunk_elements = int(self._array.chunks[0])
        self._file_elements = _file_elements(self._array)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_array": None}

    def read(self, start: int, stop: int, missing_is_zero: bool) -> npt.NDArray[Any]:
        """The elements [start, stop), which must be inside. missing_is_zero: as for ChunkSource. Cost: what zarr takes,
        and the opening of each file."""
        for _ in self.file_sizes(start, stop, missing_is_zero):
            pass
        try:
            return np.asarray(self._opened()[start:stop])
        except (MemoryError, OSError):
            raise
        except Exception as error:  # zarr has no common base for what damaged zarr chunks provoke
            raise DatasetError(
                f"{printable(str(self._path))}: zarr cannot read it: {printable(str(error))}"
            ) from error

    def file_sizes(self, start: int, stop: int, missing_is_zero: bool) -> Iterator[tuple[int, int]]:
        """(first element, bytes) of each file with elements of [start, stop); DatasetError for one that is not there,
        unless missing_is_zero, or cannot be."""
        metadata, length = self._opened().metadata, self._file_elements
        for index in range(start // length, -(-stop // length)):
            path = self._path / metadata.encode_chunk_key((index,))
            try:
                file, size = open_regular(path)
            except AbsentFileError:
                if not missing_is_zero:
                    raise
                continue
            file.close()
            if size == 0:
                raise DatasetError(f"{printable(str(path))}: empty; restore it or convert again")
            yield index * length, size

    def _opened(self) -> Any:
        if self._array is None:
            self._array = _open(self._path, None)
        return self._array


def _open(path: Path, reason: ForeignLayoutError | None) -> Any:
    import zarr

    names = _codec_names(path)
    strange = sorted(names - HARMLESS_CODECS)
    if strange:
        listed = printable(", ".join(strange), 80)
        raise DatasetError(
            f"{printable(str(path))}: codec {listed} is not allowed; rewrite the dataset without it"
        )
    try:
        array = zarr.open_array(path, mode="r")
    except Exception as error:  # zarr has no common base for what hostile metadata provokes
        raise DatasetError(str(reason or "") or f"{printable(str(path))}: {printable(str(error))}") from error
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DatasetError(
            f"{printable(str(path))}: {array.dtype} of {array.ndim} dimensions is not flat-tokens"
        )
    if not 0 <= array.shape[0] < 2**63 or not _file_elements(array) > 0:
        raise DatasetError(
            f"{printable(str(path))}: {array.shape[0]} elements in files of {_file_elements(array)} cannot be; "
            "restore it or convert again"
        )
    if not 0 < array.chunks[0] * array.dtype.itemsize <= zarr_metadata.LARGEST_CHUNK_BYTES:
        raise DatasetError(
            f"{printable(str(path))}: zarr chunks of {array.chunks[0]} elements; write other ones"
        )
    return array


def _file_elements(array: Any) -> int:
    """Elements a file: of a shard, where there are shards."""
    return int((getattr(array, "shards", None) or array.chunks)[0])


def _codec_names(path: Path) -> set[str]:
    """All codec names in an array's metadata, wherever they hide; the prefix `numcodecs.` is left out."""
    v3 = (path / "zarr.json").is_file()
    node = zarr_metadata.read_json(path / ("zarr.json" if v3 else ".zarray"))
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
