"""litdata's folders of tokens: index.json lists the chunks, each a file of items; an item is a document.

A chunk, little endian: uint32 count of items, uint32[count + 1] bytes at which each begins and the last ends, then the
items. With TokensLoader an item is the ids alone; `config.data_format` names their type by a number of litdata's lists.
With `config.compression` a chunk is compressed as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from flat_tokens.errors import damaged, printable
from flat_tokens.exchange.blocks import Block
from flat_tokens.exchange.compressed import read_decoded
from flat_tokens.exchange.formats import Reader
from flat_tokens.exchange.inputs import (
    COPY_AGAIN,
    InputFile,
    ReadOptions,
    in_blocks,
    joined,
    parse_index,
    truncated,
)

TORCH_DTYPES = {11: "u1", 12: "i1", 13: "i2", 14: "i2", 15: "i4", 16: "i4", 17: "i8", 18: "i8", 20: "u2"}
NUMPY_DTYPES = {0: "i1", 1: "i2", 2: "i4", 3: "i8", 4: "u1", 5: "u2", 6: "u4", 7: "u8"}
DTYPES_OF = {"no_header_tensor": TORCH_DTYPES, "no_header_numpy": NUMPY_DTYPES}


def read(place: str, options: ReadOptions) -> Iterator[Block]:
    """See Reader. place: the folder. A chunk is held in memory."""
    with InputFile(joined(place, "index.json"), options.storage) as index:
        found, name = parse_index(index), index.name
    try:
        config, chunks = found["config"], found["chunks"]
        dtype = _dtype(config)
        compression = config.get("compression")
        listed = [(chunk["filename"], chunk["chunk_bytes"], chunk["chunk_size"]) for chunk in chunks]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        fix = "Write it with litdata.optimize(..., item_loader=TokensLoader())."
        raise damaged(name, f"not an index of tokens ({printable(str(error), 120)})", fix) from None
    for filename, byte_count, item_count in listed:
        with InputFile(joined(place, filename), options.storage) as file:
            data = read_decoded(file, compression, byte_count)
            if len(data) != byte_count:
                raise truncated(file.name, byte_count, len(data))
            yield from _chunk(data, dtype, item_count, file.name)


def _dtype(config: dict[str, Any]) -> np.dtype[Any]:
    """The ids' type; ValueError for what is no ids."""
    if config.get("encryption"):
        raise ValueError("the chunks are encrypted")
    if config.get("item_loader") not in (None, "TokensLoader"):
        raise ValueError(f"item_loader must be TokensLoader, got {config['item_loader']}")
    if config.get("compression_level") is not None:
        raise ValueError(f"compression_level must be null, got {config['compression_level']}")
    if len(config["data_format"]) != 1:
        raise ValueError(f"data_format must have one entry, got {', '.join(map(str, config['data_format']))}")
    (data_format,) = config["data_format"]
    serializer, _, number = data_format.partition(":")
    return np.dtype(DTYPES_OF[serializer][int(number)]).newbyteorder("<")


def _chunk(data: memoryview, dtype: np.dtype[Any], item_count: Any, name: str) -> Iterator[Block]:
    count = int(np.frombuffer(data, "<u4", 1)[0]) if len(data) >= 4 else -1
    first = 4 * (count + 2)
    if count != item_count or len(data) < first:
        stated = printable(repr(item_count), 40)
        raise damaged(name, f"must have {stated} items by the index (got {count} in the header)", COPY_AGAIN)
    offsets = np.frombuffer(data, "<u4", count + 1, 4).astype(np.int64)
    lengths = np.diff(offsets)
    if (
        offsets[0] != first
        or offsets[-1] != len(data)
        or (lengths < 0).any()
        or (lengths % dtype.itemsize).any()
    ):
        what = f"items must fill bytes [{first}, {len(data)}) with IDs of {dtype.itemsize} bytes"
        raise damaged(name, f"{what} (got [{offsets[0]}, {offsets[-1]}))", COPY_AGAIN)
    yield from in_blocks(np.frombuffer(data, dtype, offset=first), (offsets[1:] - first) // dtype.itemsize)


READER = Reader(read)
