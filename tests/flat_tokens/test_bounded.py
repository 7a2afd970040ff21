"""Decoders stop at their bound, whatever a stream holds or claims; below it they give what numcodecs gives."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import tracemalloc
import zlib
from functools import cache
from typing import Any

import numcodecs
import numpy as np
import pytest
import zstandard

from flat_tokens.storage import bounded, zstd_frames
from flat_tokens.storage.bounded import TooLongError
from flat_tokens.storage.codecs import CodecChain

BOMB_BYTES = 2**26


def stream_of_zeros(compressor: Any, size: int = BOMB_BYTES) -> bytes:
    blocks = (bytes(2**20) for _ in range(size >> 20))
    return b"".join(map(compressor.compress, blocks)) + compressor.flush()


def unsized() -> Any:
    return zstandard.ZstdCompressor(write_content_size=False).compressobj()


RAW_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6}]
BOMBS: dict[str, tuple[dict[str, Any], Any]] = {
    "bz2": ({"id": "bz2", "level": 1}, bz2.BZ2Compressor),
    "gzip": ({"id": "gzip", "level": 1}, lambda: zlib.compressobj(9, zlib.DEFLATED, 31)),
    "lzma": ({"id": "lzma"}, lzma.LZMACompressor),
    "lzma alone": (
        {"id": "lzma", "format": lzma.FORMAT_ALONE},
        lambda: lzma.LZMACompressor(lzma.FORMAT_ALONE),
    ),
    "lzma raw": (
        {"id": "lzma", "format": lzma.FORMAT_RAW, "filters": RAW_FILTERS},
        lambda: lzma.LZMACompressor(lzma.FORMAT_RAW, filters=RAW_FILTERS),
    ),
    "zlib": ({"id": "zlib", "level": 1}, lambda: zlib.compressobj(9)),
    "zstd": ({"id": "zstd", "level": 1}, unsized),
}
SHUFFLE = {"id": "shuffle", "elementsize": 4}
DELTA = {"id": "delta", "dtype": "<u4"}


@cache
def bomb(kind: str) -> bytes:
    return stream_of_zeros(BOMBS[kind][1]())


@pytest.mark.parametrize("filters", [[], [DELTA], [SHUFFLE, DELTA]], ids=["", "delta", "shuffle and delta"])
@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_decoded_no_further_than_the_zarr_chunk(kind: str, filters: list[Any]) -> None:
    config, _ = BOMBS[kind]
    payload = bomb(kind)
    chain = CodecChain.from_configs(filters, config)
    values = np.empty(1000, dtype="<u4")
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="4000"):
            chain.decode(payload, values)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < BOMB_BYTES // 4  # lzma takes 8 MiB for its dictionary


@pytest.mark.parametrize("more", [0, 1, 2])
@pytest.mark.parametrize("kind", BOMBS)
def test_the_bound_is_exact(kind: str, more: int) -> None:
    config, make = BOMBS[kind]
    compressor = make()
    data = bytes(range(256)) * 16 + b"x" * more
    payload = compressor.compress(data) + compressor.flush()
    codec = numcodecs.get_codec(dict(config))
    if more:
        with pytest.raises(TooLongError):
            bounded.decode(codec, config, payload, 4096)
    assert bytes(bounded.decode(codec, config, payload, 4096 + more)) == data


def zstd(data: bytes) -> bytes:
    compressor = unsized()
    return bytes(compressor.compress(data) + compressor.flush())


def forms(first: bytes, second: bytes, skipped: bytes = b"") -> dict[str, bytes]:
    return {
        "one": first,
        "two": first + second,
        "three": first + second + first,
        "cut": first[:-5],
        "second cut": first + second[:-5],
        "garbage": first + b"garbage",
        "second damaged": first + second[: len(second) // 2] + b"\xff" * 9 + second[len(second) // 2 :],
        "skipped": skipped + first + skipped,
    }


SOME, MORE = bytes(range(200)) * 300, b"token" * 9000
FORMS = [
    pytest.param(config, payload, id=f"{name}, {form}")
    for name, config, made in (
        ("bz2", {"id": "bz2"}, forms(bz2.compress(SOME), bz2.compress(MORE))),
        ("gzip", {"id": "gzip"}, forms(gzip.compress(SOME), gzip.compress(MORE), bytes(9))),
        ("lzma", {"id": "lzma"}, forms(lzma.compress(SOME), lzma.compress(MORE), bytes(8))),
        ("zlib", {"id": "zlib"}, forms(zlib.compress(SOME), zlib.compress(MORE))),
        (
            "zstd",
            {"id": "zstd"},
            forms(
                zstandard.compress(SOME), zstd(MORE), b"\x50\x2a\x4d\x18" + struct.pack("<I", 5) + b"hello"
            ),
        ),
        ("zstd unsized first", {"id": "zstd"}, forms(zstd(MORE), zstandard.compress(SOME))),
    )
    for form, payload in made.items()
]


@pytest.mark.parametrize(("config", "payload"), FORMS)
def test_it_is_what_numcodecs_gives(config: dict[str, Any], payload: bytes) -> None:
    codec = numcodecs.get_codec(dict(config))
    try:
        expected = bytes(codec.decode(payload))
    except Exception:
        with pytest.raises(Exception, match="."):
            bounded.decode(codec, config, payload, 10**6)
        return
    assert bytes(bounded.decode(codec, config, memoryview(payload), 10**6)) == expected


def test_many_empty_streams_cost_what_they_are_long() -> None:
    """Each would copy all that follows it."""
    payload = bz2.compress(b"") * 20_000
    codec = numcodecs.get_codec({"id": "bz2"})
    assert bounded.decode(codec, {"id": "bz2"}, payload, 100) == b""


def xz_of_a_huge_dictionary() -> bytes:
    """Its block says that 4 GiB - 1 is what the dictionary takes."""
    payload = bytearray(lzma.compress(SOME))
    header = 12  # behind that of the stream: size, flags, filter 0x21, one byte of properties, then that
    size = (payload[header] + 1) * 4
    assert payload[header + 2 : header + 4] == b"\x21\x01"
    payload[header + 4] = 40
    crc = zlib.crc32(payload[header : header + size - 4])
    payload[header + size - 4 : header + size] = struct.pack("<I", crc)
    return bytes(payload)


def alone_of_a_huge_dictionary() -> bytes:
    payload = lzma.compress(SOME, format=lzma.FORMAT_ALONE)
    return payload[:1] + struct.pack("<I", 2**32 - 1) + payload[5:]


@pytest.mark.parametrize(
    ("config", "payload", "message"),
    [
        pytest.param({"id": "lzma"}, xz_of_a_huge_dictionary(), "Memory usage limit", id="xz"),
        pytest.param(
            {"id": "lzma", "format": lzma.FORMAT_ALONE},
            alone_of_a_huge_dictionary(),
            "Memory usage limit",
            id="alone",
        ),
        pytest.param(
            {
                "id": "lzma",
                "format": lzma.FORMAT_RAW,
                "filters": [{"id": lzma.FILTER_LZMA2, "dict_size": 2**32 - 1}],
            },
            b"\0",
            "lzma dictionary",
            id="raw",
        ),
    ],
)
def test_a_dictionary_larger_than_any_use_is_refused(
    config: dict[str, Any], payload: bytes, message: str
) -> None:
    chain = CodecChain.from_configs([], config)
    with pytest.raises(ValueError, match=f"{message}"):
        chain.decode(payload, np.empty(len(SOME) // 4, dtype="<u4"))


@pytest.mark.parametrize("preset", [0, 6, 9, 9 | lzma.PRESET_EXTREME])
def test_every_preset_of_lzma_decodes(preset: int) -> None:
    chain = CodecChain.from_configs([], {"id": "lzma"})
    values = np.empty(len(SOME) // 4, dtype="<u4")
    chain.decode(lzma.compress(SOME, preset=preset), values)
    assert values.tobytes() == SOME


@pytest.mark.parametrize("filters", [[], [SHUFFLE]], ids=["", "shuffle"])
def test_where_libzstd_cannot_be_called_frames_must_state_their_size(
    filters: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zstd_frames, "library", lambda: None)
    chain = CodecChain.from_configs(filters, {"id": "zstd", "level": 1})
    original = np.arange(15_000, dtype="<u4")
    values = np.empty_like(original)
    chain.decode(chain.encode(original), values)
    assert values.tolist() == original.tolist()
    half = zstandard.compress(original[:100].tobytes())
    for payload in (stream_of_zeros(unsized()), half + stream_of_zeros(unsized()), half + half):
        with pytest.raises(ValueError, match="zstd"):
            chain.decode(payload, values)


@pytest.mark.parametrize("codec_id", ["blosc", "lz4"])
def test_a_header_that_states_too_much_is_refused(codec_id: str) -> None:
    chain = CodecChain.from_configs([DELTA], {"id": codec_id})
    payload = bytearray(chain.encode(np.arange(1000, dtype="<u4")))
    at = 4 if codec_id == "blosc" else 0
    payload[at : at + 4] = struct.pack("<I", 2**31 - 1)
    with pytest.raises(TooLongError):
        chain.decode(bytes(payload), np.empty(1000, dtype="<u4"))
