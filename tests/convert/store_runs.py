"""Conversions of en.txt to a store, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock
from uuid import uuid4

from inline_engine import InlineEngine
from runs import convert, stopping_at

from convert import Summary
from tokenmill.stores import Store, open_store

OPTIONS: dict[str, Any] = {
    "zarr_format": 3,
    "chunk_tokens": 64,
    "text_chunk_bytes": 200,
    "validation_fraction": 0.2,
}


class Output:
    """An output on a store, by default in the memory of this process. target, partial: its two folders."""

    def __init__(self, url: str = "", storage_options: dict[str, str] | None = None) -> None:
        self.url = url or f"memory://{uuid4().hex}/deep/out"
        self.options = storage_options or {}
        self.target = open_store(self.url, self.options)
        self.partial = open_store(f"{self.url}.partial", self.options)

    def run(self, executor: Any = None, **more: Any) -> Summary:
        given = OPTIONS | {"output": self.url, "storage_options": self.options}
        return convert(executor or InlineEngine(), **given | more)  # which does not pickle stores

    def stop(self, **more: Any) -> None:
        """Begin a run and interrupt it when about half of it is done."""
        try:
            self.run(stopping_at(12), **more)
        except KeyboardInterrupt:
            return
        raise AssertionError("the run came to its end")

    def objects(self) -> dict[str, bytes]:
        """The objects of the output. Nothing may be left next to it."""
        assert self.left() == []
        return {entry.key: bytes(self.target.read(entry.key)) for entry in self.target.list()}

    def left(self) -> list[str]:
        """The keys next to the output."""
        return [entry.key for entry in self.partial.list()]


@contextmanager
def expired_leases() -> Iterator[None]:
    """A killed run is taken over at once, and each batch of results is stored at once."""
    with (
        mock.patch("tokenmill.stores.lease.TAKEN_OVER_SECONDS", 0.0),
        mock.patch("tokenmill.stores.lease.WATCHED_SECONDS", 0.0),
        mock.patch("convert.workdir.journal.PUT_SECONDS", 0.0),
    ):
        yield


class Killed(BaseException):
    """The driver is gone. None of its requests happens from now on."""


class HarmedStore:
    """A store with faults. ask: called with the name of each request and a function that performs it."""

    def __init__(self, store: Store, ask: Callable[[str, Callable[[], Any]], Any]) -> None:
        self._store, self._ask = store, ask

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def request(*arguments: Any, **named: Any) -> Any:
            if name == "delete":  # a server may delete only some of the objects
                return [self._ask(f"delete {key}", lambda: found([key])) for key in arguments[0]]  # noqa: B023
            result = self._ask(" ".join([name, *map(str, arguments[:1])]), lambda: found(*arguments, **named))
            return iter(list(result)) if name == "list" else result

        return request
