"""Compressed bytes decoded up to a bound: what a stream holds beyond it is never made.

numcodecs decodes a stream to its end, and a stream of some kilobytes may hold gigabytes. Here each decoder stops at the
bound. What a header states (Blosc, lz4, a zstd frame with its size) is compared with the bound before anything is
decoded; bz2, gzip, lzma and zlib are decoded as streams that stop, zstd into a buffer of the bound. Invariant: a
payload that decodes to no more than the bound gives the bytes that numcodecs gives (tests/flat_tokens/test_bounded.py).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from flat_tokens.storage import zstd_frames

Payload = bytes | memoryview
Json = Mapping[str, Any]

BLOSC_HEADER_BYTES = 16
PIECE_BYTES = 2**13  # of a stream's input: what follows one stream is copied to the next
# Of lzma, beside the bound: the largest preset has 64 MiB. An xz header may claim 4 GiB.
LZMA_DICTIONARY_BYTES = 2**27


class TooLongError(ValueError):
    """More than the bound."""

    def __init__(self, most_bytes: int, stated: int | None = None) -> None:
        super().__init__(zstd_frames.wrong_length(most_bytes, stated))


def stated_bytes(codec_id: str, payload: Payload) -> int | None:
    """The decoded length that the header of a compressed buffer states, None if it states none. ValueError for a
    header of Blosc that does not fit."""
    if codec_id == "blosc":
        _check_blosc_length(payload)
        return int.from_bytes(payload[4:8], "little")
    if codec_id == "lz4" and len(payload) >= 4:
        return int.from_bytes(payload[:4], "little")
    return zstd_frames.stated_bytes(payload) if codec_id == "zstd" else None


def decode(codec: Any, config: Json, payload: Payload, most_bytes: int) -> Any:
    """The decoded bytes, at most most_bytes. codec: numcodecs' for this configuration, whose id is one of a compressor.
    TooLongError, or whatever the codec raises for damage."""
    codec_id = config["id"]
    stated = stated_bytes(codec_id, payload)
    if stated is not None and stated > most_bytes:
        raise TooLongError(most_bytes, stated)
    if codec_id == "zstd":
        return _zstd(codec, payload, most_bytes, stated)
    streamed = _STREAMED.get(codec_id)
    if streamed is None:
        return codec.decode(payload)  # which makes no more than its header states
    found = streamed(config, payload, most_bytes + 1)
    if len(found) > most_bytes:
        raise TooLongError(most_bytes)
    return found


def _check_blosc_length(payload: Payload) -> None:
    """Raise ValueError unless there are as many bytes as the header states.

    numcodecs trusts the header: it would read past the end of a truncated or empty payload."""
    if len(payload) < BLOSC_HEADER_BYTES:
        raise ValueError(
            f"cannot be decoded: a Blosc header has {BLOSC_HEADER_BYTES} bytes (got {len(payload)})"
        )
    stated = int.from_bytes(payload[12:16], "little")
    if stated != len(payload):
        raise ValueError(
            f"cannot be decoded: must have {stated} bytes by its Blosc header (got {len(payload)})"
        )


def _zstd(codec: Any, payload: Payload, most_bytes: int, stated: int | None) -> Any:
    room = np.empty(most_bytes, np.uint8)
    done = zstd_frames.decode_up_to(payload, room)
    if done is None:  # numcodecs decodes one frame into as much as it states, and others without a bound
        if stated is None or not zstd_frames.is_one_frame(payload):
            raise ValueError("without libzstd, zstd data must be one frame with its size in the header")
        return codec.decode(payload)
    if done > most_bytes:
        raise TooLongError(most_bytes)
    return room[:done]


def _zlib(_: Json, payload: Payload, most_bytes: int) -> bytes:
    import zlib

    stream = zlib.decompressobj()
    found = stream.decompress(payload, most_bytes)
    if len(found) < most_bytes and not stream.eof:
        raise EOFError("truncated stream")
    return found


def _gzip(_: Json, payload: Payload, most_bytes: int) -> bytes:
    import gzip

    with gzip.GzipFile(fileobj=io.BytesIO(payload)) as stream:
        return stream.read(most_bytes)


def _bz2(_: Json, payload: Payload, most_bytes: int) -> bytes:
    import bz2

    return _streams(bz2.BZ2Decompressor, OSError, payload, most_bytes)


def _lzma(config: Json, payload: Payload, most_bytes: int) -> bytes:
    import lzma

    limit = most_bytes + LZMA_DICTIONARY_BYTES
    kind, filters = config.get("format", lzma.FORMAT_XZ), config.get("filters")
    if any(step.get("dict_size", 0) > limit for step in filters or []):
        raise ValueError(f"an lzma dictionary must have at most {limit} bytes")
    most_memory = (
        None if kind == lzma.FORMAT_RAW else limit
    )  # raw: what the filters say, liblzma takes no limit
    return _streams(
        lambda: lzma.LZMADecompressor(kind, most_memory, filters), lzma.LZMAError, payload, most_bytes
    )


def _streams(make: Callable[[], Any], no_stream: type[Exception], payload: Payload, most_bytes: int) -> bytes:
    """What the streams of a payload hold, one behind the other; what follows them and is none is passed over, as by
    bz2.decompress and lzma.decompress."""
    view, at = memoryview(payload), 0
    found = bytearray()
    while len(found) < most_bytes:
        stream, first, before = make(), at, len(found)
        try:
            while not stream.eof and len(found) < most_bytes:
                piece = view[at : at + PIECE_BYTES] if stream.needs_input else b""
                if stream.needs_input and not piece:
                    raise EOFError("truncated stream")
                at += len(piece)
                found += stream.decompress(piece, most_bytes - len(found))
        except no_stream:
            if not first:
                raise
            del found[before:]
            break
        at -= len(stream.unused_data)
        if at == len(view):
            break
    return bytes(found)


_STREAMED: dict[str, Callable[[Json, Payload, int], bytes]] = {
    "bz2": _bz2,
    "gzip": _gzip,
    "lzma": _lzma,
    "zlib": _zlib,
}
