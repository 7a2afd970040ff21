"""Codec chains: what goes in comes out, and hostile bytes raise before anything large is allocated."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numcodecs
import numpy as np
import pytest

from flat_tokens.storage.codecs import CodecChain, UnknownCodecError

VALUES = np.arange(1000, dtype="<u4") * 3 % 97
CHAINS = [
    ([], None, False),
    ([], None, True),
    ([], {"id": "zstd", "level": 1}, False),
    ([], {"id": "zstd", "level": 1, "checksum": True}, False),
    ([], {"id": "zstd", "level": -3}, True),
    ([], {"id": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 1, "blocksize": 0}, False),
    ([], {"id": "blosc", "cname": "lz4", "clevel": 1, "shuffle": 2}, True),
    ([], {"id": "lz4", "acceleration": 1}, False),
    ([], {"id": "gzip", "level": 1}, False),
    ([], {"id": "zlib", "level": 1}, False),
    ([], {"id": "bz2", "level": 1}, False),
    ([], {"id": "lzma"}, False),
    ([{"id": "delta", "dtype": "<u4"}], {"id": "zstd", "level": 1}, False),
    ([{"id": "shuffle", "elementsize": 4}], None, False),
]


@pytest.mark.parametrize(("filters", "compressor", "crc32c"), CHAINS, ids=str)
def test_round_trip_and_damage(filters: list[Any], compressor: Any, crc32c: bool) -> None:
    chain = pickle.loads(pickle.dumps(CodecChain.from_configs(filters, compressor, crc32c)))
    payload = chain.encode(VALUES)
    values = np.empty_like(VALUES)
    chain.decode(payload, values)
    assert values.tolist() == VALUES.tolist()
    for wrong_length in (999, 1001, 1, 0):
        with pytest.raises(ValueError, match="decode"):
            chain.decode(payload, np.empty(wrong_length, dtype="<u4"))
    rng = random.Random(0)
    for _ in range(50):
        cut = payload[: rng.randrange(len(payload))]
        with pytest.raises(ValueError, match=r"decode|crc32c"):
            chain.decode(cut, values)
    for _ in range(200):
        changed = bytearray(payload)
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        checked = crc32c or (compressor or {}).get("checksum")
        try:
            chain.decode(bytes(changed), values)
        except ValueError:
            continue
        assert not checked or values.tolist() == VALUES.tolist()


def test_a_short_zarr_chunk_does_not_show_the_one_before() -> None:
    chain = CodecChain.from_configs([], {"id": "zstd", "level": 1})
    values = np.full(1000, 7, dtype="<u4")
    with pytest.raises(ValueError, match="4000.*3996"):
        chain.decode(chain.encode(VALUES[:999]), values)


@pytest.mark.parametrize(("filters", "compressor", "crc32c"), CHAINS, ids=str)
def test_nothing_behind_a_payload_is_read(filters: list[Any], compressor: Any, crc32c: bool) -> None:
    """The rest lies where it was cut off, as that of a file before lies in a buffer that is used again."""
    chain = CodecChain.from_configs(filters, compressor, crc32c)
    payload = memoryview(bytearray(chain.encode(VALUES)))
    for length in range(len(payload)):
        with pytest.raises(ValueError, match=r"decode|crc32c"):
            chain.decode(payload[:length], np.empty_like(VALUES))


@pytest.mark.parametrize("size", [1, 63, 64, 127, 128, 255, 256, 16383, 16384, 65791, 65792, 70000])
def test_length_of_zstd_frames(size: int) -> None:
    """Frame headers state their content size in 1, 2, 4 or 8 bytes."""
    values = np.arange(size, dtype="<u4")
    for checksum in (False, True):
        chain = CodecChain.from_configs([], {"id": "zstd", "level": 1, "checksum": checksum})
        out = np.empty_like(values)
        chain.decode(chain.encode(values), out)
        assert out.tobytes() == values.tobytes()


def test_a_bomb_is_refused_by_its_header() -> None:
    bomb = numcodecs.Zstd(1).encode(np.zeros(2**26, dtype=np.uint8))
    with pytest.raises(ValueError, match="4000.*67108864"):
        CodecChain.from_configs([], {"id": "zstd", "level": 1}).decode(bomb, np.empty(1000, dtype="<u4"))


@pytest.mark.parametrize(
    ("filters", "compressor"),
    [
        ([{"id": "pickle"}], None),
        ([], {"id": "pickle"}),
        ([], {"id": ["zstd"]}),
        ([], {}),
        ([5], None),
        ([], {"id": "zstd", "levels": 1}),
        ([], {"id": "zstd", "level": 1, "\x1b": 1}),
        ([{"id": "delta", "dtype": "|O"}], None),
        ([{"id": "delta", "dtype": "<u8", "astype": "<u4"}], None),
    ],
    ids=str,
)
def test_refused_codecs(filters: Any, compressor: Any) -> None:
    with pytest.raises(UnknownCodecError) as caught:
        CodecChain.from_configs(filters, compressor)
    assert str(caught.value).isprintable()
