"""A compressed file of another tool, decoded as a whole and never beyond what its index says of its length."""

from __future__ import annotations

import bz2
import io
from typing import Any

import numpy as np

from flat_tokens.errors import damaged, printable
from flat_tokens.exchange.inputs import COPY_AGAIN, InputFile
from flat_tokens.storage import codecs

LARGEST_BYTES = 2**31  # of a file that is held in memory
CODECS = {"zstd": "zstd", "gz": "gzip", "bz2": "bz2"}  # names of others' to those of numcodecs


def read_decoded(file: InputFile, compression: str | None, most_bytes: Any) -> memoryview:
    """The bytes of a file, decoded if need be. compression: such as "zstd" or "zstd:7"; most_bytes: the decoded length
    that an index states. DatasetError for what is longer, of an unknown codec, or damaged."""
    if type(most_bytes) is not int or not 0 <= most_bytes <= LARGEST_BYTES:
        got = printable(repr(most_bytes), 40)
        raise damaged(
            file.name, f"its size in the index must be in [0, {LARGEST_BYTES}] (got {got})", COPY_AGAIN
        )
    file.check_range(0, min(file.size, LARGEST_BYTES))
    data = file.bytes(0, min(file.size, LARGEST_BYTES))
    if compression is None:
        return data
    codec_id = CODECS.get(str(compression).partition(":")[0])
    if codec_id is None:
        got = printable(str(compression), 40)
        fix = "Write it again with one of these."
        raise damaged(file.name, f"compression must be one of {', '.join(CODECS)} (got {got})", fix)
    room = np.empty(most_bytes, np.uint8)
    try:
        if codec_id == "bz2":
            return memoryview(bz2.open(io.BytesIO(data)).read(most_bytes))
        count = codecs.decode_into(codec_id, data, room)
        if count > most_bytes:
            raise ValueError(f"must decode to at most {most_bytes} bytes")
        return room.data[:count]
    except Exception as error:  # each decoder has its own
        raise damaged(file.name, f"damaged ({printable(str(error), 120)})", COPY_AGAIN) from None
