"""Which run may write where no file can be locked: an object in a store that its holder renews.

    {"holder": "9f...", "host": "node-7", "process": 4711, "renewed": 1764000000.0}

A run that finds a lease renewed a short while ago is refused. One that was not renewed for TAKEN_OVER_SECONDS, or in
times to come, and is not renewed while it is watched, since clocks differ and are set, belongs to a run that was
killed, and is taken over. The lease spares people two runs at once; what keeps the data whole then is the log, whose
numbers no two runs can both write (convert/workdir/journal.py).
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import suppress
from typing import Any

from tokenmill.errors import printable
from tokenmill.stores.errors import AlreadyThere, StoreError, StoreNotFound
from tokenmill.stores.store import Store, put_own
from tokenmill.stores.system import start_thread

RENEWAL_SECONDS = 10.0
TAKEN_OVER_SECONDS = 60.0
WATCHED_SECONDS = 1.5 * RENEWAL_SECONDS
NAME = "lease"


class Lease:
    """The lease of the work at `store`. output: what it becomes, for errors; refused: that of a run that does not get
    it."""

    def __init__(self, store: Store, output: str, refused: type[Exception]) -> None:
        self._store, self._output, self._refused = store, output, refused
        self.holder = os.urandom(8).hex()
        self._thread: threading.Thread | None = None
        self._released = threading.Event()

    @property
    def is_held(self) -> bool:
        """Whether this process has it, as far as it knows."""
        return self._thread is not None

    def acquire(self) -> None:
        """Take the lease; `refused` if another run is at work. From then on a thread renews it."""
        found = self.check_free()
        try:
            self._write(if_absent=found is None)
        except AlreadyThere:
            raise self._refused(
                f"{self._output}: in use by another run, which started at the same moment. Wait for it."
            ) from None
        thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        start_thread(thread)
        self._thread = thread

    def check_free(self) -> dict[str, Any] | None:
        """Raise `refused` if another run holds the lease; return an expired one, if there is one."""
        found = self._read()
        age = time.time() - found.get("renewed", 0.0) if found is not None else 0.0
        # Long ago, or in times to come: a clock that was set back must not hold a run that is dead for ever.
        is_recent = abs(age) < TAKEN_OVER_SECONDS
        if found is not None and not is_recent:
            time.sleep(WATCHED_SECONDS)
        if found is not None and (is_recent or self._read() not in (found, None)):
            raise self._refused(
                printable(
                    f"{self._output}: in use by another run (process {found.get('process')} on {found.get('host')}, "
                    f"last seen {max(age, 0):.0f} s ago). Wait for it or stop it. The lock of a killed run expires "
                    f"after {TAKEN_OVER_SECONDS:g} s."
                )
            )
        return found

    def release(self) -> None:
        """Let another run have it; nothing if it is not held."""
        if self._thread is not None:
            self._released.set()
            self._thread.join()
            self._thread = None
            with suppress(StoreError):
                if (self._read() or {}).get("holder") == self.holder:
                    self._store.delete([NAME])

    def _renew(self) -> None:
        while not self._released.wait(RENEWAL_SECONDS):
            # A store that does not answer for a while ends the run elsewhere, or not at all.
            with suppress(StoreError):
                self.renew()

    def renew(self) -> None:
        """Say that this run is at work, unless it was taken over, which the log will say."""
        found = self._read()
        if found is None or found.get("holder") == self.holder:
            self._write()

    def _read(self) -> dict[str, Any] | None:
        try:
            found = json.loads(bytes(self._store.read(NAME)))
        except StoreNotFound:
            return None
        except ValueError:
            return {}
        is_ours = isinstance(found, dict) and isinstance(found.get("renewed"), float)
        return found if is_ours else {}

    def _write(self, if_absent: bool = False) -> None:
        entry = {
            "holder": self.holder,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "renewed": time.time(),
        }
        data = json.dumps(entry).encode()
        if if_absent:
            put_own(self._store, NAME, data)
        else:
            self._store.put(NAME, data)
