"""A lease in a store, where files cannot be locked: an object that the running process renews.

    {"holder": "9f...", "host": "node-7", "process": 4711, "renewed": 1764000000.0}

A recently renewed lease refuses other runs. An old one, or one dated in the future because clocks differ, belongs to a
killed run if it is not renewed while it is watched, and is taken over. A run that was only silent finds another holder
or no lease when it calls `confirm`, and ends.
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
    """The lease of the work in `store`.

    output: the result of the work, for messages.
    refused: the class of the error if another run has the lease.
    """

    def __init__(self, store: Store, output: str, refused: type[Exception]) -> None:
        self._store, self._output, self._refused = store, output, refused
        self.holder = os.urandom(8).hex()
        self._thread: threading.Thread | None = None
        self._released = threading.Event()

    @property
    def is_held(self) -> bool:
        """Whether this process has the lease, as far as it knows."""
        return self._thread is not None

    def acquire(self) -> None:
        """Acquire the lease and start a thread that renews it. Raise `refused` if another run has it."""
        found = self.check_free()
        try:
            self._write(if_absent=found is None)
        except AlreadyThere:
            raise self._refused(
                f"{self._output}: in use by another run, which started at the same moment. Wait for it."
            ) from None
        thread = threading.Thread(target=self._keep_renewing, name="lease", daemon=True)
        start_thread(thread)
        self._thread = thread

    def check_free(self) -> dict[str, Any] | None:
        """Return the expired lease, if there is one. Raise `refused` if another run has the lease."""
        found = self._read()
        if found is None:
            return None
        age = time.time() - found.get("renewed", 0.0)
        is_recent = abs(age) < TAKEN_OVER_SECONDS
        if not is_recent:
            time.sleep(WATCHED_SECONDS)
        if is_recent or self._read() not in (found, None):
            holder = printable(f"process {found.get('process')} on {found.get('host')}")
            raise self._refused(
                f"{self._output}: in use by another run ({holder}, last seen {max(age, 0):.0f} s ago). Wait for it or "
                f"stop it. The lock of a killed run expires after {TAKEN_OVER_SECONDS:g} s."
            )
        return found

    def release(self) -> None:
        """Let another run have the lease. Does nothing if it is not held."""
        if self._thread is not None:
            self._released.set()
            self._thread.join()
            self._thread = None
            with suppress(StoreError):
                if self._is_own():
                    self._store.delete([NAME])

    def renew(self) -> None:
        """Renew the lease, unless another run has taken it over."""
        if self._is_own():
            self._write()

    def confirm(self) -> None:
        """Raise `refused` if another run has taken the lease over. Call it right before a harmful request."""
        if self.is_held and not self._is_own():
            raise self._refused(
                f"{self._output}: another run took over and continues from the work finished here"
            )

    def _is_own(self) -> bool:
        """Return whether the lease in the store is that of this object. Another run may also have deleted it."""
        return (self._read() or {}).get("holder") == self.holder

    def _keep_renewing(self) -> None:
        while not self._released.wait(RENEWAL_SECONDS):
            with suppress(StoreError):  # a store that stays away ends the run elsewhere
                self.renew()

    def _read(self) -> dict[str, Any] | None:
        """Return the lease, {} for an object that is not a lease, or None."""
        try:
            found = json.loads(bytes(self._store.read(NAME)))
        except StoreNotFound:
            return None
        except ValueError:
            return {}
        is_lease = isinstance(found, dict) and isinstance(found.get("renewed"), float)
        return found if is_lease else {}

    def _write(self, if_absent: bool = False) -> None:
        lease = {
            "holder": self.holder,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "renewed": time.time(),
        }
        data = json.dumps(lease).encode()
        if if_absent:
            put_own(self._store, NAME, data)
        else:
            self._store.put(NAME, data)
