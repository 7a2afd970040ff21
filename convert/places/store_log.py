"""The log of a conversion whose state lies in a store: numbered objects, put if absent, and a copy in a local folder.

    log/00000001, log/00000002, ...      each some lines of the log (convert/places/log.py)

Objects are put every second or so, with all that was noted since. A run first claims the next number with an object
that says who it is. From then on no former run can write the log: the number that it would write next is taken, or its
own claim is gone, with which everything went that it had written. It looks for the claim before each put and after it:
a run that has finished leaves all numbers free again. Whoever is to delete or to publish `confirm`s first that it is
still the one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from convert.errors import Refused, naming
from convert.places.log import Log
from tokenmill.stores import AlreadyThere, Entry, Store, StoreNotFound
from tokenmill.stores.store import put_own

PUT_SECONDS = 1.0
FOLDER = "log"
_READS_AT_ONCE = 16


class StoreLog(Log):
    """The log at `store` with its copy in `folder`. output: for errors; holder: the name of this run, like no other."""

    def __init__(self, folder: Path, store: Store, output: str, holder: str) -> None:
        super().__init__(folder)
        self._store, self._output, self._holder = store, output, holder
        self._number = 1  # of the next object
        self._claim: Entry | None = None
        self._waiting = bytearray()
        self._next_put = 0.0

    @property
    def claim(self) -> str:
        """The key of this run's claim, "" before."""
        return "" if self._claim is None else self._claim.key

    def take_over(self) -> None:
        """Claim the log; Refused (exit 6) if another run does at the same moment."""
        for entry in self._store.list(FOLDER):
            self._number = int(entry.key.rpartition("/")[2]) + 1
        self._claim = self._put_next(b"")

    def fetch(self) -> None:
        """Make the copy."""
        entries = list(self._store.list(FOLDER))
        with (
            naming(self.path),
            self.path.open("wb") as file,
            ThreadPoolExecutor(_READS_AT_ONCE) as readers,
        ):
            file.writelines(readers.map(lambda entry: self._store.read(entry.key), entries))

    def append(self, entries: Iterable[dict[str, Any]]) -> bytearray:
        """See Log; in the store within a second or so, if `append` or `flush` is called then."""
        lines = super().append(entries)
        self._waiting += lines
        if time.monotonic() >= self._next_put:
            self.flush()
        return lines

    def flush(self) -> None:
        """Put what waits; Refused (exit 6) if another run has taken over."""
        if self._waiting:
            self._put(bytes(self._waiting))
            self._waiting.clear()
            self._next_put = time.monotonic() + PUT_SECONDS

    def confirm(self) -> str:
        """Refused unless this run is still the one that writes; the key of an object of the log that says so."""
        key = self._key
        self._put(bytes(self._waiting))
        self._waiting.clear()
        return key

    @property
    def _key(self) -> str:
        return f"{FOLDER}/{self._number:08}"

    def _put(self, lines: bytes) -> None:
        self._check_claim()
        entry = self._put_next(lines)
        try:
            self._check_claim()
        except Refused:
            # Another run has come to its end between the first look and the put: the number was free again.
            self._store.delete([entry.key])
            raise

    def _put_next(self, lines: bytes) -> Entry:
        # The holder's line, which no reader takes for one of the log's, makes the object like no other run's.
        try:
            entry = put_own(self._store, self._key, b"\nby %b" % self._holder.encode() + lines)
        except AlreadyThere:
            raise self._taken_over() from None
        self._number += 1
        return entry

    def _check_claim(self) -> None:
        if self._claim is None:
            return
        try:
            if self._store.head(self._claim.key) == self._claim:
                return
        except StoreNotFound:
            pass
        raise self._taken_over()

    def _taken_over(self) -> Refused:
        return Refused(f"{self._output}: another run took over and continues from the work finished here")
