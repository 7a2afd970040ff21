"""Zarr chunks of one array, at random: mapped into memory where they are stored as they are, else decoded
and kept in a bounded cache.

Raw: no filter, no compressor. A file or shard is mapped once; a crc32c behind a zarr chunk is compared when
that zarr chunk is touched first. Decoded: at most CACHE_BYTES of decoded zarr chunks (or two) are kept
(flat_tokens/storage/chunk_cache.py), and their memory is used again. Memory that a process touches first costs 0.2 us a
KiB, a third of the decoding.

Invariant: a zarr chunk that is handed out was whole, its checksums right and its file there when this process read
it first: zarr reads a missing file as zeros, here it is an error. Later it is decoded only as far as it is asked
for, and without a checksum, where the codec can (flat_tokens/storage/zstd_frames.py). A loader's batch that is read
alone, as on resuming, is so at once: whether the file is whole is looked at, and the checksum is compared when the zarr
chunk is read next, which from_step does before its second batch. Safe to use from several threads; a child of a fork
begins with an empty cache.
"""

from __future__ import annotations

import errno
import os
import threading
import weakref
from collections import OrderedDict
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import CONVERT_AGAIN, damaged, printable
from flat_tokens.storage.chunk_cache import ChunkCache
from flat_tokens.storage.chunks import Positions, decode_again, decode_chunk, largest_file_bytes, last_element
from flat_tokens.storage.codecs import crc32c_bytes
from flat_tokens.storage.files import AbsentFileError, ReadBuffer
from flat_tokens.storage.mapped_stream import LARGEST_MAP_COUNT, MappedStream
from flat_tokens.storage.mapping import map_file
from flat_tokens.storage.payloads import FilePayloads, payloads_of
from flat_tokens.storage.shards import KEPT_INDEXES
from flat_tokens.storage.zarr_metadata import StoredArray

CACHE_BYTES = 2**23  # 32 zarr chunks of 64 Ki tokens; two arrays of two splits stay under 32 MiB

# Of a zarr chunk that is decoded: whether its checksum was compared, or its front read.
UNREAD, BRIEF, SOUND = 0, 1, 2
STATE_PAGE = 4096  # zarr chunks whose states are held together, once one of them was read

Values = npt.NDArray[Any]


class ChunkSource:
    """The zarr chunks of a stored array, one method for a short stay and one for a copy.

    missing_is_zero: an absent file means zeros, as in zarr, since nothing says that it should be there.
    largest: no element may be greater; compared when a zarr chunk is decoded, 0.1 ns an element. What is
    mapped is for those who use it to compare."""

    def __init__(self, stored: StoredArray, missing_is_zero: bool, largest: int | None = None) -> None:
        self.stored = stored
        self._missing_is_zero = missing_is_zero
        self._largest = largest
        self._dtype = np.dtype(stored.dtype)
        self._chunk_bytes = stored.chunk_elements * self._dtype.itemsize
        self._largest_cached = max(2, CACHE_BYTES // self._chunk_bytes)
        self.forget()
        codecs = stored.codecs
        self.is_raw = self._payloads.is_mappable and not codecs.filters and codecs.compressor is None
        _SOURCES.add(self)

    def forget(self) -> None:
        """Drop every mapping, decoded zarr chunk and index, and the lock with them."""
        self._lock = threading.Lock()
        self._mapped: dict[int, Values] = {}
        self._files: OrderedDict[int, npt.NDArray[np.uint8]] = OrderedDict()
        self._decoded = ChunkCache(self._largest_cached, self.stored.chunk_elements, self._dtype)
        self._last_copied = -2
        self._states: dict[int, bytearray] = {}
        self._payloads = payloads_of(self.stored)
        self._stream: MappedStream | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {
            "stored": self.stored,
            "missing_is_zero": self._missing_is_zero,
            "largest": self._largest,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def mapped(self, index: int) -> Values:
        """Zarr chunk `index` of a raw array, a read-only view that stays valid. Cost when known: 50 ns."""
        values = self._mapped.get(index)
        if values is None:
            try:
                with self.stored.opening():
                    values = self._map(index)
            except AbsentFileError:
                if not self._missing_is_zero:
                    raise
                values = np.zeros(self.stored.chunk_elements, dtype=self._dtype)
            with self._lock:
                if len(self._mapped) >= LARGEST_MAP_COUNT:
                    self._mapped.clear()  # a mapping ends with the last array that looks into it
                self._mapped[index] = values
        return values

    def stream(self) -> MappedStream | None:
        """All elements as one array, if they are stored so that this is possible, and there are addresses for them."""
        if not self.is_raw or self._missing_is_zero or not MappedStream.fits(self.stored):
            return None
        with self._lock:
            if self._stream is None:
                try:
                    self._stream = MappedStream(self.stored, self._check)
                except OSError as error:
                    if error.errno != errno.ENOMEM:
                        raise
            return self._stream

    def _check(self, values: Values, first: int) -> None:
        check_largest(values, self._largest, self.stored, first)

    def copy(self, index: int, start: int, stop: int, out: Values, needed: int = 0) -> None:
        """Put elements [start, stop) of zarr chunk `index` into `out`, for those who compare them with the largest
        allowed one. Cost: a copy if they are kept decoded, else the decoding of its front up to them, or up to `needed`
        if that is further, or of all of it for those who read one after the other."""
        if self.is_raw:
            out[:] = self.mapped(index)[start:stop]
            return
        with self._lock:
            goes_on = 0 <= index - self._last_copied <= 1
            self._last_copied = index
            kept = self._decoded.find(index)
            if kept is not None and stop <= kept[1]:
                out[:] = kept[0][start:stop]
                return
            buffer = self._decoded.buffer()
        count = None if goes_on or kept is not None else min(max(stop, needed), len(buffer))
        filled = self.decode(index, buffer, count, is_checked=False)
        out[:] = buffer[start:stop]
        with self._lock:
            self._decoded.put(index, buffer, filled)

    def decode(
        self,
        index: int,
        out: Values,
        count: int | None,
        is_checked: bool,
        is_brief: bool = False,
    ) -> int:
        """Fill `out`, one whole zarr chunk, or at least its first `count` elements, past the cache; how many are
        filled. The first time all of it, and its checksum is compared; is_brief: the second time, for one who will
        come again. is_checked: whether its elements are compared with the largest allowed one."""
        stored = self.stored
        if self.is_raw:
            out[:] = self.mapped(index)
            return len(out)
        buffer = ReadBuffer.take()
        try:
            payload, path = self._payloads.read(index, buffer)
            states, place = self._states.get(index // STATE_PAGE), index % STATE_PAGE
            state = UNREAD if states is None else states[place]
            is_sound = state == SOUND
            is_brief = is_brief and state == UNREAD
            if is_sound or is_brief:
                filled = decode_again(stored, payload, out, path, len(out) if count is None else count)
            else:
                decode_chunk(stored, payload, out, path)
                filled = len(out)
        except AbsentFileError:
            if not self._missing_is_zero:
                raise
            out[:] = 0
            return len(out)
        finally:
            buffer.give()
        if is_checked:
            check_largest(out[:filled], self._largest, stored, index * stored.chunk_elements)
        if states is None:
            states = self._states.setdefault(index // STATE_PAGE, bytearray(STATE_PAGE))
        states[place] = BRIEF if is_brief else SOUND
        return filled

    def last(self, index: int) -> int | None:
        """The last element of a zarr chunk that is full, not compared with anything, or None where it must be decoded
        for it."""
        if self.is_raw:
            return None
        buffer = ReadBuffer.take()
        try:
            return last_element(self.stored, *self._payloads.read(index, buffer))
        except AbsentFileError:
            return None  # what that means is for `decode` to say
        finally:
            buffer.give()

    def expecting(
        self, starts: Positions, stops: Positions, at_once: bool = False
    ) -> AbstractContextManager[None]:
        """See Payloads.expecting."""
        return self._payloads.expecting(starts, stops, at_once)

    def _map(self, index: int) -> Values:
        assert isinstance(self._payloads, FilePayloads)
        stored = self.stored
        file_index = index * stored.chunk_elements // stored.shard_elements
        path = stored.file_name(file_index)
        where = printable(path)
        data = self._files.get(file_index)
        if data is None:
            data = map_file(path, largest_file_bytes(stored))
            if stored.sharded:  # its other zarr chunks lie in the same mapping
                with self._lock:
                    self._files[file_index] = data
                    while len(self._files) > KEPT_INDEXES:
                        self._files.popitem(last=False)
        extra = 4 * stored.codecs.crc32c
        offset, length = 0, len(data)
        if stored.sharded:
            offset, length = self._payloads.shards.entry(index)
        if length != self._chunk_bytes + extra:
            what = f"zarr chunk {index} must have {self._chunk_bytes + extra} bytes (got {length})"
            raise damaged(where, what)
        part = data[offset : offset + self._chunk_bytes]
        if extra and crc32c_bytes(part.tobytes()) != bytes(
            data[offset + self._chunk_bytes : offset + length]
        ):
            raise damaged(where, f"crc32c mismatch in zarr chunk {index}")
        return part.view(self._dtype)


def check_largest(values: Values, largest: int | None, where: str | StoredArray, first: int) -> None:
    """Raise DatasetError if an element is above `largest`, which is 2 * max_token_id + 1; first: position of
    values[0]. where: a name, or the array whose file is named."""
    if largest is not None and len(values) and int(values.max()) > largest:
        at = int(values.argmax())
        if isinstance(where, StoredArray):
            where = where.file_name((first + at) // where.shard_elements)
        what = (
            f"ID of token {first + at} must be at most max_token_id = {largest >> 1} (got {values[at] >> 1})"
        )
        raise damaged(where, what, CONVERT_AGAIN)


_SOURCES: weakref.WeakSet[ChunkSource] = weakref.WeakSet()


def _forget_all() -> None:
    """In the child of a fork: another thread of the parent may have held a lock, or been filling a buffer."""
    for source in list(_SOURCES):
        source.forget()


os.register_at_fork(after_in_child=_forget_all)
