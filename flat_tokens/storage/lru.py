"""A cache of the values that were used last."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")

_lock = threading.Lock()  # one for all caches, so that the child of a fork can renew it


class Lru(Generic[T]):
    """Up to `capacity` values by number. Threads may share it, and a forked child may use its copy."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._values: OrderedDict[int, T] = OrderedDict()

    def get(self, key: int) -> T | None:
        """The value of a key, None if it is absent."""
        with _lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: int, value: T) -> None:
        """Insert or replace a value."""
        with _lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._capacity:
                self._values.popitem(last=False)

    def setdefault(self, key: int, value: T) -> T:
        """The value of a key, which is `value` if it was absent."""
        with _lock:
            found = self._values.setdefault(key, value)
            self._values.move_to_end(key)
            if len(self._values) > self._capacity:
                self._values.popitem(last=False)
            return found

    def pop(self, key: int) -> None:
        """Remove a key, if it is there."""
        with _lock:
            self._values.pop(key, None)


def _renew_lock() -> None:
    """In the child of a fork, another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)
