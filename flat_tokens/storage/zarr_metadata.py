"""The metadata files of Zarr formats 2 and 3, for arrays of one dimension.

zarr is not imported: 0.2 s for a few lines of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from flat_tokens.errors import RESTORE, cause, damaged, printable
from flat_tokens.storage.codecs import CodecChain, UnknownCodecError
from flat_tokens.storage.places import Place, is_there, read_whole, refuse_link

# Limits of a dataset, so that memory does not depend on the claims of a file.
MAX_METADATA_BYTES = 2**22  # a few hundred are usual; parsed, they take up to 25 times as much
MAX_CONTAINERS = 2**22  # lists and objects of a JSON file: 64 bytes each, of as little as 3 bytes of text
MAX_FILES = 2**32  # per array, as in an ext4 file system: 10^15 tokens in files of the default size
MAX_CHUNK_BYTES = 2**31  # the most that Blosc compresses
MAX_SHARD_CHUNKS = 2**20  # 16 MiB of index; a random row reads 16 bytes of it. 256 are the default

SMALLER = "Rewrite the dataset with smaller ones."
REWRITE = "Rewrite the array: zarr.create_array(NEW_PATH, data=zarr.open_array(PATH)[:])."

_V3_TYPES = {
    "uint32": "<u4",
    "uint64": "<u8",
    "int32": "<i4",
    "int64": "<i8",
    "uint16": "<u2",
    "uint8": "|u1",
}

# Returns the object in a metadata file, None if there is no such file.
ReadMetadata = Callable[[Place], dict[str, Any] | None]


class StoredArray(NamedTuple):
    """How the elements of one array are stored. Small and picklable.

    path: the folder of the array.
    chunk_elements: elements per Zarr chunk.
    shard_elements: elements per file; equal to chunk_elements in format 2.
    element_count: elements of the array, from 0.
    sharded: whether each file has a shard index, at its end or at its start.
    """

    path: Place
    zarr_format: int
    dtype: str
    element_count: int
    chunk_elements: int
    shard_elements: int
    codecs: CodecChain
    sharded: bool = False
    index_at_end: bool = True
    index_crc32c: bool = True
    key_prefix: str = ""
    compression: str = "none"

    @property
    def file_count(self) -> int:
        """Files of a complete array."""
        return -(-self.element_count // self.shard_elements)

    @property
    def chunk_bytes(self) -> int:
        """Decoded bytes of a Zarr chunk."""
        return self.chunk_elements * np.dtype(self.dtype).itemsize

    def file_path(self, file_index: int) -> Place:
        """The file with the elements [file_index * shard_elements, ...)."""
        return self.path / self.file_key(file_index)

    def file_name(self, file_index: int) -> str:
        """The path of that file as text, which takes a tenth of the time."""
        return f"{self.path}/{self.file_key(file_index)}"

    def file_key(self, file_index: int) -> str:
        """Its name in the folder of the array: "c/7" in format 3."""
        return f"{self.key_prefix}{file_index}"


def read_json(path: Place) -> dict[str, Any]:
    """The object in a JSON file. Raise DatasetError if the file is missing or contains something else."""
    return parse_json(read_whole(path, MAX_METADATA_BYTES), path)


def parse_json(data: bytes, path: Place, fix: str = RESTORE) -> dict[str, Any]:
    """The object in the bytes of a JSON file. Raise DatasetError, which names the file."""
    if data.count(b"[") + data.count(b"{") > MAX_CONTAINERS:
        raise damaged(path, f"must have at most {MAX_CONTAINERS} lists and objects", fix)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"not valid JSON ({cause(error)})", fix) from None
    if not isinstance(value, dict):
        raise damaged(path, f"must be a JSON object (got {type(value).__name__})", fix)
    return value


def read_if_there(path: Place) -> dict[str, Any] | None:
    """As read_json, None for a missing file."""
    return read_json(path) if is_there(path) else None  # an error's text takes ten times as long


def read_group(path: Place, read: ReadMetadata = read_if_there) -> tuple[int, dict[str, Any]] | None:
    """(Zarr format, attributes) of the group at `path`, None without a group."""
    node = read(path / "zarr.json")
    if node is not None:
        attributes = node.get("attributes", {})
        if node.get("node_type") == "group" and node.get("zarr_format") == 3 and isinstance(attributes, dict):
            return 3, attributes
        return None
    node = read(path / ".zgroup")
    if node is None or node.get("zarr_format") != 2:
        return None
    return 2, read(path / ".zattrs") or {}


def read_array(path: Place, read: ReadMetadata = read_if_there) -> StoredArray:
    """How the array at `path` is stored. Raise DatasetError unless it is an array of one dimension with supported
    codecs, and if a link leads out of it."""
    refuse_link(path)
    for name, parse in (("zarr.json", _parse_v3), (".zarray", _parse_v2)):
        node = read(path / name)
        if node is None:
            continue
        file = path / name
        try:
            stored = parse(path, node)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            what = str(error) if isinstance(error, UnknownCodecError) else f"unsupported ({cause(error)})"
            raise damaged(file, what, REWRITE) from None
        _check_sizes(stored, file)
        if stored.key_prefix.endswith("/"):
            refuse_link(path / stored.key_prefix[:-1])
        return stored
    raise damaged(path, "not a zarr array (no .zarray or zarr.json)")


def _check_sizes(stored: StoredArray, file: Place) -> None:
    """Raise DatasetError for more files, or larger Zarr chunks or shards, than readers support."""
    if stored.file_count > MAX_FILES:
        raise damaged(file, f"an array has at most {MAX_FILES} files (got {stored.file_count})")
    if stored.chunk_bytes > MAX_CHUNK_BYTES:
        what = f"zarr chunks have at most 2 GiB (got {stored.chunk_elements} elements)"
        raise damaged(file, what, SMALLER)
    if stored.shard_elements // stored.chunk_elements > MAX_SHARD_CHUNKS:
        raise damaged(file, f"a shard has at most {MAX_SHARD_CHUNKS} zarr chunks", SMALLER)


def _length(value: Any, least: int, what: str) -> int:
    if not isinstance(value, list) or len(value) != 1:
        raise ValueError(f"{what} must have one dimension (got {printable(repr(value), 60)})")
    if type(value[0]) is not int or not least <= value[0] < 2**63:
        raise ValueError(f"{what} must be in [{least}, 2^63) (got {printable(repr(value[0]), 60)})")
    return value[0]


def _parse_v2(path: Place, node: dict[str, Any]) -> StoredArray:
    if node["zarr_format"] != 2 or node.get("fill_value") not in (0, None):
        raise ValueError("zarr_format must be 2 and fill_value 0")
    chunk = _length(node["chunks"], 1, "chunks")
    compressor = node.get("compressor")
    codecs = CodecChain.of(node.get("filters") or [], compressor)
    names = [f["id"] for f in node.get("filters") or []] + ([_v2_name(compressor)] if compressor else [])
    dtype = _dtype(node["dtype"])
    return StoredArray(
        path=path,
        zarr_format=2,
        dtype=dtype,
        element_count=_length(node["shape"], 0, "shape"),
        chunk_elements=chunk,
        shard_elements=chunk,
        codecs=codecs,
        compression=" ".join(names) or "none",
    )


def _v2_name(compressor: dict[str, Any]) -> str:
    if compressor["id"] != "blosc":
        return f"{compressor['id']} {compressor['level']}" if "level" in compressor else str(compressor["id"])
    shuffle = {1: " shuffle", 2: " bitshuffle"}.get(compressor.get("shuffle", 0), "")
    return printable(f"blosc {compressor.get('cname')} {compressor.get('clevel')}{shuffle}", 60)


def _dtype(text: Any) -> str:
    if not isinstance(text, str) or text not in ("<u4", "<u8", "<i4", "<i8", "<u2", "|u1"):
        raise ValueError(f"data type must be a little-endian integer (got {printable(repr(text), 60)})")
    return text


def _parse_v3(path: Place, node: dict[str, Any]) -> StoredArray:
    if node["zarr_format"] != 3 or node["node_type"] != "array" or node["fill_value"] != 0:
        raise ValueError("zarr_format must be 3, node_type array and fill_value 0")
    if node["chunk_grid"]["name"] != "regular" or node.get("storage_transformers"):
        raise ValueError("the chunk grid must be regular, without storage transformers")
    shard = _length(node["chunk_grid"]["configuration"]["chunk_shape"], 1, "chunk_shape")
    separator = node["chunk_key_encoding"].get("configuration", {}).get("separator", "/")
    if node["chunk_key_encoding"]["name"] != "default" or separator not in ("/", "."):
        raise ValueError("the chunk key encoding must be default")
    codecs, chunk, sharding = node["codecs"], shard, None
    if codecs[0]["name"] == "sharding_indexed" and len(codecs) == 1:
        sharding = codecs[0]["configuration"]
        codecs = sharding["codecs"]
        chunk = _length(sharding["chunk_shape"], 1, "chunk_shape")
        if shard % chunk:
            raise ValueError(f"shards must be a multiple of zarr chunks of {chunk} (got {shard})")
        if [codec["name"] for codec in sharding["index_codecs"]] not in (["bytes"], ["bytes", "crc32c"]):
            raise ValueError("the shard index must be bytes, or bytes and crc32c")
        _require_little_endian(sharding["index_codecs"][0])
    dtype = _V3_TYPES.get(node["data_type"]) if isinstance(node["data_type"], str) else None
    if dtype is None:
        got = printable(repr(node["data_type"]), 60)
        raise ValueError(f"data type must be one of {', '.join(_V3_TYPES)} (got {got})")
    chain, name = _v3_chain(codecs, np.dtype(dtype).itemsize)
    return StoredArray(
        path=path,
        zarr_format=3,
        dtype=dtype,
        element_count=_length(node["shape"], 0, "shape"),
        chunk_elements=chunk,
        shard_elements=shard,
        codecs=chain,
        sharded=sharding is not None,
        index_at_end=sharding is None or sharding.get("index_location", "end") == "end",
        index_crc32c=sharding is not None and len(sharding["index_codecs"]) == 2,
        key_prefix=f"c{separator}",
        compression=name,
    )


def _require_little_endian(codec: dict[str, Any], item_bytes: int = 8) -> None:
    has_order = (codec.get("configuration") or {}).get("endian") == "little" or item_bytes == 1
    if codec["name"] != "bytes" or not has_order:
        raise ValueError("the first codec must be bytes, little endian")


def _v3_chain(codecs: list[dict[str, Any]], item_bytes: int) -> tuple[CodecChain, str]:
    """The chain of format 3's codecs: little-endian bytes, at most one compressor, at most one crc32c at the
    end."""
    _require_little_endian(codecs[0], item_bytes)
    steps = codecs[1:]
    crc32c = bool(steps) and steps[-1]["name"] == "crc32c"
    steps = steps[: len(steps) - crc32c]
    if len(steps) > 1:
        raise UnknownCodecError(f"an array has at most one compressor (got {len(steps)})")
    if not steps:
        return CodecChain(crc32c=crc32c), "crc32c" if crc32c else "none"
    name, options = steps[0]["name"], dict(steps[0].get("configuration", {}))
    if name == "blosc":
        shuffle = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}[options["shuffle"]]
        config = {"id": "blosc", "cname": options["cname"], "clevel": options["clevel"], "shuffle": shuffle}
    elif name in ("zstd", "gzip"):
        config = {"id": name, "level": options["level"]}
    else:
        raise UnknownCodecError(f"codec must be one of blosc, gzip, zstd (got {printable(repr(name), 60)})")
    return CodecChain.of([], config, crc32c), _v2_name(config) + (" crc32c" if crc32c else "")
