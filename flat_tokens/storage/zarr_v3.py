"""The metadata file `zarr.json` of Zarr format 3, for groups and arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from flat_tokens.errors import printable
from flat_tokens.storage.codecs import CodecChain, UnknownCodecError
from flat_tokens.storage.places import Place
from flat_tokens.storage.zarr_metadata import DTYPES, ArrayMetadata, json_file, length_of

_TYPES = {np.dtype(dtype).name: dtype for dtype in DTYPES}
_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")  # of Blosc, by number


def group_files(attributes: Mapping[str, Any]) -> dict[str, bytes]:
    """The metadata of a group: file name -> content."""
    node = {"attributes": dict(attributes), "zarr_format": 3, "node_type": "group"}
    return {"zarr.json": json_file(node)}


def array_files(array: ArrayMetadata) -> dict[str, bytes]:
    """The metadata of an array with shards that have their index at the end: file name -> content."""
    little_endian = {"name": "bytes", "configuration": {"endian": "little"}}
    sharding = {
        "chunk_shape": [array.chunk_elements],
        "codecs": [little_endian, *_compressor(array), {"name": "crc32c"}],
        "index_codecs": [little_endian, {"name": "crc32c"}],
        "index_location": "end",
    }
    node = {
        "shape": [array.element_count],
        "data_type": np.dtype(array.dtype).name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [array.shard_elements]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
        "attributes": {},
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }
    return {"zarr.json": json_file(node)}


def _compressor(array: ArrayMetadata) -> list[dict[str, Any]]:
    config = json.loads(array.codecs.config)
    if array.codecs.compressor == "zstd":
        return [{"name": "zstd", "configuration": {"level": config["level"], "checksum": True}}]
    if array.codecs.compressor == "blosc":
        options = {
            "typesize": np.dtype(array.dtype).itemsize,
            "cname": config["cname"],
            "clevel": config["clevel"],
        }
        options |= {"shuffle": _SHUFFLES[config["shuffle"]], "blocksize": 0}
        return [{"name": "blosc", "configuration": options}]
    return []


def parse_array(path: Place, node: dict[str, Any]) -> ArrayMetadata:
    """The array that `zarr.json` describes. Raise ValueError, KeyError, IndexError, TypeError or AttributeError for
    another one."""
    if node["zarr_format"] != 3 or node["node_type"] != "array" or node["fill_value"] != 0:
        raise ValueError("zarr_format must be 3, node_type array and fill_value 0")
    if node["chunk_grid"]["name"] != "regular" or node.get("storage_transformers"):
        raise ValueError("the chunk grid must be regular, without storage transformers")
    shard = length_of(node["chunk_grid"]["configuration"]["chunk_shape"], 1, "chunk_shape")
    separator = node["chunk_key_encoding"].get("configuration", {}).get("separator", "/")
    if node["chunk_key_encoding"]["name"] != "default" or separator not in ("/", "."):
        raise ValueError("the chunk key encoding must be default")
    codecs, chunk, sharding = node["codecs"], shard, None
    if codecs[0]["name"] == "sharding_indexed" and len(codecs) == 1:
        sharding = codecs[0]["configuration"]
        codecs = sharding["codecs"]
        chunk = length_of(sharding["chunk_shape"], 1, "chunk_shape")
        if shard % chunk:
            raise ValueError(f"shards must be a multiple of zarr chunks of {chunk} (got {shard})")
        if [codec["name"] for codec in sharding["index_codecs"]] not in (["bytes"], ["bytes", "crc32c"]):
            raise ValueError("the shard index must be bytes, or bytes and crc32c")
        _require_little_endian(sharding["index_codecs"][0])
    dtype = _TYPES.get(node["data_type"]) if isinstance(node["data_type"], str) else None
    if dtype is None:
        got = printable(repr(node["data_type"]), 60)
        raise ValueError(f"data type must be one of {', '.join(_TYPES)} (got {got})")
    return ArrayMetadata(
        path=path,
        zarr_format=3,
        dtype=dtype,
        element_count=length_of(node["shape"], 0, "shape"),
        chunk_elements=chunk,
        shard_elements=shard,
        codecs=_chain(codecs, np.dtype(dtype).itemsize),
        sharded=sharding is not None,
        index_at_end=sharding is None or sharding.get("index_location", "end") == "end",
        index_crc32c=sharding is not None and len(sharding["index_codecs"]) == 2,
        key_prefix=f"c{separator}",
    )


def _require_little_endian(codec: dict[str, Any], item_bytes: int = 8) -> None:
    has_order = (codec.get("configuration") or {}).get("endian") == "little" or item_bytes == 1
    if codec["name"] != "bytes" or not has_order:
        raise ValueError("the first codec must be bytes, little endian")


def _chain(codecs: list[dict[str, Any]], item_bytes: int) -> CodecChain:
    """Little-endian bytes, at most one compressor, at most one crc32c at the end."""
    _require_little_endian(codecs[0], item_bytes)
    steps = codecs[1:]
    crc32c = bool(steps) and steps[-1]["name"] == "crc32c"
    steps = steps[: len(steps) - crc32c]
    if len(steps) > 1:
        raise UnknownCodecError(f"an array has at most one compressor (got {len(steps)})")
    if not steps:
        return CodecChain(crc32c=crc32c)
    name, options = steps[0]["name"], dict(steps[0].get("configuration", {}))
    if name == "blosc":
        shuffle = _SHUFFLES.index(options["shuffle"])
        config = {"id": "blosc", "cname": options["cname"], "clevel": options["clevel"], "shuffle": shuffle}
    elif name in ("zstd", "gzip"):
        config = {"id": name, "level": options["level"]}
    else:
        raise UnknownCodecError(f"codec must be one of blosc, gzip, zstd (got {printable(repr(name), 60)})")
    return CodecChain.of([], config, crc32c)
