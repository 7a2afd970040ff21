"""How an array is stored, and the JSON files that say it. `zarr_v2` and `zarr_v3` read and write the two formats.

zarr is not imported: 0.2 s for a few lines of JSON.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from flat_tokens.errors import RESTORE, cause, damaged, printable
from flat_tokens.storage.codecs import CodecChain
from flat_tokens.storage.places import Place, is_there, read_whole

# Limits of a dataset, so that memory does not depend on the claims of a file.
MAX_METADATA_BYTES = 2**22  # a few hundred are usual; parsed, they take up to 25 times as much
MAX_CONTAINERS = 2**22  # lists and objects of a JSON file: 64 bytes each, of as little as 3 bytes of text
MAX_FILES = 2**32  # per array, as in an ext4 file system: 10^15 tokens in files of the default size
MAX_CHUNK_BYTES = 2**31  # the most that Blosc compresses
MAX_SHARD_CHUNKS = 2**20  # 16 MiB of index; a random row reads 16 bytes of it. 256 are the default

SMALLER = "Rewrite the dataset with smaller ones."
DTYPES = ("<u4", "<u8", "<i4", "<i8", "<u2", "|u1")


class ArrayMetadata(NamedTuple):
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

    @property
    def file_count(self) -> int:
        """Files of a complete array."""
        return -(-self.element_count // self.shard_elements)

    @property
    def chunk_count(self) -> int:
        """Zarr chunks of a complete array."""
        return -(-self.element_count // self.chunk_elements)

    @property
    def chunks_per_file(self) -> int:
        """Zarr chunks per file, except for the last one."""
        return self.shard_elements // self.chunk_elements

    @property
    def chunk_bytes(self) -> int:
        """Decoded bytes of a Zarr chunk."""
        return self.chunk_elements * np.dtype(self.dtype).itemsize

    @property
    def index_bytes(self) -> int:
        """Bytes of the index of a shard."""
        return 16 * self.chunks_per_file + 4 * self.index_crc32c

    @property
    def max_file_bytes(self) -> int:
        """An upper limit on the length of a file."""
        return (2 * self.chunk_bytes + 64) * self.chunks_per_file + 2**16

    def file_path(self, file_index: int) -> Place:
        """The file with the elements [file_index * shard_elements, ...)."""
        return self.path / self.file_key(file_index)

    def file_name(self, file_index: int) -> str:
        """The path of that file as text, which takes a tenth of the time."""
        return f"{self.path}/{self.file_key(file_index)}"

    def file_key(self, file_index: int) -> str:
        """Its name in the folder of the array: "c/7" in format 3."""
        return f"{self.key_prefix}{file_index}"

    def check_sizes(self, file: Place) -> None:
        """Raise DatasetError for more files, or larger Zarr chunks or shards, than readers support."""
        if self.file_count > MAX_FILES:
            raise damaged(file, f"an array has at most {MAX_FILES} files (got {self.file_count})")
        if self.chunk_bytes > MAX_CHUNK_BYTES:
            what = f"zarr chunks have at most 2 GiB (got {self.chunk_elements} elements)"
            raise damaged(file, what, SMALLER)
        if self.chunks_per_file > MAX_SHARD_CHUNKS:
            raise damaged(file, f"a shard has at most {MAX_SHARD_CHUNKS} zarr chunks", SMALLER)


def read_json(path: Place) -> dict[str, Any] | None:
    """The object in a JSON file, None if it is missing. Raise DatasetError for another content."""
    # The text of an error takes ten times as long as asking first.
    return parse_json(read_whole(path, MAX_METADATA_BYTES), path) if is_there(path) else None


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


def json_file(value: Any) -> bytes:
    """The bytes of a metadata file."""
    return (json.dumps(value, indent=2) + "\n").encode("ascii")


def length_of(value: Any, least: int, what: str) -> int:
    """The only element of a list of dimensions. Raise ValueError."""
    if not isinstance(value, list) or len(value) != 1:
        raise ValueError(f"{what} must have one dimension (got {printable(repr(value), 60)})")
    if type(value[0]) is not int or not least <= value[0] < 2**63:
        raise ValueError(f"{what} must be in [{least}, 2^63) (got {printable(repr(value[0]), 60)})")
    return value[0]
