"""The metadata files that the writer produces for Zarr formats 2 and 3.

They equal the files of zarr-python (tests/flat_tokens/test_writer.py), except that `.zarray` does not announce the
checksum of zstd frames. Every decoder compares it anyway, and zarr-python 2 with numcodecs 0.12 and tensorstore 0.1.86
reject a compressor with a member "checksum". There are no filters, because tensorstore supports none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from flat_tokens import format as flat_format
from flat_tokens.storage.codecs import CodecChain
from flat_tokens.storage.layout import ArrayLayout


def group_files(zarr_format: int, attributes: Mapping[str, Any]) -> dict[str, bytes]:
    """The metadata of a group: file name -> content."""
    if zarr_format == 2:
        files = {".zgroup": _json_bytes({"zarr_format": 2})}
        return files | ({".zattrs": _json_bytes(attributes)} if attributes else {})
    node = {"attributes": dict(attributes), "zarr_format": 3, "node_type": "group"}
    return {"zarr.json": _json_bytes(node)}


def array_files(
    layout: ArrayLayout, dtype: np.dtype[Any], element_count: int, chunk: int, shard: int
) -> dict[str, bytes]:
    """The metadata of an array with Zarr chunks of `chunk` and, in format 3, shards of `shard` elements: file name ->
    content."""
    if layout.zarr_format == 2:
        array: dict[str, Any] = {
            "shape": [element_count],
            "chunks": [chunk],
            "dtype": dtype.str,
            "fill_value": 0,
            "order": "C",
            "filters": None,
            "dimension_separator": ".",
            "compressor": _v2_compressor(layout),
            "zarr_format": 2,
        }
        return {".zarray": _json_bytes(array)}
    little_endian = {"name": "bytes", "configuration": {"endian": "little"}}
    sharding = {
        "chunk_shape": [chunk],
        "codecs": [little_endian, *_v3_compressor(layout, dtype.itemsize), {"name": "crc32c"}],
        "index_codecs": [little_endian, {"name": "crc32c"}],
        "index_location": "end",
    }
    array = {
        "shape": [element_count],
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [shard]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
        "attributes": {},
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }
    return {"zarr.json": _json_bytes(array)}


def split_files(
    layout: ArrayLayout,
    split: str,
    token_count: int,
    seq_count: int,
    max_token_id: int,
    has_mask: bool = False,
) -> dict[str, bytes]:
    """The metadata of a split, its arrays and its loss mask: path in the dataset -> content."""
    counts = {flat_format.TOKENS_NAME: token_count, flat_format.STARTS_NAME: seq_count + 1}
    folders = {split: group_files(layout.zarr_format, {flat_format.MAX_TOKEN_ID_NAME: int(max_token_id)})}
    if has_mask:
        counts[flat_format.MASK_NAME] = -(-token_count // flat_format.MASK_BITS)
        folders[flat_format.MASK_NAME] = group_files(layout.zarr_format, {})
    for array, count in counts.items():
        files = array_files(layout, flat_format.DTYPES[array], count, *layout.cuts(array))
        folders[flat_format.array_folder(split, array)] = files
    return {f"{folder}/{name}": data for folder, files in folders.items() for name, data in files.items()}


@lru_cache(maxsize=16)
def write_chain(layout: ArrayLayout) -> CodecChain:
    """The codecs of the writer. zstd frames have a checksum of their content; in format 3 a crc32c follows."""
    compressor = _v2_compressor(layout)
    if compressor is not None and compressor["id"] == "zstd":
        compressor["checksum"] = True
    return CodecChain.of([], compressor, crc32c=layout.zarr_format == 3)


def _v2_compressor(layout: ArrayLayout) -> dict[str, Any] | None:
    if layout.compression == "none":
        return None
    if layout.compression == "zstd":
        return {"id": "zstd", "level": layout.level}
    shuffle = 2 if layout.compression == "lz4-bitshuffle" else 0
    return {"id": "blosc", "cname": "lz4", "clevel": layout.level, "shuffle": shuffle, "blocksize": 0}


def _v3_compressor(layout: ArrayLayout, item_bytes: int) -> list[dict[str, Any]]:
    if layout.compression == "none":
        return []
    if layout.compression == "zstd":
        return [{"name": "zstd", "configuration": {"level": layout.level, "checksum": True}}]
    shuffle = "bitshuffle" if layout.compression == "lz4-bitshuffle" else "noshuffle"
    blosc = {
        "typesize": item_bytes,
        "cname": "lz4",
        "clevel": layout.level,
        "shuffle": shuffle,
        "blocksize": 0,
    }
    return [{"name": "blosc", "configuration": blosc}]


def _json_bytes(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode("ascii")
