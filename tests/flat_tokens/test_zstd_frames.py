"""Frames made and decoded by libzstd's own functions: equal to numcodecs', whole and in part, and damage is told."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import numcodecs
import numpy as np
import pytest
from in_threads import in_threads

from flat_tokens.storage import zstd_frames
from flat_tokens.storage.codecs import CodecChain
from flat_tokens.storage.zstd_frames import BLOCK_BYTES, decode, decode_front

SIZES = [1, 255, 256, 257, 2**16, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 5 * BLOCK_BYTES + 77]


def tokens(size: int, kind: str) -> Any:
    generator = np.random.default_rng(size)
    if kind == "text":  # words repeat
        ids = np.minimum(50_000 ** generator.random(size // 4 + 1), 49_999).astype(np.uint32) * 2
        return ids.view(np.uint8)[:size].copy()
    return generator.integers(0, 256, size).astype(np.uint8) if kind == "noise" else np.zeros(size, np.uint8)


@pytest.fixture(autouse=True)
def needs_the_library() -> None:
    if zstd_frames.library() is None:
        pytest.skip("numcodecs does not export the functions of libzstd here")


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("kind", ["text", "noise", "zeros"])
@pytest.mark.parametrize("size", SIZES)
def test_whole_and_in_part(size: int, kind: str, checksum: bool) -> None:
    values = tokens(size, kind)
    payload = numcodecs.Zstd(1, checksum=checksum).encode(values)
    for is_checked in (False, True):
        out = np.full(size, 7, np.uint8)
        assert decode(payload, out, is_checked)
        assert np.array_equal(out, values)
    for wanted in {1, size // 3, size // 2, BLOCK_BYTES, BLOCK_BYTES + 1, size - 1, size}:
        if not 0 < wanted <= size:
            continue
        out = np.full(size, 7, np.uint8)
        filled = decode_front(memoryview(payload), out, wanted)
        assert filled == 0 or wanted <= filled <= size
        assert np.array_equal(out[:filled], values[:filled])
        if size > 5 * BLOCK_BYTES and wanted <= BLOCK_BYTES and kind != "zeros":  # a block of zeros is short
            assert filled == BLOCK_BYTES
            assert (out[filled:] == 7).all()


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("level", [-7, 0, 1, 3, 19])
def test_frames_are_those_of_numcodecs(level: int, checksum: bool) -> None:
    """In any order of lengths and texts, since a context is used for one after the other."""
    samples = [tokens(size, kind) for size in [0, *SIZES] for kind in ("text", "noise", "zeros")]
    random.Random(level).shuffle(samples)
    for values in samples:
        assert zstd_frames.encode(values, level, checksum) == numcodecs.Zstd(level, checksum).encode(values)


def test_a_frame_each_in_several_threads() -> None:
    samples = [tokens(size, "text") for size in SIZES[3:7]]
    expected = [numcodecs.Zstd(1, checksum=True).encode(values) for values in samples]

    def work(number: int) -> None:
        for _ in range(50):
            assert zstd_frames.encode(samples[number], 1, True) == expected[number]

    in_threads(4, work)


def test_numcodecs_is_not_imported_for_zstd() -> None:
    """To import it takes as long as to encode a text chunk."""
    code = """
import sys
import numpy as np
from flat_tokens.storage.codecs import CodecChain
chain = CodecChain.from_configs([], {"id": "zstd", "level": 1, "checksum": True})
values, out = np.arange(1000, dtype=np.uint32), np.empty(1000, np.uint32)
chain.decode(chain.encode(values), out)
assert np.array_equal(values, out)
print("numcodecs" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("kind", ["text", "noise", "zeros"])
def test_last_bytes_are_those_of_raw_blocks(kind: str) -> None:
    """Of frames that zstd cut into blocks itself, or None."""
    for size in SIZES:
        values = tokens(size, kind)
        payload = numcodecs.Zstd(1, checksum=True).encode(values)
        found = zstd_frames.last_bytes(payload, 4)
        assert found is None or found == values.tobytes()[-4:]
        assert found is None or kind == "noise"
    for cut in range(20):
        assert zstd_frames.last_bytes(payload[:cut], 4) is None


def test_a_wrong_length_is_an_error() -> None:
    payload = numcodecs.Zstd(1).encode(tokens(1000, "text"))
    with pytest.raises(ValueError, match="decode"):
        decode(payload, np.empty(999, np.uint8))
    with pytest.raises(ValueError, match="1001.*1000"):
        decode(payload, np.empty(1001, np.uint8))


def test_damage() -> None:
    """A checksum finds every flip; without one a flip may show, but neither writes outside nor hangs."""
    values = tokens(5 * BLOCK_BYTES, "text")
    payload = bytes(numcodecs.Zstd(1, checksum=True).encode(values))
    memory = np.full(len(values) + 64, 7, np.uint8)
    out = memory[: len(values)]
    rng = random.Random(5)
    found = 0
    for _ in range(300):
        changed = bytearray(payload)
        changed[rng.randrange(4, len(changed))] ^= 1 << rng.randrange(8)
        with pytest.raises(ValueError, match=r"\w"):
            decode(bytes(changed), out)
        for wanted in (1, 3 * BLOCK_BYTES):
            try:
                filled = decode_front(bytes(changed), out, wanted)
            except ValueError:
                found += 1
            else:
                assert filled == 0 or wanted <= filled <= len(values)
        assert (memory[len(values) :] == 7).all()
    assert found > 5
    for _ in range(100):
        cut = payload[: rng.randrange(len(payload))]
        with pytest.raises(ValueError, match=r"\w"):
            decode(cut, out)
        try:
            filled = decode_front(cut, out, BLOCK_BYTES)
        except ValueError:
            continue
        assert np.array_equal(out[:filled], values[:filled])
    # contexts are as good as new afterwards
    assert decode(payload, out)
    assert np.array_equal(out, values)
    assert decode_front(payload, out, 10) == BLOCK_BYTES


def test_threads_have_contexts_of_their_own() -> None:
    samples = [tokens(3 * BLOCK_BYTES + number, "text") for number in range(4)]
    payloads = [numcodecs.Zstd(1).encode(values) for values in samples]

    def work(number: int) -> None:
        out = np.empty_like(samples[number])
        for turn in range(30):
            is_whole = turn % 2 and decode(payloads[number], out)
            filled = len(out) if is_whole else decode_front(payloads[number], out, 100)
            assert np.array_equal(out[:filled], samples[number][:filled])

    in_threads(4, work)


def test_numcodecs_does_it_where_the_library_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = CodecChain.from_configs([], {"id": "zstd", "level": 1, "checksum": True})
    frame = chain.encode(tokens(1000, "text"))
    monkeypatch.setattr(zstd_frames, "library", lambda: None)
    assert zstd_frames.encode(tokens(1000, "text"), 1, True) is None
    assert chain.encode(tokens(1000, "text")) == frame
    out = np.full(10, 7, np.uint8)
    assert not decode(numcodecs.Zstd(1).encode(tokens(10, "text")), out)
    assert decode_front(numcodecs.Zstd(1).encode(tokens(10, "text")), out, 1) == 0
    assert (out == 7).all()


@pytest.mark.parametrize("checksum", [False, True])
def test_lengths_and_checksums_are_compared(checksum: bool) -> None:
    values = np.repeat(np.random.default_rng(5).integers(0, 3000, 2**16, dtype=np.uint32), 4)
    payload = numcodecs.Zstd(level=1, checksum=checksum).encode(values)
    out = np.zeros(values.nbytes, dtype=np.uint8)
    for is_checked in (False, True):
        assert zstd_frames.decode(payload, out, is_checked)
        assert np.array_equal(out, values.view(np.uint8))
    if checksum:
        broken = payload[:-1] + bytes([payload[-1] ^ 1])
        with pytest.raises(ValueError, match="checksum"):
            zstd_frames.decode(broken, out, False)
        assert zstd_frames.decode(broken, out, True)
    for wrong in (payload[:-5], payload[: len(payload) // 2], payload + b"x"):
        with pytest.raises(ValueError, match="incorrect"):
            zstd_frames.decode(wrong, out, True)
    skippable = b"\x50\x2a\x4d\x18\x01\x00\x00\x00?"
    assert zstd_frames.decode(payload + skippable, out, True)
    for size in (values.nbytes - 4, values.nbytes + 4):
        with pytest.raises(ValueError, match="decode"):
            zstd_frames.decode(payload, np.zeros(size, np.uint8), True)


def test_a_library_without_memory_says_so() -> None:
    library = zstd_frames.library()
    assert library is not None
    with pytest.raises(MemoryError, match="not enough memory"):
        library.checked(2**64 - 64)
    with pytest.raises(ValueError, match="corruption"):
        library.checked(2**64 - 20)
