"""Sources: input files and objects, and lists of them."""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import NamedTuple

from tokenmill.inputs.kinds import Kind
from tokenmill.stores import RandomFile, open_file
from tokenmill.stores.url import shown_url


class Source(NamedTuple):
    """One input file or object. Its size and time identify the content, or on a store its size and version.

    path: path as the arguments name it, or a URL.
    split: "validation", or None for a split by hash.
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


class SourceList(list[Source]):
    """Sources in order."""

    def starts(self) -> array[int]:
        """The offset of each source if all are concatenated, and last the total size."""
        return array("q", accumulate((source.size_bytes for source in self), initial=0))

    @property
    def kinds(self) -> set[Kind]:
        """The distinct kinds."""
        return {source.kind for source in self}
