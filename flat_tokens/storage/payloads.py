"""The encoded zarr chunks of an array, one at a time: what is read of files, before anything is decoded."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from flat_tokens.storage.chunks import Positions, largest_file_bytes
from flat_tokens.storage.files import ReadBuffer, read_into
from flat_tokens.storage.places import Payload, StorePath
from flat_tokens.storage.shards import Shards
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
        self.shards = Shards(stored)

    def read(self, index: int, buffer: ReadBuffer) -> tuple[Payload, str]:
        """See Payloads."""
        stored = self._stored
        path = stored.file_name(index * stored.chunk_elements // stored.shard_elements)
        with stored.opening():
            if stored.sharded:
                return self.shards.part(index), path
            return read_into(path, self._largest_file_bytes, buffer), path

    def expecting(
        self, starts: Positions, stops: Positions, at_once: bool = False
    ) -> AbstractContextManager[None]:
        """See Payloads."""
        return _NOTHING


_NOTHING = nullcontext()


def payloads_of(stored: StoredArray) -> FilePayloads | StorePayloads:
    """The payloads of an array, wherever it lies."""
    return StorePayloads(stored) if isinstance(stored.path, StorePath) else FilePayloads(stored)
