"""The codecs of a Zarr chunk: from an array to the bytes of its file and back.

A chain is an optional delta filter, an optional compressor and an optional crc32c. Other codecs are rejected: numcodecs
has some that run code of a dataset. Invariant: decode(encode(x)) == x, and the bytes depend only on x and the chain.
Blosc runs without its threads, which store blocks in the order they finish and do not survive a fork.

Decoding stops at the size of the chunk, however much a payload would decode to. zarr is not imported, because every
worker process would spend 0.2 s on it.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import cause, printable
from flat_tokens.storage import token_matches, zstd_frames
from flat_tokens.storage.zstd_frames import Bytes, Payload

COMPRESSORS = ("blosc", "gzip", "lz4", "zstd")
FILTERS = ("delta",)
_BLOSC_HEADER_BYTES = 16


class UnknownCodecError(ValueError):
    """A codec that is not supported, or an invalid configuration of one."""


class CodecChain(NamedTuple):
    """How a Zarr chunk is stored. Hashable and picklable.

    filters: configurations of numcodecs filters, as JSON.
    compressor: the ID of a numcodecs compressor, "" for none.
    config: its configuration, as JSON.
    crc32c: whether a crc32c follows.
    """

    filters: tuple[str, ...] = ()
    compressor: str = ""
    config: str = "null"
    crc32c: bool = False

    @classmethod
    def of(cls, filters: list[Any], compressor: Any, crc32c: bool = False) -> CodecChain:
        """The chain of some numcodecs configurations. Raise UnknownCodecError for one that is not supported."""
        texts = tuple(_checked(config, FILTERS) for config in filters)
        if compressor is None:
            return cls(texts, crc32c=crc32c)
        return cls(texts, compressor["id"], _checked(compressor, COMPRESSORS), crc32c)

    @property
    def name(self) -> str:
        """Its text for people: "zstd 1 crc32c", "none"."""
        config = json.loads(self.config)
        names = [json.loads(text)["id"] for text in self.filters] + [self.compressor] * bool(self.compressor)
        if self.compressor == "blosc":
            shuffle = {1: "shuffle", 2: "bitshuffle"}.get(config.get("shuffle", 0))
            names += [str(config.get("cname")), str(config.get("clevel"))] + [shuffle] * bool(shuffle)
        elif self.compressor and "level" in config:
            names.append(str(config["level"]))
        return printable(" ".join(names + ["crc32c"] * self.crc32c) or "none", 60)

    @property
    def is_uncompressed(self) -> bool:
        """Whether the bytes are the array itself, perhaps with a crc32c."""
        return not (self.filters or self.compressor)

    def encode(self, values: npt.NDArray[Any]) -> bytes:
        """Encode a whole Zarr chunk, padded, contiguous and little-endian. zstd frames have a checksum."""
        data: Any = values
        for config in self.filters:
            data = _codec(config).encode(data)
        if self.compressor:
            data = np.ascontiguousarray(data).reshape(-1)
            is_tokens = not self.filters and values.dtype == np.uint32
            is_zstd = self.compressor == "zstd"
            data = _zstd(self.config, data, is_tokens) if is_zstd else _codec(self.config).encode(data)
        payload = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        return payload + crc32c_bytes(payload) if self.crc32c else payload

    def decode(
        self, payload: Payload, values: npt.NDArray[Any], count: int | None = None, compare: bool = True
    ) -> int:
        """Decode a whole Zarr chunk into `values`, or at least its first `count` elements. Return their number.

        compare: whether crc32c and the checksums of zstd frames are compared.

        Raise ValueError for a damaged payload or one of another length; `values` are undefined then."""
        if self.is_uncompressed:
            values[:] = self.view(payload, values.dtype, len(values), compare)
            return len(values)
        body, out = self.body(payload, compare), values.view(np.uint8)
        got = len(out)
        try:
            if self.compressor == "zstd" and not self.filters and count is not None:
                filled = zstd_frames.decompress_front(body, out, count * values.itemsize)
                if filled:
                    return filled // values.itemsize
            if self.compressor:
                decoded = np.empty_like(out) if self.filters else out
                got, body = decode_into(self.compressor, body, decoded, compare), decoded.data
            if self.filters and got == len(out):
                for config in reversed(self.filters):
                    body = _codec(config).decode(body)
                filtered = np.frombuffer(body, dtype=np.uint8)
                got = len(filtered)
                out[:] = filtered if got == len(out) else 0
        except MemoryError:
            raise
        except Exception as error:  # each codec has its own exceptions
            raise ValueError(f"cannot be decoded ({cause(error, 100)})") from error
        _require_length(len(out), got)
        return len(values)

    def view(
        self, payload: Payload, dtype: npt.DTypeLike, count: int, compare: bool = True
    ) -> npt.NDArray[Any]:
        """The `count` elements of a Zarr chunk that is not compressed, without a copy. See decode."""
        body = self.body(payload, compare)
        _require_length(count * np.dtype(dtype).itemsize, len(body))
        return np.frombuffer(body, dtype=dtype)

    def body(self, payload: Payload, compare: bool) -> Payload:
        """A payload without its crc32c."""
        if not self.crc32c:
            return payload
        if len(payload) < 4:
            raise ValueError(f"must have at least the 4 bytes of its crc32c (got {len(payload)})")
        body = payload[:-4]
        if compare and crc32c_bytes(body) != bytes(payload[-4:]):
            raise ValueError("crc32c mismatch: changed after it was written")
        return body


def decode_into(compressor: str, payload: Payload, out: Bytes, compare: bool = True) -> int:
    """Decode a payload into the front of `out`. Return the number of bytes, or len(out) + 1 if they do not fit.

    compressor: one of COMPRESSORS. Raise ValueError, or an exception of the codec, for a damaged payload."""
    if compressor == "gzip":
        stream = gzip.GzipFile(fileobj=io.BytesIO(payload))
        done = 0
        while count := stream.readinto(out[done:].data):
            done += count
        return done + len(stream.read(1))
    if compressor == "zstd":
        decoded = zstd_frames.decompress(payload, out, compare)
        if decoded is not None:
            return decoded
    stated = _stated_bytes(compressor, payload)
    if stated > len(out):
        return len(out) + 1
    _codec(json.dumps({"id": compressor})).decode(payload, out[:stated])
    return stated


def _stated_bytes(compressor: str, payload: Payload) -> int:
    """The decoded length in the header of a payload. numcodecs trusts it, even past the end of the payload."""
    if compressor == "zstd":
        size, _ = zstd_frames.frame_header(payload)
        if size is None:
            raise ValueError("without libzstd, a zstd frame must have its size in the header")
        return size
    if compressor == "lz4":
        if len(payload) < 4:
            raise ValueError(f"an lz4 payload has at least 4 bytes (got {len(payload)})")
        return int.from_bytes(payload[:4], "little")
    if len(payload) < _BLOSC_HEADER_BYTES:
        raise ValueError(f"a Blosc header has {_BLOSC_HEADER_BYTES} bytes (got {len(payload)})")
    stated = int.from_bytes(payload[12:16], "little")
    if stated != len(payload):
        raise ValueError(f"must have {stated} bytes by its Blosc header (got {len(payload)})")
    return int.from_bytes(payload[4:8], "little")


def _require_length(expected: int, got: int) -> None:
    if got != expected:
        shown = "more" if got == expected + 1 else got
        raise ValueError(f"must decode to {expected} bytes (got {shown})")


def _checked(config: Any, allowed: tuple[str, ...]) -> str:
    """Return a configuration as JSON text. Raise UnknownCodecError unless its codec is allowed and accepts it."""
    name = config.get("id") if isinstance(config, Mapping) else None
    if name not in allowed:
        raise UnknownCodecError(
            f"codec must be one of {', '.join(allowed)} (got {printable(repr(name), 60)})"
        )
    if config.get("astype") not in (None, config.get("dtype")):
        raise UnknownCodecError(f"codec {name} must keep the data type")
    text = json.dumps(config)
    is_plain = name == "zstd" and config.keys() == {"id", "level"} and type(config["level"]) is int
    if not is_plain:  # otherwise numcodecs need not be imported, which takes 50 ms
        _codec(text)
    return text


def _zstd(config: str, data: npt.NDArray[Any], is_tokens: bool) -> bytes:
    level = json.loads(config).get("level", 1)
    frame = token_matches.compress(data) if is_tokens and level == token_matches.LEVEL else None
    frame = zstd_frames.compress(data.view(np.uint8), level) if frame is None else frame
    if frame is None:
        frame = bytes(_codec(json.dumps({"id": "zstd", "level": level, "checksum": True})).encode(data))
    return frame


@lru_cache(maxsize=64)
def _codec(config_text: str) -> Any:
    import numcodecs
    import numcodecs.blosc

    numcodecs.blosc.use_threads = False
    try:
        return numcodecs.get_codec(json.loads(config_text))
    except (TypeError, ValueError, KeyError) as error:
        raise UnknownCodecError(f"invalid codec {printable(config_text)} ({cause(error)})") from error


def crc32c_bytes(payload: Payload) -> bytes:
    """The crc32c of some bytes as Zarr appends it: four bytes, little-endian."""
    import google_crc32c

    return int(google_crc32c.value(bytes(payload))).to_bytes(4, "little")
