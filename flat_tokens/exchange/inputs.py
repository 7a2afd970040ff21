"""Files of other tools, read a bounded part at a time: a path or URL that somebody names, links followed."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import ArgumentError, DatasetError, damaged, printable
from flat_tokens.exchange.blocks import BLOCK_TOKENS, Block, Ends
from tokenmill import stores
from tokenmill.stores import NO_OPTIONS, StorageOptions

PIECE = 2**16  # entries of an index that are held at once
LONGEST_NAME_BYTES = 255  # of a file, on the file systems there are
LARGEST_INDEX_BYTES = 2**28  # of one that is JSON and parsed as a whole
COPY_AGAIN = "Copy or create the file again."
COPY_BOTH = "Copy or create both files again."


class ReadOptions(NamedTuple):
    """What a person says of the input. dtype: of the ids where the files do not tell; column: of records with several;
    storage: of the store; notes: what the reader wants said at the end."""

    dtype: str | None
    column: str | None
    storage: StorageOptions
    notes: list[str]


def truncated(name: str, expected: object, size: int) -> DatasetError:
    """Return the error for a file or its content that has another size than its index or header states."""
    what = f"must have {printable(repr(expected), 40)} bytes by its index or header (got {size})"
    return damaged(name, what, COPY_AGAIN)


class InputFile:
    """An open file; a context. ArgumentError if there is none."""

    def __init__(self, place: str, storage: StorageOptions = NO_OPTIONS) -> None:
        self.name = printable(place)
        if not stores.is_url(place):
            try:
                is_file = stat.S_ISREG(os.stat(place).st_mode)  # noqa: PTH116 - a pipe is not waited for
            except (FileNotFoundError, NotADirectoryError, UnicodeEncodeError):
                raise ArgumentError(f"{self.name}: does not exist") from None
            if not is_file:
                raise ArgumentError(f"{self.name}: not a regular file")
        self._file = stores.open_file(place, storage)
        self.size = self._file.size

    def __enter__(self) -> InputFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def numbers(self, offset: int, count: int, dtype: Any) -> npt.NDArray[Any]:
        """`count` numbers from byte `offset` on. DatasetError if the file ends before."""
        dtype = np.dtype(dtype).newbyteorder("<")
        self.check_range(offset, count * dtype.itemsize)
        found = np.empty(count, dtype)
        view = found.view(np.uint8).data
        done = 0
        while done < len(view):
            step = self._file.readinto_at(offset + done, view[done:])
            if not step:
                raise damaged(self.name, "truncated while it was read", "Run the command again.")
            done += step
        return found

    def bytes(self, offset: int, count: int) -> memoryview:
        """`count` bytes from `offset` on. DatasetError if the file ends before."""
        return self.numbers(offset, count, np.uint8).data

    def check_range(self, offset: int, count: int) -> None:
        """Raise DatasetError unless the file has these bytes."""
        if offset < 0 or count < 0 or offset + count > self.size:
            what = f"bytes [{offset}, {offset + count}) are outside the file of {self.size} bytes"
            raise damaged(self.name, what, COPY_BOTH)

    def ids(self, offset: int, count: int, dtype: Any) -> Iterator[npt.NDArray[Any]]:
        """The same numbers, at most BLOCK_TOKENS at a time."""
        size = np.dtype(dtype).itemsize
        self.check_range(offset, count * size)
        for start in range(0, count, BLOCK_TOKENS):
            yield self.numbers(offset + start * size, min(BLOCK_TOKENS, count - start), dtype)

    def all_ids(self, offset: int, dtype: Any) -> Iterator[npt.NDArray[Any]]:
        """The numbers from byte `offset` to the end of the file; DatasetError for a broken last one."""
        size = np.dtype(dtype).itemsize
        if (self.size - offset) % size:
            what = f"size of the IDs must be a multiple of {size} bytes for {np.dtype(dtype).name}"
            fix = "Pass another --dtype, or copy the file again if it is truncated."
            raise damaged(self.name, f"{what} (got {self.size - offset})", fix)
        return self.ids(offset, (self.size - offset) // size, dtype)


class EndsColumn:
    """The ends of documents that a file lists, read in order: entries [first, first + count) from byte `offset` on.
    They must not fall and end with the last token."""

    def __init__(self, file: InputFile, offset: int, count: int, dtype: Any) -> None:
        file.check_range(offset, count * np.dtype(dtype).itemsize)
        self._file, self._offset, self._dtype = file, offset, np.dtype(dtype)
        self._count, self._next = count, 0
        self._piece: Ends = np.empty(0, np.int64)
        self._last = 0

    def up_to(self, most: int) -> Iterator[Ends]:
        """The next entries that are at most `most`, some at a time."""
        while self._fill():
            cut = int(np.searchsorted(self._piece, most, side="right"))
            if cut:
                yield self._piece[:cut]
                self._piece = self._piece[cut:]
            if len(self._piece):
                return

    def check_finished(self, total: int, what: str) -> None:
        """Raise DatasetError unless all were taken, and the last was `total`."""
        if self._fill():
            at = self._next - len(self._piece)
            outside = f"entry {at} must be at most {total}, the number of {what} (got {self._piece[0]})"
            raise damaged(self._file.name, outside, COPY_BOTH)
        if self._last != total:
            differs = f"last entry must be {total}, the number of {what} (got {self._last})"
            raise damaged(self._file.name, differs, COPY_BOTH)

    def _fill(self) -> bool:
        """Whether there is one more; reads the next piece if need be."""
        if len(self._piece) == 0 and self._next < self._count:
            count = min(PIECE, self._count - self._next)
            offset = self._offset + self._next * self._dtype.itemsize
            piece = self._file.numbers(offset, count, self._dtype).astype(np.int64)
            before_each = np.concatenate([np.array([self._last], np.int64), piece[:-1]])
            falls = np.flatnonzero(piece < before_each)  # compared, since a difference may wrap
            if len(falls):
                at = int(falls[0])
                what = f"must be at least {before_each[at]}, the entry before it (got {piece[at]})"
                raise damaged(self._file.name, f"entry {self._next + at} {what}", COPY_AGAIN)
            self._piece, self._last = piece, int(piece[-1])
            self._next += count
        return len(self._piece) > 0


def with_ends(ids: Iterator[npt.NDArray[Any]], ends: EndsColumn) -> Iterator[Block]:
    """Blocks of a file of ids and its list of ends."""
    start = 0
    for part in ids:
        at = 0
        for found in ends.up_to(start + len(part)):
            stop = int(found[-1]) - start
            yield Block(part[at:stop], found - (start + at))
            at = stop
        yield Block(part[at:], np.empty(0, np.int64))
        start += len(part)
    if start == 0:  # no token; there may be empty documents
        for found in ends.up_to(0):
            yield Block(np.empty(0, np.uint32), found)
    ends.check_finished(start, "tokens")


def in_blocks(ids: npt.NDArray[Any], ends: Ends) -> Iterator[Block]:
    """Ids in memory and the ends of their documents, at most BLOCK_TOKENS at a time."""
    taken = 0
    for start in range(0, max(len(ids), 1), BLOCK_TOKENS):
        part = ids[start : start + BLOCK_TOKENS]
        stop = int(np.searchsorted(ends, start + len(part), side="right"))
        yield Block(part, ends[taken:stop] - start)
        taken = stop


def without_ends(ids: Iterator[npt.NDArray[Any]]) -> Iterator[Block]:
    """Blocks of a file that says nothing of documents."""
    for part in ids:
        yield Block(part, None)


def parse_index(file: InputFile) -> dict[str, Any]:
    """An index that is JSON. DatasetError if it is none, or too long to be one."""
    if file.size > LARGEST_INDEX_BYTES:
        what = f"an index must have at most {LARGEST_INDEX_BYTES} bytes (got {file.size})"
        raise damaged(file.name, what, COPY_AGAIN)
    try:
        value = json.loads(bytes(file.bytes(0, file.size)))
    except (ValueError, RecursionError) as error:
        raise damaged(file.name, f"not valid JSON ({printable(str(error), 80)})", COPY_AGAIN) from None
    if not isinstance(value, dict):
        raise damaged(file.name, f"must be a JSON object (got {type(value).__name__})", COPY_AGAIN)
    return value


def joined(folder: str, name: Any) -> str:
    """The place of a file in a folder or below a URL, by a name that an index gives; DatasetError for one that leads
    out of it."""
    parts = name.split("/") if isinstance(name, str) else [""]
    sizes = [len(part.encode(errors="surrogatepass")) for part in parts]
    if "" in parts or ".." in parts or "\0" in str(name) or max(sizes) > LONGEST_NAME_BYTES:
        what = f"file names in the index must stay within this folder (got {printable(repr(name), 80)})"
        raise damaged(folder, what, COPY_AGAIN)
    head, mark, query = folder.partition("?") if stores.is_url(folder) else (folder, "", "")
    return f"{head.rstrip('/')}/{name}{mark}{query}"


def exists(place: str, storage: StorageOptions) -> bool:
    """Whether there is such a file."""
    if not stores.is_url(place):
        return os.path.isfile(place)  # noqa: PTH113
    folder, key = stores.split_key(place)
    try:
        stores.open_store(folder, storage).head(key)
    except stores.StoreNotFound:
        return False
    return True


def is_folder(place: str, suffix: str) -> bool:
    """Whether it is a folder of files, not the one with this suffix itself."""
    return not place.partition("?")[0].endswith(suffix) if stores.is_url(place) else os.path.isdir(place)  # noqa: PTH112
