"""The files of a merge task as packed bytes, because the driver handles millions of them.

The journal, the ledger and the driver's messages hold a few bytes per file. Only the manifest and the final
verification need an object per file.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from flat_tokens.storage.manifest import FileRecord

FILE = np.dtype([("bytes", "<u8"), ("digest", "<u8")])


class WrittenFiles(NamedTuple):
    """Files `first`, `first + 1`, ... of an array. prefix: of their paths. packed: a FILE for each, as bytes."""

    prefix: str
    first: int
    packed: bytes

    @classmethod
    def pack(cls, written: Iterable[FileRecord]) -> WrittenFiles:
        """Pack the files that a writer returned, which are consecutive files of one array and at least one."""
        files = list(written)
        path = files[0].path
        prefix = path.rstrip("0123456789")
        rows = [(record.bytes, int(record.digest, 16)) for record in files]
        return cls(prefix, int(path[len(prefix) :]), np.array(rows, FILE).tobytes())

    @property
    def byte_count(self) -> int:
        """The size of all files."""
        return int(np.frombuffer(self.packed, FILE)["bytes"].sum())

    def records(self) -> Iterator[FileRecord]:
        """Yield the record of each file."""
        for number, (size, digest) in enumerate(np.frombuffer(self.packed, FILE).tolist(), self.first):
            yield FileRecord(f"{self.prefix}{number}", size, f"{digest:016x}")

    def as_json(self) -> list[Any]:
        """Return a JSON-able value; `from_json` is the inverse."""
        return [self.prefix, self.first, base64.b64encode(self.packed).decode()]

    @classmethod
    def from_json(cls, entry: list[Any]) -> WrittenFiles:
        """Return the files that `as_json` wrote."""
        prefix, first, packed = entry
        return cls(prefix, first, base64.b64decode(packed))
