"""litdata's folders of tokens: index.json lists the chunks, each a file of items. An item is a document.

A chunk, little endian: uint32 count of items, uint32[count + 1] bytes at which each starts and the last ends, then the
items. With TokensLoader an item is the IDs alone. `config.data_format` names their type by a number in litdata's lists.
With `config.compression` a chunk is compressed as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from flat_tokens.errors import cause, damaged, printable
from flat_tokens.exchange.files import COPY_AGAIN, inside, item_bounds, read_chunk, read_index, with_ends
from flat_tokens.exchange.formats import ReadOptions
from flat_tokens.split_writer import Block

TORCH_DTYPES = {11: "u1", 12: "i1", 13: "i2", 14: "i2", 15: "i4", 16: "i4", 17: "i8", 18: "i8", 20: "u2"}
NUMPY_DTYPES = {0: "i1", 1: "i2", 2: "i4", 3: "i8", 4: "u1", 5: "u2", 6: "u4", 7: "u8"}
DTYPES_OF = {"no_header_tensor": TORCH_DTYPES, "no_header_numpy": NUMPY_DTYPES}


def read(path: Path, _: ReadOptions) -> Iterator[Block]:
    """path: the folder. A chunk is held in memory."""
    index = path / "index.json"
    found = read_index(index)
    try:
        config, chunks = found["config"], found["chunks"]
        dtype, compression = _dtype(config), config.get("compression")
        listed = [(chunk["filename"], chunk["chunk_bytes"], chunk["chunk_size"]) for chunk in chunks]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        fix = "Write it with litdata.optimize(..., item_loader=TokensLoader())."
        raise damaged(index, f"not an index of tokens ({cause(error, 120)})", fix) from None
    for file_name, byte_count, item_count in listed:
        file = inside(path, file_name)
        data, name = read_chunk(file, byte_count, compression), printable(str(file))
        bounds = item_bounds(data, item_count, name)
        first = int(bounds[0])
        if first != 4 * (len(bounds) + 1) or ((bounds - first) % dtype.itemsize).any():
            what = f"items must fill bytes [{4 * (len(bounds) + 1)}, {len(data)}) with IDs of {dtype.itemsize} bytes"
            raise damaged(name, f"{what} (got [{first}, {bounds[-1]}))", COPY_AGAIN)
        ids = np.frombuffer(data, dtype, offset=first)
        yield from with_ends(ids, (bounds[1:] - first) // dtype.itemsize, name)


def _dtype(config: dict[str, Any]) -> np.dtype[Any]:
    """Return the type of the IDs. Raise ValueError if the chunks do not hold IDs."""
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
