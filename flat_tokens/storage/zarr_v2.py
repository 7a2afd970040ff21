"""The metadata files of Zarr format 2: `.zgroup` and `.zattrs` of a group, `.zarray` of an array.

The written files equal those of zarr-python, except that `.zarray` does not announce the checksum of zstd frames. Every
decoder compares it anyway, and zarr-python 2 with numcodecs 0.12 and tensorstore 0.1.86 reject a compressor with a
member "checksum". There are no filters, because tensorstore supports none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from flat_tokens.errors import printable
from flat_tokens.storage.codecs import CodecChain
from flat_tokens.storage.places import Place
from flat_tokens.storage.zarr_metadata import DTYPES, ArrayMetadata, json_file, length_of


def group_files(attributes: Mapping[str, Any]) -> dict[str, bytes]:
    """The metadata of a group: file name -> content."""
    files = {".zgroup": json_file({"zarr_format": 2})}
    return files | ({".zattrs": json_file(attributes)} if attributes else {})


def array_files(array: ArrayMetadata) -> dict[str, bytes]:
    """The metadata of an array: file name -> content."""
    node = {
        "shape": [array.element_count],
        "chunks": [array.chunk_elements],
        "dtype": array.dtype,
        "fill_value": 0,
        "order": "C",
        "filters": None,
        "dimension_separator": ".",
        "compressor": json.loads(array.codecs.config),
        "zarr_format": 2,
    }
    return {".zarray": json_file(node)}


def parse_array(path: Place, node: dict[str, Any]) -> ArrayMetadata:
    """The array that `.zarray` describes. Raise ValueError, KeyError, TypeError or AttributeError for another one."""
    if node["zarr_format"] != 2 or node.get("fill_value") not in (0, None):
        raise ValueError("zarr_format must be 2 and fill_value 0")
    chunk = length_of(node["chunks"], 1, "chunks")
    codecs = CodecChain.of(node.get("filters") or [], node.get("compressor"))
    dtype = node["dtype"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"data type must be a little-endian integer (got {printable(repr(dtype), 60)})")
    return ArrayMetadata(path, 2, dtype, length_of(node["shape"], 0, "shape"), chunk, chunk, codecs)
