"""Decompresses gz, zst, bz2 and xz files in bounded memory, and never returns less than the file holds.

A file may have several members (zstd calls them frames, xz streams). Each is read to its own end mark and checksum by
a decoder of the library, and the next one must follow at once, or zeros. A file that ends early or continues with
anything else is damaged, and the error names the byte. The stream readers of the libraries cannot promise that: bz2
and xz ignore extra bytes after the last member, and zstd ignores a missing end.

Output per call is limited to a MiB. zstd has no such limit, so it gets little input: its blocks of 128 KiB take at
least 4 bytes, so output is at most 64 MiB.
"""

from __future__ import annotations

from typing import Any

from tokenmill.errors import naming, printable
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.kinds import MAGIC_NUMBERS
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


def _decoder(compression: str, window_bytes: int) -> Any:
    """Return a decoder of one member."""
    if compression == "gz":
        try:
            from zlib_ng import zlib_ng  # faster
        except ImportError:
            import zlib

            return zlib.decompressobj(31)
        return zlib_ng.decompressobj(31)
    if compression == "bz2":
        import bz2

        return bz2.BZ2Decompressor()
    if compression == "xz":
        import lzma

        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=window_bytes)
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=window_bytes).decompressobj()


class DecompressedFile:
    """A ByteStream of the data of all members of a file.

    path: name of the file in errors. compression: key of MAGIC_NUMBERS.
    window_bytes: maximum window of xz and zstd.
    """

    def __init__(
        self, file: RandomFile, path: str, compression: str, window_bytes: int = DEFAULT_WINDOW_BYTES
    ) -> None:
        self._file, self._path = file, printable(path)
        self._compression, self._name, self._window_bytes = compression, _NAMES[compression], window_bytes
        self._input, self._used = memoryview(b""), 0  # bytes of the file, and how many of them are used
        self._read_bytes = 0  # of the file
        self._member: Any = None
        self._has_members = False
        self._out = memoryview(b"")  # decompressed and not returned
        self._out_bytes = 0

    @property
    def used_bytes(self) -> int:
        """See ByteStream. The input of text that was not returned yet does not count."""
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
            self._out = memoryview(self._decompress())
            self._out_bytes += len(self._out)
        count = min(len(buffer), len(self._out))
        buffer[:count] = self._out[:count]
        self._out = self._out[count:]
        return count

    def _decompress(self) -> bytes:
        """Return the next output of the member, which may be empty."""
        member, fed, at_end = self._member, self._input[:0], False
        limit = () if self._compression == "zst" else (OUT_BYTES,)
        if getattr(member, "needs_input", True):  # bz2 and xz keep input for several calls
            at_end = self._used == len(self._input) and not self._fill()
            fed = self._input[self._used :][: _FEED_BYTES[self._compression]]
        try:
            out: bytes = member.decompress(fed, *limit)
        except MemoryError:
            raise
        except Exception as error:  # zlib.error, OSError, LZMAError, ZstdError, EOFError
            if "memory" not in str(error).lower():
                what = f"damaged {self._name} data ({error}). Get the file again."
            else:
                what = f"{self._name} data with a window of more than {self._window_bytes} bytes. "
                what += "Raise --max-window-bytes, for example to 2GiB."
            raise self._damaged(self._offset, what, "near byte") from None
        if member.eof:
            self._member = None
        elif at_end and not out:  # the last output may come without input
            what = (
                f"truncated {self._name} data, after {self._out_bytes} bytes of text. Get the complete file."
            )
            raise self._damaged(self._read_bytes, what)
        unused = member.unused_data if member.eof else getattr(member, "unconsumed_tail", b"")
        self._used += len(fed) - len(unused)  # less than before if bz2 or xz kept bytes after the member
        return out

    def _fill(self) -> bool:
        """Read more of the file; False at its end."""
        rest = self._input[self._used :]
        view = memoryview(bytearray(len(rest) + READ_BYTES))
        view[: len(rest)] = rest
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
            head = bytes(self._input[self._used :][:_MARK_BYTES])
            if head.startswith(marks):
                self._member = _decoder(self._compression, self._window_bytes)
                self._has_members = True
                return True
            if not head or not self._has_members or head[0] != 0:
                break
            rest = bytes(self._input[self._used :]).lstrip(b"\0")  # tapes and disks pad with zeros
            self._used = len(self._input) - len(rest)
        if not head:
            return False
        if any(mark.startswith(head) for mark in marks):
            what = f"truncated at the start of {self._name} data. Get the complete file."
            raise self._damaged(self._read_bytes, what)
        got = f"(got 0x{head[:4].hex()})"
        if self._has_members:
            what = f"extra bytes after the {self._name} data {got}. Remove them with head -c {self._offset}."
            raise self._damaged(self._offset, what)
        raise BadInput(f"{self._path}: not {self._name} data despite its extension {got}. Rename the file.")

    def _damaged(self, offset: int, what: str, near: str = "byte") -> BadInput:
        return BadInput(f"{self._path}: {near} {offset}: {what}")
