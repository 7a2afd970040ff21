"""Reading the metadata files of zarr formats 2 and 3, for arrays of one dimension.

zarr is not imported: 0.2 s for a few lines of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from flat_tokens.errors import RESTORE, DatasetError, cause, damaged, printable
from flat_tokens.storage import opened_manifest
from flat_tokens.storage.codecs import CodecChain, UnknownCodecError
from flat_tokens.storage.opened_manifest import OpenedManifest
from flat_tokens.storage.places import Place, is_there, read_whole, refuse_link

# What no dataset goes beyond. What is parsed or held by a reader is bounded by these, not by what a file claims.
LARGEST_METADATA_BYTES = 2**22  # a few hundred are usual; parsed it takes up to 25 times as much
MOST_CONTAINERS = 2**22  # lists and objects of a JSON file: 64 bytes each, of as little as 3 bytes of text
LARGEST_FILE_COUNT = 2**32  # an ext4 file system has no more; 10^15 tokens in files of the default size
LARGEST_CHUNK_BYTES = 2**31  # what Blosc takes at once
LARGEST_SHARD_CHUNKS = 2**20  # 16 MiB of index; a random row reads 16 bytes of it. 256 are the default


# The object in a metadata file, None if there is no such file.
ReadMetadata = Callable[[Place], dict[str, Any] | None]


SMALLER = "Rewrite the dataset with smaller ones."


class ForeignLayoutError(DatasetError):
    """Valid zarr perhaps, but nothing that this package decodes by itself; the zarr library may."""


class StoredArray(NamedTuple):
    """Where and how the elements of one array lie; small and picklable, so that any process can read zarr
    chunks by it.

    path: the array's folder. chunk_elements: elements a zarr chunk; shard_elements: elements a file, the
    same in format 2. element_count may be 0. sharded: whether a file has a shard index at its end (or
    start). opened: the manifest of the dataset that the array is read as a part of, if it has one."""

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
    opened: OpenedManifest | None = None

    @property
    def file_count(self) -> int:
        """Files that a complete array has."""
        return -(-self.element_count // self.shard_elements)

    def file_path(self, file_index: int) -> Place:
        """The file with the elements [file_index * shard_elements, ...)."""
        return self.path / self.file_key(file_index)

    def file_name(self, file_index: int) -> str:
        """As file_path, for those who only open it: 0.4 us, a Path 4."""
        return f"{self.path}/{self.file_key(file_index)}"

    def file_key(self, file_index: int) -> str:
        """Its name in the array's folder: "c/7" in format 3."""
        return f"{self.key_prefix}{file_index}"

    def opening(self) -> AbstractContextManager[None]:
        """A context in which its files are opened; see OpenedManifest.opening."""
        return opened_manifest.opening(self.opened)

    def reading(self) -> AbstractContextManager[None]:
        """A context in which more is read of them; see OpenedManifest.reading."""
        return opened_manifest.reading(self.opened)

    def check(self) -> None:
        """Raise DatasetError if its dataset was replaced since it was opened."""
        if self.opened is not None:
            self.opened.check()


def read_json(path: Place) -> dict[str, Any]:
    """The object in a JSON file; DatasetError if it is not there or cannot be one."""
    return parse_json(read_whole(path, LARGEST_METADATA_BYTES), path)


def parse_json(data: bytes, path: Place, fix: str = RESTORE) -> dict[str, Any]:
    """The object in the bytes of a JSON file; DatasetError names the file."""
    if data.count(b"[") + data.count(b"{") > MOST_CONTAINERS:
        raise damaged(path, f"must have at most {MOST_CONTAINERS} lists and objects", fix)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"not valid JSON ({cause(error)})", fix) from None
    if not isinstance(value, dict):
        raise damaged(path, f"must be a JSON object (got {type(value).__name__})", fix)
    return value


def read_if_there(path: Place) -> dict[str, Any] | None:
    """As read_json, None if the file is not there."""
    return read_json(path) if is_there(path) else None  # an error's text takes ten times as long


def read_group(path: Place, read: ReadMetadata = read_if_there) -> tuple[int, dict[str, Any]] | None:
    """(zarr format, attributes) of the group at `path`, None if there is no group."""
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
    """How the array at `path` is stored. DatasetError if it is no array of one dimension, or a link leads out of it;
    ForeignLayoutError if zarr may read it but this package does not."""
    refuse_link(path)
    for name, parse in (("zarr.json", _parse_v3), (".zarray", _parse_v2)):
        node = read(path / name)
        if node is not None:
            stored = _guarded(path, path / name, node, parse)
            if stored.key_prefix.endswith("/"):
                refuse_link(path / stored.key_prefix[:-1])
            return stored
    raise damaged(path, "not a zarr array (no .zarray or zarr.json)")


def _guarded(path: Place, file: Place, node: dict[str, Any], parse: Any) -> StoredArray:
    try:
        stored: StoredArray = parse(path, node)
    except UnknownCodecError as error:
        raise ForeignLayoutError(f"{printable(str(file))}: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, DatasetError):
            raise
        raise ForeignLayoutError(f"{printable(str(file))}: unsupported zarr array ({cause(error)})") from None
    check_sizes(stored, file)
    return stored


def check_sizes(stored: StoredArray, file: Place) -> None:
    """Raise DatasetError for an array of more files, or of larger zarr chunks or shards, than readers support.

    file: metadata file of the array."""
    if stored.file_count > LARGEST_FILE_COUNT:
        what = f"an array has at most {LARGEST_FILE_COUNT} files (got {stored.file_count})"
        raise damaged(file, what)
    if stored.chunk_elements * np.dtype(stored.dtype).itemsize > LARGEST_CHUNK_BYTES:
        raise damaged(file, large_chunks(stored.chunk_elements), SMALLER)
    if stored.shard_elements // stored.chunk_elements > LARGEST_SHARD_CHUNKS:
        what = f"a shard has at most {LARGEST_SHARD_CHUNKS} zarr chunks"
        raise damaged(file, what, SMALLER)


def large_chunks(elements: int) -> str:
    """Return what is wrong with zarr chunks of too many elements."""
    return f"zarr chunks have at most 2 GiB (got {elements} elements)"


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
    codecs = CodecChain.from_configs(node.get("filters") or [], compressor)
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
    dtype = _dtype(np.dtype(node["data_type"]).newbyteorder("<").str)
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


def _require_little_endian(codec: dict[str, Any]) -> None:
    if codec["name"] != "bytes" or codec.get("configuration", {}).get("endian") != "little":
        raise ValueError("the first codec must be bytes, little endian")


def _v3_chain(codecs: list[dict[str, Any]], item_bytes: int) -> tuple[CodecChain, str]:
    """The chain of format 3's codecs: little-endian bytes, at most one compressor, at most one crc32c at the
    end."""
    _require_little_endian(codecs[0])
    steps = codecs[1:]
    crc32c = bool(steps) and steps[-1]["name"] == "crc32c"
    steps = steps[: len(steps) - crc32c]
    if len(steps) > 1:
        raise UnknownCodecError(f"an array has at most one compressor (got {len(steps)})")
    if not steps:
        return CodecChain.from_configs([], None, crc32c), "crc32c" if crc32c else "none"
    name, options = steps[0]["name"], dict(steps[0].get("configuration", {}))
    if name == "blosc":
        shuffle = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}[options["shuffle"]]
        config = {"id": "blosc", "cname": options["cname"], "clevel": options["clevel"], "shuffle": shuffle}
    elif name in ("zstd", "gzip"):
        config = {"id": name, "level": options["level"]}
    else:
        raise UnknownCodecError(f"codec must be one of blosc, gzip, zstd (got {printable(repr(name), 60)})")
    return CodecChain.from_configs([], config, crc32c), _v2_name(config) + (" crc32c" if crc32c else "")
