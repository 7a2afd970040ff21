"""Many sources in little memory: a million take some 100 MB as columns, 370 MB as tuples of Python objects.

And workers that are forked share columns with the parent for good, since nothing writes to them: an object's count of
references lies beside its value, and so who only looks at objects copies them.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from tokenmill.inputs.kinds import Kind
from tokenmill.stores import RandomFile, open_file
from tokenmill.stores.url import shown_url

_FAR = 2**63
_ENCODING, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()  # as os.fsencode has it


LEFT_OUT = "left out"  # as a split: the file was among the inputs of an unfinished run and is not any more


class Source(NamedTuple):
    """One input file or object. path: a path as the arguments name it, or a URL; split: "validation", or None where the
    hash decides. version: of an object in a store; "" of a local file, of which times and number say if it changed.
    options: settings of the store, as pairs.

    digest: of standard input, whose path is that of the file it was put in; else None. changed_ns, inode: the time of
    the last change, of the name or rights too, and the number of the file: what no tool sets back (0: not known).
    """

    path: str
    size_bytes: int
    mtime_ns: int
    split: str | None = None
    kind: Kind = Kind()
    digest: str | None = None
    changed_ns: int = 0
    inode: int = 0
    version: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """What plans and manifests call it: "-" for standard input."""
        return "-" if self.digest is not None else self.shown

    @property
    def is_left_out(self) -> bool:
        """Whether none of the file's text belongs to the corpus."""
        return self.split == LEFT_OUT

    @property
    def shown(self) -> str:
        """What people call it: the path, or the URL without credentials."""
        return shown_url(self.path) if self.version else self.path

    def open(self) -> RandomFile:
        """Its bytes at any place. StoreChanged or StoreNotFound, now or later, if an object is not as planned."""
        if self.version:
            return open_file(self.path, dict(self.options), self.version, self.size_bytes)
        return open_file(self.path)


class Piece(NamedTuple):
    """Of source number `source_index`, the documents whose first byte lies in [start, stop)."""

    source_index: int
    start: int
    stop: int


_Other = tuple[str | None, Kind, str | None, tuple[tuple[str, str], ...]]


class SourceList(Sequence[Source]):
    """Sources in order, each made anew when it is asked for: 1 µs. It only grows, by `append`."""

    def __init__(self, sources: Iterable[Source] = ()) -> None:
        self._folders, self._names = _Texts(), _Texts()
        self._folder_firsts = array("q")  # the first source of each folder
        # (start, stop, folder): where the last source lies that was added or asked for, and mostly its neighbours.
        self._near = 0, 0, ""
        self._sizes, self._modified, self._changed = array("q"), array("q"), array("q")
        self._inodes = array("Q")
        self._versions = _Texts()
        # All else of a source is one of a few: split, kind, of standard input the digest, options of its store.
        self._others: list[_Other] = []
        self._other_numbers = array("H")
        # Times, modified and changed, that 64 bits of nanoseconds do not reach: file systems know years beyond 2262.
        self._far: dict[int, tuple[int, int]] = {}
        for source in sources:
            self.append(source)

    def append(self, source: Source) -> None:
        """One more."""
        path, size, modified, split, kind, digest, changed, inode, version, options = source
        name_at = path.rfind("/") + 1
        folder, number = path[:name_at], len(self._sizes)
        start, stop, near = self._near
        if folder != near or stop != number or not number:
            start = number
            self._folders.append(folder)
            self._folder_firsts.append(number)
        self._near = start, number + 1, folder
        self._names.append(path[name_at:])
        self._sizes.append(size)
        if not -_FAR < modified < _FAR or not -_FAR < changed < _FAR:
            self._far[number] = modified, changed
            modified = changed = 0
        self._modified.append(modified)
        self._changed.append(changed)
        self._inodes.append(inode)
        self._versions.append(version)
        other = split, kind, digest, options
        if other not in self._others:
            self._others.append(other)
        self._other_numbers.append(self._others.index(other))

    def __len__(self) -> int:
        return len(self._sizes)

    @overload
    def __getitem__(self, index: int) -> Source: ...
    @overload
    def __getitem__(self, index: slice) -> list[Source]: ...
    def __getitem__(self, index: int | slice) -> Source | list[Source]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        start, stop, folder = self._near
        if not start <= index < stop:
            start, stop, folder = self._near = self._folder_of(index)
        split, kind, digest, options = self._others[self._other_numbers[index]]
        modified, changed = self._modified[index], self._changed[index]
        if self._far:
            modified, changed = self._far.get(index, (modified, changed))
        path = folder + self._names.get(index)
        inode, version = self._inodes[index], self._versions.get(index)
        return Source(
            path, self._sizes[index], modified, split, kind, digest, changed, inode, version, options
        )

    def is_remote(self, index: int) -> bool:
        """Whether a source is an object of a store, whose version stands for its bytes."""
        return self._versions.length(index) > 0

    def _folder_of(self, index: int) -> tuple[int, int, str]:
        if not 0 <= index < len(self):
            raise IndexError(f"source {index} of {len(self)}")
        number = bisect_right(self._folder_firsts, index)
        stop = self._folder_firsts[number] if number < len(self._folder_firsts) else len(self)
        return self._folder_firsts[number - 1], stop, self._folders.get(number - 1)

    def folders(self) -> Iterator[str]:
        """What paths have in front of the name, once for neighbours that share it."""
        return map(self._folders.get, range(len(self._folder_firsts)))

    def __iter__(self) -> Iterator[Source]:
        return map(self.__getitem__, range(len(self)))

    def starts(self) -> array[int]:
        """Where each source begins if they lie end to end, and at last where the last one ends."""
        return array("q", accumulate(self._sizes, initial=0))

    def are_objects(self) -> NDArray[np.bool_]:
        """Whether each source is an object of a store."""
        return np.diff(np.frombuffer(self._versions.stops, np.int64)) > 0

    def by_kind(self) -> dict[Kind, tuple[int, int]]:
        """How many sources of each kind there are, and their bytes together."""
        totals = [[0, 0] for _ in self._others]
        for number, size in zip(self._other_numbers, self._sizes, strict=True):
            total = totals[number]
            total[0] += 1
            total[1] += size
        found: dict[Kind, tuple[int, int]] = {}
        for (_, kind, *_), (count, size) in zip(self._others, totals, strict=True):
            before = found.get(kind, (0, 0))
            found[kind] = before[0] + count, before[1] + size
        return found

    def left_out(self) -> tuple[int, int]:
        """How many sources are left out, and their bytes together."""
        if not any(split == LEFT_OUT for split, *_ in self._others):
            return 0, 0
        sizes = [source.size_bytes for source in self if source.is_left_out]
        return len(sizes), sum(sizes)

    def largest_of(self, kind: Kind) -> int:
        """The number of the largest source of a kind that there is; the first of several."""
        numbers = {number for number, (_, other_kind, *_) in enumerate(self._others) if other_kind == kind}
        own = (index for index, number in enumerate(self._other_numbers) if number in numbers)
        return max(own, key=self._sizes.__getitem__)

    @property
    def kinds(self) -> set[Kind]:
        """The kinds there are."""
        return {kind for _, kind, *_ in self._others}


class _Texts:
    """Parts of paths, end to end."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.stops = array("q", [0])

    def append(self, text: str) -> None:
        self._bytes += text.encode(_ENCODING, _ERRORS)
        self.stops.append(len(self._bytes))

    def length(self, index: int) -> int:
        return self.stops[index + 1] - self.stops[index]

    def get(self, index: int) -> str:
        return self._bytes[self.stops[index] : self.stops[index + 1]].decode(_ENCODING, _ERRORS)
