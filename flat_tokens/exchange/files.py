"""Files of other tools, read in bounded parts. Damage is a DatasetError that names the file."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import LONGEST_NAME
from flat_tokens.errors import ArgumentError, cause, damaged, printable
from flat_tokens.exchange.formats import BLOCK_TOKENS
from flat_tokens.split_writer import Block, Ends
from flat_tokens.storage.file_digest import file_digest
from flat_tokens.storage.zarr_metadata import parse_json
from tokenmill.errors import not_installed

PIECE = 2**16  # ends per read
_DECOMPRESSORS = {"zstd": "zstandard", "gz": "gzip", "bz2": "bz2"}  # modules with open()
MAX_INDEX_BYTES = 2**28  # of a JSON index, which is parsed as a whole
MAX_CHUNK_BYTES = 2**31  # of a chunk that is held in memory
_NO_HASHES: Mapping[str, Any] = MappingProxyType({})
COPY_AGAIN = "Copy or create the file again."
COPY_BOTH = "Copy or create both files again."


class InputFile:
    """A regular file. Raise ArgumentError if there is none."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, printable(str(path))
        if not path.is_file():
            raise ArgumentError(f"{self.name}: {'not a regular file' if path.exists() else 'does not exist'}")
        self.size = path.stat().st_size

    def numbers(self, offset: int, count: int, dtype: Any) -> npt.NDArray[Any]:
        """Return `count` little-endian numbers from byte `offset` on."""
        found = np.fromfile(self.path, np.dtype(dtype).newbyteorder("<"), count, offset=offset)
        if len(found) != count:
            raise damaged(self.name, "truncated while it was read", "Run the command again.")
        return found

    def head(self, count: int) -> bytes:
        """Return the first `count` bytes, or all if there are fewer."""
        return self.numbers(0, min(count, self.size), np.uint8).tobytes()

    def column(self, offset: int, dtype: Any, count: int | None = None) -> Column:
        """Return `count` numbers from byte `offset` on, or all, to be read when they are sliced."""
        size = np.dtype(dtype).itemsize
        if count is None and (self.size - offset) % size:
            what = f"size of the IDs must be a multiple of {size} bytes for {np.dtype(dtype).name}"
            fix = "Pass another --dtype, or copy the file again if it is truncated."
            raise damaged(self.name, f"{what} (got {self.size - offset})", fix)
        return Column(self, offset, (self.size - offset) // size if count is None else count, dtype)


class Column:
    """Numbers of a file, read when they are sliced."""

    def __init__(self, file: InputFile, offset: int, count: int, dtype: Any) -> None:
        self.name, self._file, self._offset = file.name, file, offset
        self._count, self._dtype = count, np.dtype(dtype)
        stop = offset + count * self._dtype.itemsize
        if offset < 0 or count < 0 or stop > file.size:
            what = f"bytes [{offset}, {stop}) are outside the file of {file.size} bytes"
            raise damaged(self.name, what, COPY_BOTH)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, key: slice) -> npt.NDArray[Any]:
        start, stop, _ = key.indices(self._count)
        return self._file.numbers(self._offset + start * self._dtype.itemsize, stop - start, self._dtype)

    def without_first(self) -> Column:
        """Return all but the first number."""
        return Column(self._file, self._offset + self._dtype.itemsize, self._count - 1, self._dtype)


def without_ends(ids: Any) -> Iterator[Block]:
    """Yield the blocks of a file that does not mark documents."""
    for start in range(0, len(ids), BLOCK_TOKENS):
        yield Block(ids[start : start + BLOCK_TOKENS], None)


def with_ends(ids: Any, ends: Any, name: str, what: str = "tokens") -> Iterator[Block]:
    """Yield the blocks of IDs and the ends of their documents, which must not fall and must end with the last ID.

    ids, ends: arrays, or anything that is sliced like one.
    name: the file of the ends. what: the items of `ids` in messages.
    """
    last = 0
    for at in range(0, len(ends), PIECE):
        piece = ends[at : at + PIECE].astype(np.int64)
        before = np.concatenate([[last], piece[:-1]])
        wrong = np.flatnonzero((piece < before) | (piece > len(ids)))
        if len(wrong):
            index = int(wrong[0])
            rule = (
                f"must be in [{before[index]}, {len(ids)}], from the entry before it to the number of {what}"
            )
            raise damaged(name, f"entry {at + index} {rule} (got {piece[index]})", COPY_BOTH)
        yield from pieces(ids, piece, last, int(piece[-1]))
        last = int(piece[-1])
    if last != len(ids):
        rule = f"last entry must be {len(ids)}, the number of {what} (got {last})"
        raise damaged(name, rule, COPY_BOTH)


def pieces(ids: Any, ends: Ends, start: int, stop: int) -> Iterator[Block]:
    """Yield ids[start:stop] in blocks. ends: in [start, stop], not falling."""
    done = 0
    for first in range(start, max(stop, start + 1), BLOCK_TOKENS):
        last = min(first + BLOCK_TOKENS, stop)
        count = int(np.searchsorted(ends, last, side="right"))
        yield Block(ids[first:last], ends[done:count] - first)
        done = count


def read_chunk(
    path: Path, size: Any, compression: Any = None, hashes: Mapping[str, Any] = _NO_HASHES
) -> memoryview:
    """Return the bytes of a file of mds or litdata, decompressed, which must be as many as its index states.

    size: the bytes by the index, of any type. compression: None or a name such as "zstd" or "zstd:7".
    hashes: of the stored bytes, by name. Unknown hashes are ignored.
    """
    file = InputFile(path)
    if type(size) is not int or not 0 <= size <= MAX_CHUNK_BYTES:
        what = f"its size in the index must be in [0, {MAX_CHUNK_BYTES}] (got {printable(repr(size), 40)})"
        raise damaged(file.name, what, COPY_AGAIN)
    data = file.head(MAX_CHUNK_BYTES)
    for kind, expected in hashes.items():
        if kind == "xxh64":
            got = file_digest((data,))
        elif kind in hashlib.algorithms_guaranteed and not kind.startswith("shake"):
            got = hashlib.new(kind, data).hexdigest()
        else:
            continue
        if got != expected:
            what = f"{kind} must be {printable(str(expected))} by the index (got {got})"
            raise damaged(file.name, what, COPY_AGAIN)
    if compression is not None:
        kind = str(compression).partition(":")[0]
        if kind not in _DECOMPRESSORS:
            got = printable(str(compression), 40)
            what = f"compression must be one of {', '.join(_DECOMPRESSORS)} (got {got})"
            raise damaged(file.name, what, "Write it again with one of these.")
        try:
            with import_module(_DECOMPRESSORS[kind]).open(io.BytesIO(data)) as stream:
                data = stream.read(size + 1)
        except ImportError:
            raise ArgumentError(not_installed(file.name, _DECOMPRESSORS[kind], "inputs")) from None
        except Exception as error:  # each library has its own
            raise damaged(file.name, f"damaged ({cause(error, 120)})", COPY_AGAIN) from None
    if len(data) != size:
        raise damaged(file.name, f"must have {size} bytes by its index (got {len(data)} or more)", COPY_AGAIN)
    return memoryview(data)


def read_index(path: Path) -> dict[str, Any]:
    """Return the object in a JSON index."""
    file = InputFile(path)
    if file.size > MAX_INDEX_BYTES:
        what = f"an index must have at most {MAX_INDEX_BYTES} bytes (got {file.size})"
        raise damaged(file.name, what, COPY_AGAIN)
    return parse_json(file.head(file.size), path, COPY_AGAIN)


def inside(folder: Path, name: Any) -> Path:
    """Return the path of a file in a folder, by a name from an index. Raise DatasetError if it leads out of it."""
    parts = name.split("/") if isinstance(name, str) else [""]
    sizes = [len(part.encode(errors="surrogatepass")) for part in parts]
    if "" in parts or ".." in parts or "\0" in str(name) or max(sizes) > LONGEST_NAME:
        what = f"file names in the index must stay within this folder (got {printable(repr(name), 80)})"
        raise damaged(folder, what, COPY_AGAIN)
    return folder / str(name)


def item_bounds(data: memoryview, item_count: Any, name: str) -> npt.NDArray[np.int64]:
    """Return where the items of a chunk of mds or litdata start and end, int64[items + 1], after the table itself.

    The chunk is uint32 count, uint32[count + 1] bytes, ..., items. item_count: the count by the index, of any type.
    """
    count = int(np.frombuffer(data, "<u4", 1)[0]) if len(data) >= 4 else -1
    if count != item_count or len(data) < 4 * (count + 2):
        what = f"must have {printable(repr(item_count), 40)} items by the index (got {count} in the header)"
        raise damaged(name, what, COPY_AGAIN)
    bounds = np.frombuffer(data, "<u4", count + 1, 4).astype(np.int64)
    if bounds[0] < 4 * (count + 2) or bounds[-1] != len(data) or (np.diff(bounds) < 0).any():
        what = f"items must rise to byte {len(data)} (got {bounds[0]} to {bounds[-1]})"
        raise damaged(name, what, COPY_AGAIN)
    return bounds
