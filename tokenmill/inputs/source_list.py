"""Sources: input files and objects, and a compact list of them."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, overload

from tokenmill.inputs.kinds import Kind
from tokenmill.stores import RandomFile, open_file
from tokenmill.stores.url import shown_url

LEFT_OUT = "left out"


class Source(NamedTuple):
    """One input file or object. Its size and time identify the content, or on a store its size and version.

    path: path as the arguments name it, or a URL.
    split: "validation", LEFT_OUT if an unfinished run read the file and this run does not, or None for a split by hash.
    digest: digest of standard input, which the file `path` holds; None for all other sources.
    version: etag of an object; "" for a file.
    options: settings of the store, as pairs.
    """

    path: str
    size_bytes: int
    mtime_ns: int
    split: str | None = None
    kind: Kind = Kind()
    digest: str | None = None
    version: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Name in plans and manifests: the shown path, or "-" for standard input."""
        return "-" if self.digest is not None else self.shown

    @property
    def is_left_out(self) -> bool:
        """Whether none of the text belongs to the corpus."""
        return self.split == LEFT_OUT

    @property
    def shown(self) -> str:
        """The path, or the URL without credentials."""
        return shown_url(self.path) if self.version else self.path

    def open(self) -> RandomFile:
        """Open the source for reading. An object that has changed raises StoreChanged, now or when it is read."""
        if self.version:
            return open_file(self.path, dict(self.options), self.version, self.size_bytes)
        return open_file(self.path)


class Piece(NamedTuple):
    """The documents of source number `source_index` that begin in its bytes [start, stop)."""

    source_index: int
    start: int
    stop: int


class SourceList(Sequence[Source]):
    """Sources in order, stored as columns: about 80 bytes each instead of 350. `list[i]` builds a Source in 1 µs.

    Forked workers share the columns with the parent, because reading an array changes no reference counts.
    """

    def __init__(self, sources: Iterable[Source] = ()) -> None:
        self._folders: list[str] = []
        self._folder_numbers, self._shared_numbers = array("I"), array("H")
        self._names, self._versions = _Strings(), _Strings()
        self._sizes, self._times = array("q"), array("q")
        # (split, kind, digest, options): a corpus has few distinct values.
        self._shared: list[tuple[Any, Kind, Any, Any]] = []
        for source in sources:
            self.append(source)

    def append(self, source: Source) -> None:
        """Add a source at the end."""
        path, size, mtime_ns, split, kind, digest, version, options = source
        name_start = path.rfind("/") + 1
        if not self._folders or path[:name_start] != self._folders[-1]:
            self._folders.append(path[:name_start])
        shared = split, kind, digest, options
        if shared not in self._shared:
            self._shared.append(shared)
        self._folder_numbers.append(len(self._folders) - 1)
        self._names.append(path[name_start:])
        self._sizes.append(size)
        self._times.append(mtime_ns)
        self._versions.append(version)
        self._shared_numbers.append(self._shared.index(shared))

    def __len__(self) -> int:
        return len(self._sizes)

    @overload
    def __getitem__(self, index: int) -> Source: ...
    @overload
    def __getitem__(self, index: slice) -> list[Source]: ...
    def __getitem__(self, index: int | slice) -> Source | list[Source]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        index = range(len(self))[index]
        split, kind, digest, options = self._shared[self._shared_numbers[index]]
        path = self._folders[self._folder_numbers[index]] + self._names.get(index)
        version = self._versions.get(index)
        return Source(path, self._sizes[index], self._times[index], split, kind, digest, version, options)

    def __iter__(self) -> Iterator[Source]:
        return map(self.__getitem__, range(len(self)))

    def folders(self) -> Iterator[str]:
        """The distinct beginnings of paths before the name, roughly: neighbors share one."""
        return iter(self._folders)

    def starts(self) -> array[int]:
        """The offset of each source if all are concatenated, and last the total size."""
        return array("q", accumulate(self._sizes, initial=0))

    @property
    def kinds(self) -> set[Kind]:
        """The distinct kinds."""
        return {kind for _, kind, *_ in self._shared}

    def left_out(self) -> tuple[int, int]:
        """Number and total bytes of the sources that are left out."""
        if not any(split == LEFT_OUT for split, *_ in self._shared):
            return 0, 0
        sizes = [source.size_bytes for source in self if source.is_left_out]
        return len(sizes), sum(sizes)

    def largest_of(self, kind: Kind) -> int:
        """The index of the largest source of a kind."""
        numbers = {number for number, (_, other, *_) in enumerate(self._shared) if other == kind}
        return max(
            (index for index, number in enumerate(self._shared_numbers) if number in numbers),
            key=self._sizes.__getitem__,
        )


class _Strings:
    """Strings, end to end in one buffer."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._stops = array("q", [0])

    def append(self, text: str) -> None:
        self._bytes += os.fsencode(text)
        self._stops.append(len(self._bytes))

    def get(self, index: int) -> str:
        return os.fsdecode(bytes(self._bytes[self._stops[index] : self._stops[index + 1]]))
