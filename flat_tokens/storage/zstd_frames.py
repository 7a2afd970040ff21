"""Zstd frames made and decoded by the functions of libzstd (flat_tokens/storage/zstd_library.py).

numcodecs makes a new context for each buffer: 160 KiB of memory that the process touches first, 12 to 20 % of the
time to decode a zarr chunk of 64 Ki tokens. And it decodes whole frames only, where a row needs the front: a frame is
made of blocks of up to 128 KiB, so rows in the first half of such a zarr chunk cost half. Where the functions cannot be
called, `encode` and `decode` are numcodecs' own and `decode_front` decodes everything. Invariant: frames, and what is
decoded of them, equal those of numcodecs (tests/flat_tokens/test_zstd_frames.py). A frame's checksum, if it has one,
is compared unless the caller knows that it was: it costs 8 to 15 %, and a front has none.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flat_tokens.storage.zstd_library import RESET_SESSION, Buffer, library

Bytes = npt.NDArray[np.uint8]

BLOCK_BYTES = 2**17  # RFC 8878: no block decodes to more
MAGIC = b"\x28\xb5\x2f\xfd"
OUTPUT_TOO_SMALL = 2**64 - 70  # ZSTD_error_dstSize_tooSmall, as a size_t
_RAW, _RLE, _RESERVED = 0, 1, 3


def encode(data: Bytes, level: int, checksum: bool) -> bytes | None:
    """The frame of some bytes; None where that is left to numcodecs. ValueError says what is wrong."""
    zstd = library()
    if zstd is None:
        return None
    encoder = zstd.take_encoder(level, checksum)
    try:
        room = encoder.room(zstd.compress_bound(len(data)))
        size = zstd.compress(encoder.context, room.ctypes.data, len(room), data.ctypes.data, len(data))
        return room[: zstd.checked(size)].tobytes()
    finally:
        zstd.give_encoder(encoder, level, checksum)


def decode(payload: bytes | memoryview, out: Bytes, is_checked: bool = False) -> bool:
    """Fill `out` from a payload that must decode to just its length; False, and nothing is done, where that is left
    to numcodecs. is_checked: its checksum was compared before. Raise ValueError for a damaged payload."""
    done = decode_up_to(payload, out, is_checked)
    if done is None:
        return False
    if done > len(out):
        raise ValueError(wrong_length(len(out)))
    if done < len(out):
        raise ValueError(wrong_length(len(out), done))
    return True


def wrong_length(expected: int, got: int | None = None) -> str:
    """Return what is wrong with a payload of another decoded length. got: None for more bytes than fit."""
    return f"must decode to {expected} bytes (got {'more' if got is None else got})"


def decode_up_to(payload: bytes | memoryview, out: Bytes, is_checked: bool = False) -> int | None:
    """As decode, into the front of `out`; how many bytes there are, one more than `out` has if they are too many. None,
    and nothing is done, where that is left to numcodecs."""
    zstd = library()
    if zstd is None:
        return None
    source = np.frombuffer(payload, dtype=np.uint8)
    context = zstd.take_decoder(is_checked)
    try:
        done: int = zstd.decompress(context, out.ctypes.data, len(out), source.ctypes.data, len(source))
    finally:
        zstd.give_decoder(context, is_checked)
    return len(out) + 1 if done == OUTPUT_TOO_SMALL else zstd.checked(done)


def stated_bytes(payload: bytes | memoryview) -> int | None:
    """The decoded length that the header of the first frame states, None if it states none (RFC 8878, 3.1.1.1)."""
    if len(payload) < 6 or bytes(payload[:4]) != MAGIC:
        return None
    descriptor = payload[4]
    size_flag, single_segment, dictionary_flag = descriptor >> 6, descriptor >> 5 & 1, descriptor & 3
    at = 5 + (not single_segment) + (0, 1, 2, 4)[dictionary_flag]
    width = (1 if single_segment else 0, 2, 4, 8)[size_flag]
    if not width or len(payload) < at + width:
        return None
    return int.from_bytes(payload[at : at + width], "little") + (256 if width == 2 else 0)


def is_one_frame(payload: bytes | memoryview) -> bool:
    """Whether a frame, without a dictionary, ends where the payload does."""
    return _block_ends(payload)[1]


def decode_front(payload: bytes | memoryview, out: Bytes, wanted_bytes: int) -> int:
    """Fill at least the first `wanted_bytes` of `out` from a payload whose header says that it decodes to the
    length of `out`; how many bytes are filled, 0 where it must be decoded whole: the front is (nearly) all of it, the
    frame is cut off or not alone, or the library is not there. No checksum is compared. ValueError says what is wrong
    with the front."""
    zstd = library()
    if zstd is None or wanted_bytes > len(out) - BLOCK_BYTES:
        return 0
    ends, is_whole = _block_ends(payload)
    wanted_blocks = -(-wanted_bytes // BLOCK_BYTES)
    if len(ends) <= wanted_blocks or not is_whole:
        return 0
    source = np.frombuffer(payload, dtype=np.uint8)
    given = Buffer(source.ctypes.data, 0, 0)
    made = Buffer(out.ctypes.data, len(out), 0)
    context = zstd.take_decoder(True)
    try:
        zstd.reset(context, RESET_SESSION)
        for end in ends[wanted_blocks - 1 :]:
            given.size = end
            while given.pos < end:
                before = given.pos, made.pos
                zstd.checked(zstd.stream(context, made, given))
                if (given.pos, made.pos) == before:
                    raise ValueError("the zstd frame continues after its last block")
            if made.pos >= wanted_bytes:
                return int(made.pos)
        return 0
    finally:
        zstd.reset(context, RESET_SESSION)
        zstd.give_decoder(context, True)


def last_bytes(payload: bytes | memoryview, count: int) -> bytes | None:
    """The last `count` bytes that a frame decodes to, where they are stored as they are in a block behind others and
    the frame ends with the payload; else None. No checksum is compared. Cost: 1 us a block."""
    ends, is_whole = _block_ends(payload)
    if not is_whole or len(ends) < 2:
        return None
    header = int.from_bytes(payload[ends[-2] : ends[-2] + 3], "little")
    if header >> 1 & 3 != _RAW or header >> 3 < count:
        return None
    return bytes(payload[ends[-1] - count : ends[-1]])


def content_checksum(payload: bytes | memoryview) -> int | None:
    """The checksum of its content with which a frame ends, the low 32 bits of an XXH64; None if it has none, or is
    not the whole payload. Cost: 1 us a block."""
    _, is_whole = _block_ends(payload)
    if not is_whole or not payload[4] >> 2 & 1:
        return None
    return int.from_bytes(payload[-4:], "little")


def _block_ends(payload: bytes | memoryview) -> tuple[list[int], bool]:
    """Where the blocks of a frame end, those inside the payload, and whether the frame ends where the payload does;
    none if it has a dictionary (RFC 8878, 3.1.1)."""
    size = len(payload)
    if size < 6 or bytes(payload[:4]) != MAGIC:
        return [], False
    descriptor = payload[4]
    size_flag, single_segment, dictionary_flag = descriptor >> 6, descriptor >> 5 & 1, descriptor & 3
    if dictionary_flag:
        return [], False
    checksum_bytes = 4 * (descriptor >> 2 & 1)
    at = 5 + (not single_segment) + (1 if single_segment and not size_flag else (0, 2, 4, 8)[size_flag])
    ends = []
    while at + 3 <= size:
        header = payload[at] | payload[at + 1] << 8 | payload[at + 2] << 16
        kind = header >> 1 & 3
        if kind == _RESERVED:
            break
        at += 3 + (1 if kind == _RLE else header >> 3)
        if at > size:
            break
        ends.append(at)
        if header & 1:
            return ends, at + checksum_bytes == size
    return ends, False
