"""The encoded zarr chunks of an array, one at a time: what is read of files, before anything is decoded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from flat_tokens.storage.chunks import Positions, largest_file_bytes
from flat_tokens.storage.files import ReadBuffer, read_into
from flat_tokens.storage.places import Payload, StorePath
from flat_tokens.storage.shards import OpenShard, Shards
from flat_tokens.storage.store_payloads import StorePayloads
from flat_tokens.storage.zarr_metadata import StoredArray


class Payloads(Protocol):
    """Safe to use from several threads. is_mappable: whether the files are of this machine."""

    is_mappable: bool

    def read(self, index: int, buffer: ReadBuffer) -> tuple[Payload, str]:
        """The encoded bytes of zarr chunk `index`, perhaps in `buffer`, and the name of their file or object.
        AbsentFileError if it is not there."""

    def expecting(
        self, starts: Positions, stops: Positions, at_once: bool = False
    ) -> AbstractContextManager[None]:
        """A context in which a thread reads the zarr chunks of the elements [starts[i], stops[i]), about by rising
        number.

        Where a read takes time, the next ones are on their way meanwhile. at_once: this call sends the first requests,
        and the thread may enter the context later. Within another such context it changes nothing.
        """


class FilePayloads:
    """Those of local files."""

    is_mappable = True

    def __init__(self, stored: StoredArray) -> None:
        self._stored = stored
        self._largest_file_bytes = largest_file_bytes(stored)
        self._of_thread = threading.local()
        self.shards = Shards(stored)

    def read(self, index: int, buffer: ReadBuffer) -> tuple[Payload, str]:
        """See Payloads."""
        stored = self._stored
        if stored.sharded:
            with self._keeping_open():
                shard: OpenShard = self._of_thread.shard
                return shard.part(index)
        path = stored.file_name(index)
        with stored.opening():
            return read_into(path, self._largest_file_bytes, buffer), path

    def expecting(
        self, starts: Positions, stops: Positions, at_once: bool = False
    ) -> AbstractContextManager[None]:
        """See Payloads."""
        return self._keeping_open() if self._stored.sharded else _NOTHING

    @contextmanager
    def _keeping_open(self) -> Iterator[None]:
        """A context in which the shard that the thread read last stays open. Another thread may leave it."""
        outer: OpenShard | None = getattr(self._of_thread, "shard", None)
        if outer is not None and not outer.is_ended:
            yield
            return
        self._of_thread.shard = shard = OpenShard(self.shards, self._stored)
        try:
            yield
        finally:
            shard.end()


_NOTHING = nullcontext()


def payloads_of(stored: StoredArray) -> FilePayloads | StorePayloads:
    """The payloads of an array, wherever it lies."""
    return StorePayloads(stored) if isinstance(stored.path, StorePath) else FilePayloads(stored)
