"""Decompresses gz, zst, bz2 and xz files in bounded memory, and never returns less than the file holds.

A file may have several members (zstd calls them frames, xz streams). Each is read to its own end mark and checksum by
a decoder of the library, and the next one must follow at once, or zeros. A file that ends early or continues with
anything else is damaged, and the error names the byte. The stream readers of the libraries cannot promise that: bz2
and xz ignore extra bytes after the last member, and zstd ignores a missing end.

Output per call is limited to a MiB. zstd has no such limit, so it gets little input: its blocks of 128 KiB take at
least 4 bytes, so output is at most 64 MiB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenmill.errors import naming, printable
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.kinds import MAGIC_NUMBERS
from tokenmill.inputs.utf8 import LFS_ADVICE, LFS_POINTER
from tokenmill.stores import RandomFile
from tokenmill.stores.files import fill_at

READ_BYTES = 256 << 10
OUT_BYTES = 1 << 20
DEFAULT_WINDOW_BYTES = 128 << 20  # the default limit of the zstd tool

_NAMES = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zst": "zstd"}
_MARKS = {
    **{name: (magic,) for name, magic in MAGIC_NUMBERS.items()},
    # Skippable frames (0x184D2A50 to 0x184D2A5F) hold data for other tools, such as an index. The library skips them.
    "zst": (MAGIC_NUMBERS["zst"], *(bytes([0x50 + n, 0x2A, 0x4D, 0x18]) for n in range(16))),
}
_MARK_BYTES = 6
# Input per call. A gzip decoder returns unused input as a copy. bz2 and xz keep it, so more input would make
# `used_bytes` inexact.
_FEED_BYTES = {"gz": 64 << 10, "bz2": 16 << 10, "xz": 16 << 10, "zst": 2 << 10}


def _zlib() -> Any:
    """zlib-ng if it is installed, which is faster, otherwise the zlib of the standard library."""
    try:
        from zlib_ng import zlib_ng
    except ImportError:
        import zlib

        return zlib
    return zlib_ng


def _gzip_member(_: int) -> Any:
    return _zlib().decompressobj(31)


def _bz2_member(_: int) -> Any:
    import bz2

    return bz2.BZ2Decompressor()


def _xz_member(window_bytes: int) -> Any:
    import lzma

    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=window_bytes)


def _zstd_member(window_bytes: int) -> Any:
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=window_bytes).decompressobj()


_MEMBERS: dict[str, Callable[[int], Any]] = {
    "gz": _gzip_member,
    "bz2": _bz2_member,
    "xz": _xz_member,
    "zst": _zstd_member,
}


class DecompressedFile:
    """The decompressed bytes of a file, as a FileStream. As a context manager it closes the file.

    path: name of the file in errors.
    window_bytes: memory that a member may require (--max-window-bytes).
    """

    def __init__(
        self, file: RandomFile, path: str, compression: str, window_bytes: int = DEFAULT_WINDOW_BYTES
    ) -> None:
        self._file, self._path, self._compression = file, path, compression
        self._window_bytes = window_bytes
        self._member: Any = None  # the decoder of the current member
        self._has_members = False
        self._input, self._used = memoryview(b""), 0  # bytes of the file, and how many of them are used
        self._read_bytes = self._out_bytes = 0
        self._out = memoryview(b"")  # decompressed but not returned

    def __enter__(self) -> DecompressedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def used_bytes(self) -> int:
        """See FileStream. Output that was not returned yet does not count."""
        returned = self._out_bytes - len(self._out)
        return self._offset * returned // max(1, self._out_bytes)

    @property
    def _offset(self) -> int:
        """The offset in the file of the first unused byte."""
        return self._read_bytes - len(self._input) + self._used

    def readinto(self, buffer: memoryview) -> int:
        """See ByteStream. BadInput if the file is damaged."""
        while not self._out:
            if self._member is None and not self._begin_member():
                return 0
            self._out = memoryview(self._decompress(self._member))
            self._out_bytes += len(self._out)
        count = min(len(buffer), len(self._out))
        buffer[:count] = self._out[:count]
        self._out = self._out[count:]
        return count

    def _decompress(self, member: Any) -> bytes:
        """Return the next output of the member, which may be empty."""
        limit = () if self._compression == "zst" else (OUT_BYTES,)
        at_end, fed = False, self._input[:0]
        if getattr(member, "needs_input", True):  # bz2 and xz keep input for several calls
            at_end = self._used == len(self._input) and not self._fill()
            fed = self._input[self._used : self._used + _FEED_BYTES[self._compression]]
        try:
            out: bytes = member.decompress(fed, *limit)
        except MemoryError:
            raise
        except Exception as error:  # zlib.error, OSError, LZMAError, ZstdError, EOFError
            raise self._undecodable(error) from None
        unused = member.unused_data if member.eof else getattr(member, "unconsumed_tail", b"")
        self._used += len(fed) - len(unused)
        if member.eof:
            self._member = None
        elif at_end and not out:  # the last output may come without input
            raise self._damaged(
                self._read_bytes,
                f"truncated {self._name} data, after {self._out_bytes} bytes of text. Get the complete file.",
            )
        return out

    def _fill(self) -> bool:
        """Read more of the file; False at its end."""
        rest = self._input[self._used :]
        data = bytearray(len(rest) + READ_BYTES)
        data[: len(rest)] = rest
        view = memoryview(data)
        with naming(self._path):
            # Full reads, so that the output before damage is always the same.
            count = fill_at(self._file, self._read_bytes, view[len(rest) :])
        self._read_bytes += count
        self._input, self._used = view[: len(rest) + count], 0
        return count > 0

    def _begin_member(self) -> bool:
        """Begin the next member; False at the end of the file."""
        marks = _MARKS[self._compression]
        while True:
            if len(self._input) - self._used < _MARK_BYTES:
                self._fill()
            head = bytes(self._input[self._used : self._used + _MARK_BYTES])
            if not head:
                return False
            if head.startswith(marks):
                self._member = _MEMBERS[self._compression](self._window_bytes)
                self._has_members = True
                return True
            if not self._has_members or head[0] != 0:
                raise self._no_member(head)
            data = bytes(self._input[self._used :])  # tapes and disks pad with zeros
            self._used += len(data) - len(data.lstrip(b"\0"))

    def _no_member(self, head: bytes) -> BadInput:
        """Return the error for bytes that do not begin a member."""
        if not self._has_members and self._input[: len(LFS_POINTER)] == LFS_POINTER:
            return BadInput(f"{printable(self._path)}: {LFS_ADVICE}")
        if any(mark.startswith(head) for mark in _MARKS[self._compression]):
            what = f"truncated at the start of {self._name} data. Get the complete file."
            return self._damaged(self._read_bytes, what)
        got = f"(got 0x{head[:4].hex()})"
        if not self._has_members:
            return BadInput(
                f"{printable(self._path)}: not {self._name} data despite its extension {got}. Rename the file."
            )
        what = f"extra bytes after the {self._name} data {got}. Remove them with head -c {self._offset}."
        return self._damaged(self._offset, what)

    def _undecodable(self, error: Exception) -> BadInput:
        """Return the error for an exception of a decoder."""
        if "memory" in str(error).lower():
            what = f"{self._name} data with a window of more than {self._window_bytes} bytes. "
            what += "Raise --max-window-bytes, for example to 2GiB."
        else:
            what = f"damaged {self._name} data ({error}). Get the file again."
        return self._damaged(self._offset, what, "near byte")

    @property
    def _name(self) -> str:
        return _NAMES[self._compression]

    def _damaged(self, offset: int, what: str, near: str = "byte") -> BadInput:
        return BadInput(f"{printable(self._path)}: {near} {offset}: {what}")
