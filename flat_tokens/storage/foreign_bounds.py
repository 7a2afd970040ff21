"""What the zarr library is about to decode, decoded first as far as it can grow without a bound.

zarr decodes a file to its end, whatever its array states. So the steps that undo a compressor are done here before,
each up to the bytes that a zarr chunk can have there; zarr then does them again, and the filters behind them, whose
results follow from the data types alone. Chains for which this cannot be said are refused when the array is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from flat_tokens.errors import cause, damaged, printable
from flat_tokens.storage import bounded
from flat_tokens.storage.codecs import COMPRESSORS

Json = Mapping[str, Any]

CHECKSUMS = frozenset({"adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3"})
# What may follow the compressors when a zarr chunk is decoded: the length of the result is known from data types.
ARRAY_FILTERS = frozenset(
    {
        "astype",
        "bitround",
        "bytes",
        "delta",
        "fixedscaleoffset",
        "packbits",
        "quantize",
        "shuffle",
        "transpose",
    }
)
HARMLESS_CODECS = COMPRESSORS | CHECKSUMS | ARRAY_FILTERS
MOST_CODECS = 16
CHECKSUM_BYTES = 4  # of each


class ShardShape(NamedTuple):
    """How a shard is made of zarr chunks; see StoredArray for the names."""

    chunk_elements: int
    index_at_end: bool
    index_crc32c: bool


class ForeignBounds(NamedTuple):
    """What bounds the decoding of an array's zarr chunks.

    steps: the configurations of the codecs of bytes, in the order of decoding. most_bytes: what they may come to.
    is_v3: whose crc32c stands at the end. shard: None where a file is a zarr chunk."""

    steps: tuple[Json, ...]
    most_bytes: int
    is_v3: bool
    shard: ShardShape | None

    @classmethod
    def of(cls, node: Json, is_v3: bool, chunk_elements: int, itemsize: int) -> ForeignBounds:
        """From an array's metadata, which zarr has accepted. ValueError says which rule they break."""
        shard = None
        if is_v3:
            codecs = node["codecs"]
            if any(_name(codec, True) == "sharding_indexed" for codec in codecs):
                shard, codecs = _sharded(codecs)
            chain = [_config(codec) for codec in codecs]
        else:
            compressor = node.get("compressor")
            chain = [*(node.get("filters") or []), *([compressor] if compressor else [])]
        _check_names([_name(config, False) for config in chain])
        decoding = chain[::-1]
        arrays = next((i for i, config in enumerate(decoding) if _is_of_arrays(config)), len(chain))
        steps, filters = decoding[:arrays], decoding[arrays:][::-1]
        late = next((config["id"] for config in filters if config["id"] in COMPRESSORS), None)
        if late is not None:
            raise ValueError(f"codec {late} must follow all filters")
        sums = sum(config["id"] in CHECKSUMS for config in chain)
        most = _filtered_bytes(filters, chunk_elements, itemsize) + CHECKSUM_BYTES * sums
        return cls(tuple(steps), most, is_v3, shard)

    def check(self, payload: bytes | memoryview, path: Path) -> None:
        """Raise DatasetError if the encoded bytes of a zarr chunk come to more than they may, or do not decode."""
        import numcodecs

        data: Any = payload
        try:
            for config in self.steps:
                if config["id"] == "crc32c" and self.is_v3:
                    data = data[:-4]  # zarr compares it
                    continue
                codec = numcodecs.get_codec(dict(config))
                if config["id"] in COMPRESSORS:
                    data = bounded.decode(codec, config, memoryview(data).cast("B"), self.most_bytes)
                else:
                    data = np.frombuffer(codec.decode(data), np.uint8)
        except MemoryError:
            raise
        except Exception as error:  # each codec has its own
            raise damaged(path, f"zarr cannot read it ({cause(error, 200)})") from error


def _name(config: Any, is_v3: bool) -> str:
    return str(config.get("name" if is_v3 else "id")).removeprefix("numcodecs.")


def _config(codec: Json) -> dict[str, Any]:
    """A codec of format 3 as numcodecs has it."""
    return {**codec.get("configuration", {}), "id": _name(codec, True)}


def _is_of_arrays(config: Json) -> bool:
    return config["id"] in ARRAY_FILTERS - {"shuffle"}


def not_allowed(names: Sequence[str]) -> str:
    """Return what is wrong with codecs outside the allow-list."""
    return f"codec {printable(', '.join(names), 80)} is not allowed"


def _check_names(names: list[str]) -> None:
    if len(names) > MOST_CODECS:
        raise ValueError(f"an array has at most {MOST_CODECS} codecs (got {len(names)})")
    strange = sorted(set(names) - HARMLESS_CODECS)
    if strange:
        raise ValueError(not_allowed(strange))


def _sharded(codecs: list[Json]) -> tuple[ShardShape, list[Json]]:
    """The shape of a shard, and the codecs of the zarr chunks in it."""
    options = codecs[0].get("configuration", {})
    index = options["index_codecs"]
    little = index[0].get("configuration", {}).get("endian") == "little"
    if (
        len(codecs) > 1
        or not little
        or [codec["name"] for codec in index] not in (["bytes"], ["bytes", "crc32c"])
    ):
        raise ValueError("sharding must be the only codec, with an index of little-endian bytes")
    (chunk,) = options["chunk_shape"]
    at_end = options.get("index_location", "end") == "end"
    return ShardShape(int(chunk), at_end, len(index) == 2), options["codecs"]


def _filtered_bytes(filters: Sequence[Json], elements: int, itemsize: int) -> int:
    """The bytes of a zarr chunk behind its filters, in the order of encoding."""
    for config in filters:
        if config["id"] == "packbits":
            if itemsize != 1:
                raise ValueError("codec packbits does not support this data type")
            elements = elements // 8 + 2
            continue
        given, made = ("decode_dtype", "encode_dtype") if config["id"] == "astype" else ("dtype", "astype")
        if config.get(given) is not None and _itemsize(config[given]) != itemsize:
            raise ValueError(f"codec {config['id']} does not support this data type")
        if config.get(made) is not None:
            itemsize = _itemsize(config[made])
    return elements * itemsize


def _itemsize(text: Any) -> int:
    dtype = np.dtype(text)
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise ValueError(f"data type of a codec must be a number (got {printable(str(dtype), 60)})")
    return int(dtype.itemsize)
