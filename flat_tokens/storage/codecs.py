"""From an array of one zarr chunk to the bytes of its file and back, by numcodecs, or by the libzstd it brings.

A chain is what the metadata of an array says: filters and compressor of zarr format 2, or the bytes-to-bytes
codecs of format 3. Only names on the allow-list are taken, so that no dataset can make a reader run code
(pickle is a codec, too). Invariant: decode(encode(x)) == x, and encode depends on nothing but x and the
chain: Blosc is kept from its threads, which would store blocks in the order they finish and do not survive a
fork.

zarr is not imported here: its 0.2 s would be paid in every worker process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import cause, printable
from flat_tokens.storage import bounded, token_matches, zstd_frames
from flat_tokens.storage.token_facts import is_content

Json = Mapping[str, Any]

FILTERS = frozenset({"delta", "shuffle"})  # both keep the number of bytes
COMPRESSORS = frozenset({"zstd", "blosc", "lz4", "zlib", "gzip", "bz2", "lzma"})


class UnknownCodecError(ValueError):
    """A codec outside the allow-list, or one whose configuration makes no sense."""


class CodecChain(NamedTuple):
    """What happens to a zarr chunk between memory and file: filters, then compressor, then a crc32c where
    asked for.

    filters and compressor hold numcodecs configurations as JSON text, so that a chain is hashable and cheap
    to pickle."""

    filters: tuple[str, ...] = ()
    compressor: str | None = None
    crc32c: bool = False

    @classmethod
    def from_configs(cls, filters: list[Json], compressor: Json | None, crc32c: bool = False) -> CodecChain:
        """A chain of numcodecs configurations, each on the allow-list and accepted by its codec;
        UnknownCodecError."""
        for config in filters:
            _check(config, FILTERS)
        if compressor is not None:
            _check(compressor, COMPRESSORS)
        chain = cls(
            tuple(json.dumps(config, sort_keys=True) for config in filters),
            None if compressor is None else json.dumps(compressor, sort_keys=True),
            crc32c,
        )
        for text in chain.filters:
            _codec(text)
        if chain.compressor is not None and not _is_known(compressor):
            _codec(chain.compressor)
        return chain

    def encode(self, values: npt.NDArray[Any]) -> bytes:
        """The bytes of a zarr chunk: values are the whole zarr chunk, padded, C-contiguous, little endian."""
        data: Any = values
        for text in self.filters:
            data = _codec(text).encode(data)
        if self.compressor is not None:
            data = _compressed(self.compressor, data, is_tokens=data is values and values.dtype == np.uint32)
        payload = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        return payload + crc32c_bytes(payload) if self.crc32c else payload

    def is_content(self, payload: bytes, digest: int) -> bool:
        """Whether the bytes of a zarr chunk say by a checksum of their own that they decode to values of this XXH64;
        False where they have none."""
        if self.compressor is None or self.filters or _codec_id(self.compressor) != "zstd":
            return False
        return is_content(payload[:-4] if self.crc32c else payload, digest)

    def decode(
        self,
        payload: bytes | memoryview,
        values: npt.NDArray[Any],
        is_checked: bool = False,
    ) -> None:
        """Fill `values`, a whole zarr chunk, from the bytes of its file. is_checked: a checksum inside the
        compressed bytes was compared before and need not be again.

        A payload that would decode to any other length is refused, a longer one before more than a zarr chunk is
        decoded (flat_tokens/storage/bounded.py). ValueError says why it does not fit; `values` is then undefined."""
        if self.crc32c:
            payload = _without_crc32c(payload)
        data: Any = payload
        if self.compressor is not None:
            stated = bounded.stated_bytes(_codec_id(self.compressor), payload)
            if stated is not None and stated > values.nbytes:
                raise bounded.TooLongError(values.nbytes, stated)
            if not self.filters and self._decode_in_place(payload, values, stated, is_checked):
                return
            codec, config = _codec(self.compressor), _config(self.compressor)
            data = _run(bounded.decode, codec, config, payload, values.nbytes)
        for text in reversed(self.filters):
            data = _run(_codec(text).decode, data)
        flat = np.frombuffer(data, dtype=np.uint8)
        if flat.nbytes != values.nbytes:
            raise ValueError(zstd_frames.wrong_length(values.nbytes, flat.nbytes))
        values.view(np.uint8)[:] = flat

    def _decode_in_place(
        self,
        payload: bytes | memoryview,
        values: npt.NDArray[Any],
        stated: int | None,
        is_checked: bool,
    ) -> bool:
        """Whether the compressor alone could decode straight into `values`, and did."""
        assert self.compressor is not None
        if _codec_id(self.compressor) == "zstd":
            decoded: bool = _run(zstd_frames.decode, payload, values.view(np.uint8), is_checked)
            return decoded
        # numcodecs fills what there is of `out`: an earlier zarr chunk must not show through a short one
        return stated == values.nbytes and _run(_codec(self.compressor).decode, payload, values) is values

    def decode_front(
        self,
        payload: bytes | memoryview,
        values: npt.NDArray[Any],
        count: int,
    ) -> int:
        """Fill at least the first `count` elements of `values` as `decode` would, and all of them where it is not
        known how to do less; how many are filled. For bytes that were decoded whole before: damage behind the front is
        not noticed, nor a checksum compared."""
        if self.compressor is not None and not self.filters and _codec_id(self.compressor) == "zstd":
            body = _without_crc32c(payload) if self.crc32c else payload
            if zstd_frames.stated_bytes(body) == values.nbytes:
                as_bytes, wanted = values.view(np.uint8), count * values.itemsize
                filled: int = _run(zstd_frames.decode_front, body, as_bytes, wanted)
                if filled:
                    return filled // values.itemsize
                if _run(zstd_frames.decode, body, as_bytes, True):
                    return len(values)
        self.decode(payload, values, True)
        return len(values)

    def last_element(self, payload: bytes | memoryview, chunk_bytes: int, itemsize: int) -> int | None:
        """The last element of a zarr chunk, unsigned, where it is known without decoding. ValueError for a crc32c that
        differs."""
        if self.compressor is None or self.filters or _codec_id(self.compressor) != "zstd":
            return None
        body = _without_crc32c(payload) if self.crc32c else payload
        if zstd_frames.stated_bytes(body) != chunk_bytes:
            return None
        last = zstd_frames.last_bytes(body, itemsize)
        return None if last is None else int.from_bytes(last, "little")


def _check(config: Json, allowed: frozenset[str]) -> None:
    name = config.get("id") if isinstance(config, Mapping) else None
    if not isinstance(name, str) or name not in allowed:
        known = ", ".join(sorted(allowed))
        raise UnknownCodecError(f"codec must be one of {known} (got {printable(repr(name), 60)})")
    if config.get("astype") not in (None, config.get("dtype")):
        raise UnknownCodecError(f"codec {name} must keep the data type")


def _is_known(config: Json | None) -> bool:
    """Whether its codec surely takes it, as that of the writer's default: known without 50 ms to import numcodecs."""
    if config is None or config.get("id") != "zstd" or not set(config) <= {"id", "level", "checksum"}:
        return False
    level, checksum = config.get("level", 1), config.get("checksum", False)
    return type(level) is int and -(1 << 17) <= level <= 22 and type(checksum) is bool


def _compressed(config_text: str, data: Any, is_tokens: bool) -> Any:
    setting = _zstd_setting(config_text)
    frame = None
    if setting is not None:
        level, checksum = setting
        if is_tokens and level == token_matches.LEVEL:
            frame = token_matches.encode(np.ascontiguousarray(data).reshape(-1), checksum)
        if frame is None:
            as_bytes = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
            frame = zstd_frames.encode(as_bytes, level, checksum)
    return _codec(config_text).encode(data) if frame is None else frame


@lru_cache(maxsize=64)
def _zstd_setting(config_text: str) -> tuple[int, bool] | None:
    """Level and checksum, None if that is another codec's configuration, or one that only numcodecs may judge."""
    config = _config(config_text)
    return (config.get("level", 1), config.get("checksum", False)) if _is_known(config) else None


@lru_cache(maxsize=64)
def _codec_id(config_text: str) -> str:
    return str(_config(config_text)["id"])


@lru_cache(maxsize=64)
def _config(config_text: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(config_text)
    return config


@lru_cache(maxsize=64)
def _codec(config_text: str) -> Any:
    import numcodecs
    import numcodecs.blosc

    numcodecs.blosc.use_threads = False
    config = _config(config_text)
    try:
        return numcodecs.get_codec(config)
    except (TypeError, ValueError, KeyError) as error:
        raise UnknownCodecError(f"invalid codec {printable(config_text)} ({cause(error)})") from error


def _run(step: Any, *arguments: Any) -> Any:
    """A codec's step, with every way in which it reports bad bytes turned into ValueError."""
    try:
        return step(*arguments)
    except (MemoryError, bounded.TooLongError):
        raise
    except Exception as error:  # RuntimeError, zlib.error, EOFError, LZMAError: each codec has its own
        raise ValueError(f"cannot be decoded ({cause(error, 100)})") from error


def crc32c_bytes(payload: bytes | memoryview) -> bytes:
    """The crc32c of some bytes as zarr appends it: four bytes, little endian."""
    import google_crc32c

    return int(google_crc32c.value(bytes(payload))).to_bytes(4, "little")


def _without_crc32c(payload: bytes | memoryview) -> bytes | memoryview:
    if len(payload) < 4:
        raise ValueError(f"must have at least the 4 bytes of its crc32c (got {len(payload)})")
    body, stored = payload[:-4], bytes(payload[-4:])
    if crc32c_bytes(body) != stored:
        raise ValueError("crc32c mismatch: changed after it was written")
    return body
