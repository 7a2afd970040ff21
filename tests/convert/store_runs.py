"""Conversions to a store whose driver is killed, or fails, at any of its requests; and what they leave there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from stopped_runs import options

import convert.workdir.store
from convert import convert as run_conversion
from convert.cli.summary import Summary
from convert.workdir.store import StoreWorkDir
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.stores import Bytes, Entry, Store, StoreError, open_store
from tokenmill.stores.store import Blocks

MORE: dict[str, Any] = {"zarr_format": 3, "chunk_tokens": 64}


class Killed(BaseException):
    """The driver is gone: nothing of it does anything from then on."""


class Harm:
    """What happens to a driver at one of its requests, counted from 0.

    kind: "before" or "after" the request the driver is killed, or the request "fails" or is "lost" (done, but told as
    failed). requests: what it asked for, as "put journal/00000001".
    """

    def __init__(self, at: int = -1, kind: str = "before", of: tuple[str, ...] = ("put", "delete")) -> None:
        self.at, self.kind, self.of = at, kind, of
        self.requests: list[str] = []
        self.is_dead = False

    @contextmanager
    def around(self, request: str) -> Iterator[None]:
        """A request of the driver or, since they share its process, of a worker."""
        if self.is_dead:
            raise Killed
        if not request.startswith(self.of):
            yield
            return
        number = len(self.requests)
        self.requests.append(request)
        if number == self.at and self.kind in ("before", "fails"):
            self._strike()
        yield
        if number == self.at:
            self._strike()

    def _strike(self) -> None:
        if self.kind in ("fails", "lost"):
            raise StoreError("connection failed. Check the network.")
        self.is_dead = True
        raise Killed


class HarmedStore:
    """A store as a driver sees it that is harmed."""

    is_local = False

    def __init__(self, store: Store, harm: Harm) -> None:
        self._store, self._harm = store, harm
        self.url = store.url

    @property
    def path(self) -> Path:
        return self._store.path

    def list(self, prefix: str = "") -> Iterator[Entry]:
        with self._harm.around(f"list {prefix}"):
            found = list(self._store.list(prefix))
        yield from found

    def head(self, key: str) -> Entry:
        with self._harm.around(f"head {key}"):
            return self._store.head(key)

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        with self._harm.around(f"read {key}"):
            return self._store.read(key, start, stop, version)

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]], version: str = "") -> Blocks:
        with self._harm.around(f"read {key}"):
            return self._store.read_ranges(key, ranges, version)

    def read_begin(self, key: str, count: int) -> tuple[Bytes, Entry]:
        with self._harm.around(f"read {key}"):
            return self._store.read_begin(key, count)

    def read_end(self, key: str, count: int) -> tuple[Bytes, Entry]:
        with self._harm.around(f"read {key}"):
            return self._store.read_end(key, count)

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        with self._harm.around(f"put {key}"):
            return self._store.put(key, data, if_absent)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:  # a server may come to some of them only
            with self._harm.around(f"delete {key}"):
                self._store.delete([key])


class Place:
    """An output on a store and the machines it is worked at from."""

    def __init__(self, url: str, storage_options: dict[str, str], folder: Path) -> None:
        self.url, self.options, self._folder = url, storage_options, folder
        self.target = open_store(url, storage_options)
        self.partial = open_store(f"{url}.partial", storage_options)
        self._machines = 0

    def run(self, harm: Harm | None = None, same_machine: bool = False, **more: Any) -> Summary:
        """A conversion of en.txt, on a machine that knows nothing of the others unless it is the same."""
        self._machines += not same_machine or not self._machines
        home = self._folder / f"machine-{self._machines}"
        home.mkdir(exist_ok=True)
        given = {"storage_options": self.options, "zarr_format": 3, "output": self.url, **more}
        workdirs: list[StoreWorkDir] = []

        class Known(StoreWorkDir):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                workdirs.append(self)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(home))
            patch.setattr(convert.workdir.store, "StoreWorkDir", Known)
            if harm is not None:
                patch.setattr(
                    convert.workdir.store,
                    "open_store",
                    lambda *arguments: HarmedStore(open_store(*arguments), harm),
                )
            try:
                summary = run_conversion(options(**given), InlineEngine())
            finally:  # what ends with a process
                for own in workdirs:
                    own._lease._released.set()
                if harm is None or not harm.is_dead:
                    assert not list(home.iterdir()), "something is left on the machine"
        return summary

    def dataset(self) -> dict[str, bytes]:
        """The objects of the output."""
        return {entry.key: bytes(self.target.read(entry.key)) for entry in self.target.list()}

    def debris(self) -> list[str]:
        """What lies beside the output."""
        return [entry.key for entry in self.partial.list()]


def in_memory(folder: Path) -> Place:
    """An output in the memory of this process."""
    return Place(f"memory://{uuid4().hex}/deep/out", {}, folder)


def whole(place: Place, expected: dict[str, bytes]) -> bool:
    """Whether the output is what it must be, and nothing lies beside it."""
    assert place.debris() == []
    return place.dataset() == expected
