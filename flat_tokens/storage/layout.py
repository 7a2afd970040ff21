"""The layout of the arrays in files: Zarr format, Zarr chunks, shards, compression.

The layout changes the speed and size of a dataset, never its content. Many processes can write ranges that are aligned
to the write units at once, because no file contains parts of two of them.

The defaults were measured (docs/development/log.md): zstd level 1 takes half the space of Blosc lz4 with bitshuffle.
Larger Zarr chunks compress slightly better, but random rows decode more than they need.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from flat_tokens.arguments import choice, integer, invalid
from flat_tokens.format import DTYPES, MASK_BITS, MASK_NAME, STARTS_NAME, TOKENS_NAME
from flat_tokens.storage.codecs import CodecChain
from flat_tokens.storage.places import Place
from flat_tokens.storage.zarr_metadata import ArrayMetadata

DEFAULT_LEVELS = {"zstd": 1, "lz4": 1, "lz4-bitshuffle": 1, "none": 0}
LEVEL_RANGES = {"zstd": (-7, 22), "lz4": (1, 9), "lz4-bitshuffle": (1, 9), "none": (0, 0)}
COMPRESSIONS = tuple(DEFAULT_LEVELS)

LARGEST_CHUNK_TOKENS = 2**27  # 512 MiB; Blosc takes at most 2 GiB at once


@dataclass(frozen=True)
class ArrayLayout:
    """The layout of the arrays of both splits. `ArrayLayout.create` has defaults that depend on the format.

    zarr_format: 2 (one file per Zarr chunk, supported everywhere) or 3 (sharded, with crc32c).
    chunk_tokens: tokens per Zarr chunk, in [1, 2^27].
    shard_tokens: tokens per shard in format 3, a multiple of chunk_tokens; equal to chunk_tokens in format 2.
    compression: "zstd", "lz4", "lz4-bitshuffle" or "none".
    level: level of the compression.

    Raise ArgumentError for invalid values."""

    zarr_format: int = 2
    chunk_tokens: int = 2**16
    shard_tokens: int = 2**16
    compression: str = "zstd"
    level: int = 1

    def __post_init__(self) -> None:
        if type(self.zarr_format) is not int or self.zarr_format not in (2, 3):
            raise invalid("zarr_format", "must be 2 or 3", self.zarr_format)
        integer("chunk_tokens", self.chunk_tokens, 1, LARGEST_CHUNK_TOKENS)
        integer("shard_tokens", self.shard_tokens)
        if self.shard_tokens < 1 or self.shard_tokens % self.chunk_tokens:
            rule = f"must be a multiple of chunk_tokens = {self.chunk_tokens}"
            raise invalid("shard_tokens", rule, self.shard_tokens)
        if self.zarr_format == 2 and self.shard_tokens != self.chunk_tokens:
            rule = f"must equal chunk_tokens = {self.chunk_tokens} in zarr format 2"
            raise invalid("shard_tokens", rule, self.shard_tokens, "Omit it, or use zarr_format 3.")
        choice("compression", self.compression, COMPRESSIONS)
        low, high = LEVEL_RANGES[self.compression]
        if not low <= integer("level", self.level) <= high:
            raise invalid("level", f"must be in [{low}, {high}] for {self.compression}", self.level)

    @classmethod
    def create(
        cls,
        zarr_format: int = 2,
        chunk_tokens: int | None = None,
        shard_tokens: int | None = None,
        compression: str = "zstd",
        level: int | None = None,
    ) -> ArrayLayout:
        """A layout with the defaults of its format and compression: 64 Ki tokens per zarr chunk (256 Ki for raw tokens
        in format 2), and in format 3 16 Mi tokens per shard."""
        zarr_format = integer("zarr_format", zarr_format)
        choice("compression", compression, COMPRESSIONS)
        if chunk_tokens is None:
            chunk_tokens = 2**18 if (zarr_format, compression) == (2, "none") else 2**16
        integer("chunk_tokens", chunk_tokens)
        if shard_tokens is None:
            shard_tokens = chunk_tokens * 256 if zarr_format == 3 else chunk_tokens
        if level is None:
            level = DEFAULT_LEVELS[compression]
        return cls(zarr_format, chunk_tokens, shard_tokens, compression, level)

    def cuts(self, array: str) -> tuple[int, int]:
        """The elements of an array per Zarr chunk and per file. A loss mask is cut at the same tokens as the tokens.
        seq_starts has a quarter of the elements, because there are few starts. Raise ArgumentError for a loss mask if
        chunk_tokens is no multiple of 8."""
        if array == MASK_NAME and self.chunk_tokens % MASK_BITS:
            rule = f"must be a multiple of {MASK_BITS} for a dataset with a loss mask"
            raise invalid("chunk_tokens", rule, self.chunk_tokens)
        chunk = max(1, self.chunk_tokens // {TOKENS_NAME: 1, STARTS_NAME: 4, MASK_NAME: MASK_BITS}[array])
        return chunk, chunk * (self.shard_tokens // self.chunk_tokens)

    @property
    def codecs(self) -> CodecChain:
        """The codecs of every array. In format 3 a crc32c follows."""
        config: dict[str, Any] | None = None
        if self.compression == "zstd":
            config = {"id": "zstd", "level": self.level}
        elif self.compression != "none":
            shuffle = 2 if self.compression == "lz4-bitshuffle" else 0
            config = {"id": "blosc", "cname": "lz4", "clevel": self.level, "shuffle": shuffle}
            config |= {"blocksize": 0} if self.zarr_format == 2 else {}
        return CodecChain.of([], config, crc32c=self.zarr_format == 3)

    def array(self, name: str, path: Place, element_count: int) -> ArrayMetadata:
        """How an array of the format is stored. name: as for `cuts`."""
        is_3, dtype = self.zarr_format == 3, DTYPES[name].str
        codecs, prefix = self.codecs, "c/" if is_3 else ""
        return ArrayMetadata(
            path, self.zarr_format, dtype, element_count, *self.cuts(name), codecs, is_3, key_prefix=prefix
        )

    def to_json(self) -> dict[str, int | str]:
        """The layout as a dict for the manifest."""
        return asdict(self)
