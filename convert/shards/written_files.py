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
from flat_tokens.storage.token_facts import TokenFacts

FILE = np.dtype(
    [
        ("bytes", "<u8"),
        ("digest", "<u8"),
        ("token_count", "<u4"),  # of TokenFacts; 0 without them
        ("start_count", "<u4"),
        ("starts_digest", "<u8"),
        ("largest", "<u4"),
    ]
)


class WrittenFiles(NamedTuple):
    """Files `first`, `first + 1`, ... of an array. prefix: of their paths. packed: a FILE for each, as bytes."""

    prefix: str
    first: int
    packed: bytes

    @classmethod
    def pack(cls, written: Iterable[tuple[FileRecord, TokenFacts | None]]) -> WrittenFiles:
        """Pack the files that a writer returned, which are consecutive files of one array and at least one."""
        files = list(written)
        path = files[0][0].path
        prefix = path.rstrip("0123456789")
        rows = [(record.bytes, int(record.digest, 16), *(facts or (0, 0, 0, 0))) for record, facts in files]
        return cls(prefix, int(path[len(prefix) :]), np.array(rows, FILE).tobytes())

    @property
    def byte_count(self) -> int:
        """The size of all files."""
        return int(np.frombuffer(self.packed, FILE)["bytes"].sum())

    def records(self) -> Iterator[FileRecord]:
        """Yield the record of each file."""
        for path, size, digest, *_ in self._rows():
            yield FileRecord(path, size, f"{digest:016x}")

    def facts(self) -> Iterator[tuple[str, TokenFacts]]:
        """Yield the path and the facts of each file that has facts."""
        for path, _, _, token_count, *rest in self._rows():
            if token_count:
                yield path, TokenFacts(token_count, *rest)

    def as_json(self) -> list[Any]:
        """Return a JSON-able value; `from_json` is the inverse."""
        return [self.prefix, self.first, base64.b64encode(self.packed).decode()]

    @classmethod
    def from_json(cls, entry: list[Any]) -> WrittenFiles:
        """Return the files that `as_json` wrote."""
        prefix, first, packed = entry
        return cls(prefix, first, base64.b64decode(packed))

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for number, row in enumerate(np.frombuffer(self.packed, FILE).tolist(), self.first):
            yield f"{self.prefix}{number}", *row
