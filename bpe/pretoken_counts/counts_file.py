"""Counts files: sorted pretokens and their counts as an .npz file, which numpy alone can read.

    with np.load("corpus.counts") as file:
        header = json.loads(file["header"].tobytes())
        pretoken_bytes, lengths, counts = file["pretoken_bytes"], file["lengths"], file["counts"]

The arrays are stored without compression. `pretoken_bytes` has the pretokens end to end, which ascend as byte strings
and do not repeat. `lengths` and `counts` have the narrowest unsigned type that holds their values. The header is the
JSON object of `CountsFacts.to_json` with more keys: "format", "distinct" and "total" (numbers of pretokens and of their
occurrences), and "longest" (bytes of the longest pretoken). Each array has the CRC-32 of its zip member.

Files are written and read in blocks, so memory does not depend on their size.
"""

from __future__ import annotations

import errno
import io
import json
import operator
import os
import shutil
import stat
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, BinaryIO, Final, NoReturn

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bpe.errors import BadCounts, BadTokenizer, EnvironmentFailure, MissingInput, printable, system_failure
from bpe.output_file import open_output_file
from bpe.pretoken_counts.count_sums import check_total, exact_sum
from bpe.pretoken_counts.counts_facts import Arrays, CountsFacts, whole
from tokenmill.inputs.blocks import FileRange, StreamFile
from tokenmill.stores import NO_OPTIONS, StorageOptions, is_url, open_file, shown_url

FORMAT: Final = "tokenmill counts 2"
# Small, so that merging many files takes little memory: about 50 MB for 64 files.
BLOCK_PRETOKENS: Final = 1 << 14
BLOCK_BYTES: Final = 1 << 18
_DOWNLOAD_BYTES: Final = 8 << 20
_COPY_BYTES: Final = 1 << 16  # small, so that malloc returns the memory
# What zipfile and numpy raise for damaged files.
_DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    RuntimeError,  # includes NotImplementedError and RecursionError
    OverflowError,
    BadTokenizer,
)


def cut_in_blocks(arrays: Arrays) -> Iterator[Arrays]:
    """Yield views of the counts in blocks of at most BLOCK_PRETOKENS and BLOCK_BYTES, or of one longer pretoken."""
    pretoken_bytes, ends, counts = arrays
    for first, stop in _blocks_of(ends):
        start = int(ends[first - 1]) if first else 0
        text = pretoken_bytes[start : int(ends[stop - 1])]
        yield text, ends[first:stop] - np.uint64(start), counts[first:stop]


def _blocks_of(ends: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
    """Yield the pretokens [first, stop) of each block."""
    first = 0
    while first < len(ends):
        start = ends[first - 1] if first else np.uint64(0)
        fitting = int(np.searchsorted(ends, start + np.uint64(BLOCK_BYTES), "right"))
        stop = min(max(fitting, first + 1), first + BLOCK_PRETOKENS)
        yield first, stop
        first = stop


class CountsFile:
    """A counts file. The constructor reads and checks the header; `blocks` reads and checks the rest.

    distinct: number of distinct pretokens.
    total: number of occurrences.
    pretoken_bytes: sum of the lengths of the distinct pretokens.
    """

    def __init__(self, path: str | os.PathLike[str], storage_options: StorageOptions = NO_OPTIONS) -> None:
        """Open a counts file. Objects of a store are copied to a temporary file.

        Raise MissingInput if the file does not exist, BadCounts if it is damaged, and EnvironmentFailure if it cannot
        be read.
        """
        self.path = os.fspath(path)
        self._copy = None
        if is_url(self.path):
            self._copy = _downloaded(self.path, storage_options)
            weakref.finalize(self, self._copy.close)
        with self._archive() as archive:
            member, size, _ = _column(archive, "header")
            header = json.loads(member.read(size), parse_constant=_no_number)
            if header.get("format") != FORMAT:
                raise BadCounts(
                    f"{self.shown}: unsupported layout (got {printable(str(header.get('format')))[:50]}, this "
                    f"tokenmill reads {FORMAT}). Update tokenmill, or count again."
                )
            self.facts = CountsFacts.from_json(header)
            self.distinct, self._longest = whole(header["distinct"]), whole(header["longest"])
            self.total = whole(header["total"], below=1 << 128)  # check_total reports 2^63 or more
            self.pretoken_bytes = _column(archive, "pretoken_bytes")[1]
            if self.facts.pretokenizer is not None:
                self.facts.pretokenizer.checked()
        check_total(self.total, self.shown)

    def __len__(self) -> int:
        return self.distinct

    @property
    def shown(self) -> str:
        """Return the path, or the URL without credentials."""
        return shown_url(self.path)

    def largest_block_bytes(self) -> int:
        """Return the memory that the largest block takes, or a little more."""
        text_bytes = min(self.pretoken_bytes, max(BLOCK_BYTES, self._longest))
        return text_bytes + 32 * min(self.distinct, BLOCK_PRETOKENS)

    def blocks(self) -> Iterator[Arrays]:
        """Yield (pretoken bytes, ends, counts) of each block, ascending. Raise BadCounts if the file is damaged."""
        total, last = 0, b""
        with self._archive() as archive:
            text, text_bytes, _ = _column(archive, "pretoken_bytes")
            columns = [_column(archive, name) for name in ("lengths", "counts")]
            if {count for _, count, _ in columns} != {self.distinct}:
                raise ValueError("wrong number of pretokens")
            for start in range(0, self.distinct, BLOCK_PRETOKENS):
                size = min(BLOCK_PRETOKENS, self.distinct - start)
                lengths, counts = (
                    np.frombuffer(_read(member, size * dtype.itemsize), dtype).astype(np.uint64)
                    for member, _, dtype in columns
                )
                if not lengths.all() or not counts.all():
                    raise ValueError("length or count of 0")
                if int(lengths.max()) > min(text_bytes, self._longest):  # before sums that could overflow
                    raise ValueError("pretoken longer than the header says")
                ends = np.cumsum(lengths, dtype=np.uint64)
                total += exact_sum(counts)
                for first, stop in _blocks_of(ends):
                    block_ends = ends[first:stop] - (ends[first - 1] if first else np.uint64(0))
                    pretokens = _read(text, int(block_ends[-1]))
                    last = _last_ascending(pretokens, block_ends.tolist(), last)
                    text_bytes -= len(pretokens)
                    yield np.frombuffer(pretokens, np.uint8), block_ends, counts[first:stop]
            if text_bytes or total != self.total:
                raise ValueError("sums differ from the header")

    @contextmanager
    def _archive(self) -> Iterator[zipfile.ZipFile]:
        """Open the file. Raise BadCounts if reading it fails."""
        try:
            with ExitStack() as stack:
                file = self._copy or stack.enter_context(Path(self.path).open("rb"))
                if not zipfile.is_zipfile(file):
                    raise BadCounts(f"{self.shown}: damaged, or not a counts file of tokenmill count")
                yield stack.enter_context(zipfile.ZipFile(file))
        except (FileNotFoundError, IsADirectoryError) as error:
            raise MissingInput(f"{self.path}: {error.strerror}") from None
        except (OSError, *_DAMAGE) as error:
            if isinstance(error, BadCounts):
                raise
            if isinstance(error, OSError) and error.errno != errno.EINVAL:  # zipfile seeks to damaged offsets
                raise system_failure(self.shown, error) from error
            what = printable(str(error))[:100]
            raise BadCounts(f"{self.shown}: damaged counts file ({what}). Count its texts again.") from None


def _downloaded(url: str, options: StorageOptions) -> IO[bytes]:
    try:
        with open_file(url, options) as file:
            copy = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the CountsFile
            shutil.copyfileobj(StreamFile(FileRange(file, url, 0, file.size)), copy, _DOWNLOAD_BYTES)
    except OSError as error:
        raise system_failure(shown_url(url), error) from error
    return copy


def _column(archive: zipfile.ZipFile, name: str) -> tuple[IO[bytes], int, np.dtype[Any]]:
    """Return (an array of the file, open after its header; its length; its type)."""
    info = archive.getinfo(f"{name}.npy")
    member = archive.open(info)
    if npy.read_magic(member) != (1, 0):
        raise ValueError(f"{name}: unsupported version")
    (size,), _, dtype = npy.read_array_header_1_0(member)
    if dtype.kind != "u" or member.tell() + size * dtype.itemsize != info.file_size:
        raise ValueError(f"{name}: wrong size or type")
    return member, size, dtype


def _read(member: IO[bytes], size: int) -> bytes:
    """Read the next bytes of an array. zipfile checks the CRC after the last ones."""
    data = member.read(size)
    if len(data) < size:
        raise EOFError("ends early")
    return data


def _last_ascending(text: bytes, ends: list[int], before: bytes) -> bytes:
    """Return the last pretoken of a block. Raise ValueError unless each is greater than the one before it."""
    pretokens = [text[start:stop] for start, stop in zip([0, *ends], ends, strict=False)]
    if not all(map(operator.lt, [before, *pretokens], pretokens)):
        raise ValueError("pretokens do not ascend")
    return pretokens[-1]


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"not a JSON number (got {name})")


def write_counts_file(
    path: str | os.PathLike[str],
    blocks: Iterable[Arrays],
    facts: CountsFacts,
    temporary: bool = False,
    storage_options: StorageOptions = NO_OPTIONS,
    spool_folder: Path | None = None,
) -> None:
    """Write a counts file, or an object if the path is a URL. It appears complete or not at all.

    blocks: small blocks of all counts in order. Each array is collected in a temporary file.
    temporary: write without renaming and syncing, because no other process reads the folder.
    spool_folder: of the temporary files (default: the folder of a temporary `path`, or $TMPDIR).
    """
    if not temporary or is_url(os.fspath(path)):
        with open_output_file(path, storage_options) as file:
            return _write(file, blocks, facts, spool_folder)
    try:
        with Path(path).open("wb") as file:
            return _write(file, blocks, facts, spool_folder or Path(path).parent)
    except OSError as error:
        if isinstance(error, EnvironmentFailure):
            raise  # an error of reading the blocks
        raise EnvironmentFailure(
            f"{path}: cannot write ({error.strerror or error}). Choose another folder with --temp-dir."
        ) from None


def _write(file: BinaryIO, blocks: Iterable[Arrays], facts: CountsFacts, folder: Path | None) -> None:
    with ExitStack() as stack:
        columns: list[IO[bytes]] = [stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in range(3)]
        distinct = total = text_bytes = longest = highest = 0
        for text, ends, counts in blocks:
            if not counts.all():
                raise BadCounts("pretoken: count must be at least 1 in a counts file (got 0)")
            lengths = np.diff(ends, prepend=np.uint64(0))
            distinct, total = distinct + len(ends), total + exact_sum(counts)
            text_bytes += text.nbytes
            longest, highest = max(longest, int(lengths.max())), max(highest, int(counts.max()))
            columns[0].write(text.data)
            columns[1].write(lengths.data)
            columns[2].write(counts.data)
        check_total(total, "counts file")
        header = {"format": FORMAT, "distinct": distinct, "total": total, "longest": longest}
        columns.append(io.BytesIO(json.dumps(header | facts.to_json(), separators=(",", ":")).encode()))
        target: Any = file
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # offsets of a device mean nothing
            target = SimpleNamespace(write=file.write, flush=file.flush)
        archive = stack.enter_context(zipfile.ZipFile(target, "w"))
        byte = np.dtype(np.uint8)
        _copy_column(columns[0], archive, "pretoken_bytes", byte, byte, text_bytes)
        for column, name, most in zip(columns[1:], ("lengths", "counts"), (longest, highest), strict=False):
            _copy_column(column, archive, name, np.dtype(np.uint64), np.min_scalar_type(most), distinct)
        _copy_column(columns[3], archive, "header", byte, byte, columns[3].seek(0, io.SEEK_END))


def _copy_column(
    column: IO[bytes], archive: zipfile.ZipFile, name: str, dtype: np.dtype[Any], to: np.dtype[Any], size: int
) -> None:
    """Copy an array of `size` numbers from a file of `dtype` to the archive as type `to`."""
    column.seek(0)
    # ZipInfo has a constant date, so that equal counts are equal files.
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
        header = {"descr": npy.dtype_to_descr(to), "fortran_order": False, "shape": (size,)}
        npy.write_array_header_1_0(member, header)
        while data := column.read(_COPY_BYTES):
            member.write(np.frombuffer(data, dtype).astype(to, copy=False).data)
