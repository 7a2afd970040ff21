"""mosaicml-streaming's folders: index.json lists the shards, each a file of samples. A sample is a document.

A shard, little endian: uint32 count of samples, uint32[count + 1] bytes at which each starts and the last ends, the
shard's settings as JSON, the samples. A sample: uint32 bytes of each column without a fixed size, then the columns in
the order of their names. IDs are a column `ndarray[:dtype[:shape]]` or `bytes`. In an ndarray without a type the first
byte is its code, without a shape follow a byte (axes * 4 + log2 of the bytes per size) and the sizes. A shard may be
compressed as a whole, and have hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import choice, invalid
from flat_tokens.errors import FlatTokensError, cause, damaged, printable
from flat_tokens.exchange.files import COPY_AGAIN, inside, item_bounds, read_chunk, read_index
from flat_tokens.exchange.formats import BLOCK_TOKENS, FORMATS, ReadOptions
from flat_tokens.split_writer import Block

DTYPE_OF_CODE = {8: "u1", 9: "i1", 16: "u2", 17: "i2", 32: "u4", 33: "i4", 64: "u8", 65: "i8"}
USUAL_NAMES = ("tokens", "input_ids")
VERSION = 2


class _Column(NamedTuple):
    """Which bytes of a sample are the IDs.

    position: of the column in a sample.
    sizes: bytes of all columns, None where each sample states them.
    dtype: None where each value states it.
    has_shape: whether the column states the shape, so that the values do not.
    """

    position: int
    sizes: list[int | None]
    dtype: np.dtype[Any] | None
    has_shape: bool


def read(path: Path, options: ReadOptions) -> Iterator[Block]:
    """path: the folder. A shard is held in memory."""
    index = path / "index.json"
    shards = read_index(index).get("shards")
    if not isinstance(shards, list):
        raise damaged(index, "not an MDS index (no list of shards)", COPY_AGAIN)
    for number, shard in enumerate(shards):
        try:
            yield from _shard(path, shard, options, number == 0)
        except FlatTokensError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = f"shard {number} must have MDS version {VERSION} ({cause(error, 120)})"
            raise damaged(index, what, "Write the shards again.") from None


def _shard(path: Path, shard: dict[str, Any], options: ReadOptions, is_first: bool) -> Iterator[Block]:
    """Yield the blocks of a shard. A wrong entry of the index is a KeyError, TypeError or ValueError."""
    if shard["format"] != "mds" or shard["version"] != VERSION:
        raise ValueError(f"got format {shard['format']!r}, version {shard['version']!r}")
    column = _column(shard, options, is_first)
    raw, packed = shard["raw_data"], shard["zip_data"]
    is_packed = packed is not None and not inside(path, raw["basename"]).is_file()
    stored = packed if is_packed else raw
    file = inside(path, stored["basename"])
    if is_packed and file.is_file() and file.stat().st_size != stored["bytes"]:
        what = (
            f"must have {printable(repr(stored['bytes']), 40)} bytes by its index (got {file.stat().st_size})"
        )
        raise damaged(file, what, COPY_AGAIN)
    compression = shard["compression"] if is_packed else None
    data = read_chunk(file, raw["bytes"], compression, stored.get("hashes") or {})
    yield from _samples(data, column, shard["samples"], printable(str(file)))


def _column(shard: dict[str, Any], options: ReadOptions, is_first: bool) -> _Column:
    names, encodings, sizes = shard["column_names"], shard["column_encodings"], shard["column_sizes"]
    usual = [name for name in USUAL_NAMES if name in names]
    arrays = [name for name, encoding in zip(names, encodings, strict=True) if encoding.startswith("ndarray")]
    name = options.column or (usual or (arrays if len(arrays) == 1 else [""]))[0]
    if name not in names:
        raise invalid("--column", f"must be one of {', '.join(map(printable, names))}", name or None)
    others = [printable(other) for other in names if other != name]
    if others and is_first:
        options.notes.append(f"column {printable(name)}: imported as IDs. Ignored: {', '.join(others)}.")
    index = names.index(name)
    kind, *details = encodings[index].split(":")
    if kind == "bytes":
        dtypes = FORMATS["mds"].read_dtypes or ()
        dtype = choice(f"--dtype (for column {printable(name)})", options.dtype, dtypes)
        return _Column(index, sizes, np.dtype(dtype).newbyteorder("<"), True)
    stated = np.dtype(details[0]).newbyteorder("<") if details else None
    is_flat = len(details) < 2 or "," not in details[1]
    if kind != "ndarray" or not is_flat or (stated is not None and stated.kind not in "iu"):
        what = "must have integer arrays or bytes"
        raise invalid(f"--column {printable(name)}", what, encodings[index])
    return _Column(index, sizes, stated, len(details) > 1)


def _samples(data: memoryview, column: _Column, sample_count: Any, name: str) -> Iterator[Block]:
    bounds = item_bounds(data, sample_count, name).tolist()
    parts: list[npt.NDArray[Any]] = []
    waiting = 0
    for at, (start, stop) in enumerate(pairwise(bounds)):
        try:
            parts.append(_ids(data, start, stop, column))
        except (ValueError, KeyError, IndexError) as error:
            raise damaged(f"{name}: sample {at}", printable(str(error), 120), COPY_AGAIN) from None
        waiting += len(parts[-1])
        if waiting >= BLOCK_TOKENS or at == len(bounds) - 2:
            yield Block(np.concatenate(parts), np.cumsum([len(part) for part in parts]))
            parts, waiting = [], 0


def _ids(data: memoryview, start: int, stop: int, column: _Column) -> npt.NDArray[Any]:
    """Return the IDs of the sample in bytes [start, stop). Raise ValueError if the bytes do not fit."""
    variable = sum(not size for size in column.sizes)
    stated = iter(np.frombuffer(data, "<u4", variable, start).tolist())
    sizes = [size or next(stated) for size in column.sizes]
    start += 4 * variable
    if start + sum(sizes) != stop:
        raise ValueError(f"columns must have {stop - start} bytes together (got {sum(sizes)})")
    start += sum(sizes[: column.position])
    stop = start + sizes[column.position]
    dtype = column.dtype
    if dtype is None:
        dtype = np.dtype(DTYPE_OF_CODE[data[start]]).newbyteorder("<")
        start += 1
    if not column.has_shape:
        axes, size_bytes = data[start] >> 2, 1 << (data[start] & 3)
        if axes != 1:
            raise ValueError(f"arrays of IDs must have one dimension (got {axes})")
        start += 1 + size_bytes
    if start > stop or (stop - start) % dtype.itemsize:
        raise ValueError(f"size of the IDs must be a multiple of {dtype.itemsize} bytes (got {stop - start})")
    return np.frombuffer(data, dtype, (stop - start) // dtype.itemsize, start)
