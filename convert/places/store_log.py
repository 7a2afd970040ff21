"""The log of a conversion whose state lies in a store: numbered objects, put if absent, and a copy in a local folder.

    log/00000001, log/00000002, ...      each some lines of the log (convert/places/log.py)

Objects are put every second or so, with all that was noted since. A number that is there already was written by another
run: then this one ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from convert.errors import Refused, naming
from convert.places.log import Log, log_lines
from stores import AlreadyThere, Store

PUT_SECONDS = 1.0
FOLDER = "log"


class StoreLog(Log):
    """The log at `store` with its copy in `folder`. number: of the next object; output: for errors."""

    def __init__(self, folder: Path, store: Store, output: str) -> None:
        super().__init__(folder)
        self._store, self._output = store, output
        self.number = 1
        self._waiting = bytearray()
        self._next_put = 0.0

    def fetch(self) -> None:
        """Make the copy."""
        self.number = 1
        with naming(self.path), self.path.open("wb") as file:
            for entry in self._store.list(FOLDER):
                self.number = int(entry.key.rpartition("/")[2]) + 1
                file.write(self._store.read(entry.key, version=entry.version))

    def append(self, entries: Iterable[dict[str, Any]]) -> None:
        """See Log; in the store within a second or so, if `append` or `flush` is called then."""
        lines = log_lines(entries)
        self.append_lines(lines)
        self._waiting += lines
        if time.monotonic() >= self._next_put:
            self.flush()

    def flush(self) -> None:
        """Put what waits; Refused (exit 6) if another run has taken over."""
        if self._waiting:
            self._put(bytes(self._waiting))
            self._waiting.clear()
            self._next_put = time.monotonic() + PUT_SECONDS

    def confirm(self) -> None:
        """Refused unless this run is still the one that writes."""
        self.flush()
        self._put(b"")

    def _put(self, data: bytes) -> None:
        try:
            self._store.put(f"{FOLDER}/{self.number:08}", data, if_absent=True)
        except AlreadyThere:
            raise Refused(
                f"another run has taken over the work at {self._output}; what was done here up to then goes on there"
            ) from None
        self.number += 1
