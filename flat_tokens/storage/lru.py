"""A cache of the values that were used last."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class Lru(Generic[T]):
    """Up to `capacity` values by number. Threads may share it, and a forked child may use its copy: each step on the
    dictionary is atomic, so there is no lock."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._values: OrderedDict[int, T] = OrderedDict()

    def get(self, key: int) -> T | None:
        """The value of a key, None if it is absent."""
        try:
            self._values.move_to_end(key)
        except KeyError:
            return None
        return self._values.get(key)

    def put(self, key: int, value: T) -> None:
        """Insert or replace a value."""
        self._values[key] = value
        self._shrink()

    def setdefault(self, key: int, value: T) -> T:
        """The value of a key, which is `value` if it was absent."""
        found = self._values.setdefault(key, value)
        self._shrink()
        return found

    def pop(self, key: int) -> None:
        """Remove a key, if it is there."""
        self._values.pop(key, None)

    def _shrink(self) -> None:
        while len(self._values) > self._capacity:
            with suppress(KeyError):
                self._values.popitem(last=False)
