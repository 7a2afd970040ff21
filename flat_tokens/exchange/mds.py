"""mosaicml-streaming's folders: index.json lists the shards, each a file of samples; a sample is a document.

A shard, little endian: uint32 count of samples, uint32[count + 1] bytes at which each begins and the last ends, the
shard's settings as JSON, the samples. A sample: uint32 bytes of each column that has no fixed size, then the columns in
the order of their names. Ids are a column `ndarray[:dtype[:shape]]` or `bytes`; of an ndarray without a type a byte
tells it, without a shape follow a byte (axes * 4 + log2 of the bytes of a size) and the sizes. A shard may be
compressed as a whole, and have hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import choice, invalid
from flat_tokens.errors import ArgumentError, FlatTokensError, damaged, printable
from flat_tokens.exchange.blocks import BLOCK_TOKENS, Block
from flat_tokens.exchange.compressed import read_decoded
from flat_tokens.exchange.formats import Reader
from flat_tokens.exchange.inputs import (
    COPY_AGAIN,
    InputFile,
    ReadOptions,
    exists,
    joined,
    parse_index,
    truncated,
)
from flat_tokens.storage.file_digest import file_digest

DTYPES = ("uint16", "uint32", "int32", "int64")  # of a column of bytes
DTYPE_OF_CODE = {8: "u1", 9: "i1", 16: "u2", 17: "i2", 32: "u4", 33: "i4", 64: "u8", 65: "i8"}
USUAL_NAMES = ("tokens", "input_ids")
VERSION = 2


class _Column(NamedTuple):
    """Which bytes of a sample are the ids, and how they are to be read. sizes: of all columns, None where a sample says
    it; dtype: None where the value says it."""

    place: int
    sizes: list[int | None]
    dtype: np.dtype[Any] | None
    has_shape: bool


def read(place: str, options: ReadOptions) -> Iterator[Block]:
    """See Reader. place: the folder. A shard is held in memory."""
    with InputFile(joined(place, "index.json"), options.storage) as index:
        found, name = parse_index(index), index.name
    shards = found.get("shards")
    if not isinstance(shards, list):
        raise damaged(name, "not an MDS index (no list of shards)", COPY_AGAIN)
    for number, shard in enumerate(shards):
        try:
            yield from _shard(place, shard, options, number == 0)
        except FlatTokensError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = f"shard {number} must have MDS version {VERSION} ({printable(str(error), 120)})"
            raise damaged(name, what, "Write the shards again.") from None


def _shard(place: str, shard: dict[str, Any], options: ReadOptions, is_first: bool) -> Iterator[Block]:
    """The blocks of a shard, by its entry in the index; what that lacks is a KeyError, TypeError or ValueError."""
    if shard["format"] != "mds" or shard["version"] != VERSION:
        raise ValueError(f"got format {shard['format']!r}, version {shard['version']!r}")
    column = _column(shard, options, is_first)
    raw, packed = shard["raw_data"], shard["zip_data"]
    is_compressed = packed is not None and not exists(joined(place, raw["basename"]), options.storage)
    stored = packed if is_compressed else raw
    with InputFile(joined(place, stored["basename"]), options.storage) as file:
        _check_file(file, stored)
        data = read_decoded(file, shard["compression"] if is_compressed else None, raw["bytes"])
        name = file.name
    if len(data) != raw["bytes"]:
        raise truncated(name, raw["bytes"], len(data))
    yield from _samples(data, column, shard["samples"], name)


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
        dtype = choice(f"--dtype (for column {printable(name)})", options.dtype, DTYPES)
        return _Column(index, sizes, np.dtype(dtype).newbyteorder("<"), True)
    if kind != "ndarray" or (len(details) > 1 and "," in details[1]):
        raise _not_ids(name, encodings[index])
    dtype_or_none = np.dtype(details[0]).newbyteorder("<") if details else None
    if dtype_or_none is not None and dtype_or_none.kind not in "iu":
        raise _not_ids(name, encodings[index])
    return _Column(index, sizes, dtype_or_none, len(details) > 1)


def _not_ids(column: str, encoding: str) -> ArgumentError:
    return invalid(f"--column {printable(column)}", "must have integer arrays or bytes", encoding)


def _check_file(file: InputFile, stored: dict[str, Any]) -> None:
    """Raise DatasetError unless it has the bytes and hashes that the index says; unknown hashes are ignored."""
    if file.size != stored["bytes"]:
        raise truncated(file.name, stored["bytes"], file.size)
    for kind, expected in (stored.get("hashes") or {}).items():
        if kind == "xxh64":
            got = file_digest((file.bytes(0, file.size),))
        elif kind in hashlib.algorithms_guaranteed and not kind.startswith("shake"):
            got = hashlib.new(kind, file.bytes(0, file.size)).hexdigest()
        else:
            continue
        if got != expected:
            what = f"{kind} must be {printable(str(expected))} by the index (got {got})"
            raise damaged(file.name, what, COPY_AGAIN)


def _samples(data: memoryview, column: _Column, sample_count: Any, name: str) -> Iterator[Block]:
    count = int(np.frombuffer(data, "<u4", 1)[0]) if len(data) >= 4 else -1
    if count != sample_count or len(data) < 4 * (count + 2):
        stated = printable(repr(sample_count), 40)
        what = f"must have {stated} samples by the index (got {count} in the header)"
        raise damaged(name, what, COPY_AGAIN)
    offsets = np.frombuffer(data, "<u4", count + 1, 4).astype(np.int64)
    if offsets[-1] != len(data) or offsets[0] < 4 * (count + 2) or (np.diff(offsets) < 0).any():
        what = f"samples must end at byte {len(data)} (got {offsets[-1]})"
        raise damaged(name, what, COPY_AGAIN)
    borders = offsets.tolist()
    parts: list[npt.NDArray[Any]] = []
    lengths: list[int] = []
    waiting = 0
    for at in range(count):
        try:
            ids = _ids(data, borders[at], borders[at + 1], column)
        except (ValueError, KeyError, IndexError) as error:
            raise damaged(f"{name}: sample {at}", printable(str(error), 120), COPY_AGAIN) from None
        parts.append(ids)
        lengths.append(len(ids))
        waiting += len(ids)
        if waiting >= BLOCK_TOKENS:
            yield Block(np.concatenate(parts), np.cumsum(lengths))
            parts, lengths, waiting = [], [], 0
    if parts:
        yield Block(np.concatenate(parts), np.cumsum(lengths))


def _ids(data: memoryview, start: int, stop: int, column: _Column) -> npt.NDArray[Any]:
    """The ids of the sample in bytes [start, stop). ValueError for what does not fit."""
    variable = sum(not size for size in column.sizes)
    stated = iter(np.frombuffer(data, "<u4", variable, start).tolist())
    sizes = [size or next(stated) for size in column.sizes]
    start += 4 * variable
    if start + sum(sizes) != stop:
        raise ValueError(f"columns must have {stop - start} bytes together (got {sum(sizes)})")
    start += sum(sizes[: column.place])
    stop = start + sizes[column.place]
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


READER = Reader(read, DTYPES, has_columns=True)
