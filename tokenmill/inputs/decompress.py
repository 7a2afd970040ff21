"""The bytes inside a gz, zst, bz2 or xz file: all members one after the other, in bounded memory, never short.

A file may be several members (gzip calls them so; zstd: frames, xz: streams). Each is read to its own end mark and
check sum; a file that ends before, or goes on with something else, is an error that says where. zstd's reader stops
at the end of the input in silence, so the end of each frame is checked here for all four alike.

However well the input is compressed, what comes out at a time is limited: to a megabyte, for zstd to 64 MiB (its
blocks are 128 KiB and take at least 4 bytes; it is given 2 KiB at a time).
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from tokenmill.errors import naming, printable
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.utf8 import LFS_ADVICE, LFS_POINTER
from tokenmill.stores import RandomFile
from tokenmill.stores.files import fill_at

READ_BYTES = 256 << 10
OUT_BYTES = 1 << 20
# What a call does not use is copied for the next; so little gives less than OUT_BYTES (750 -> 830 MB/s of English).
GZIP_FEED_BYTES = 64 << 10
ZSTD_FEED_BYTES = 2 << 10
# To a decoder that keeps what it has not used: given READ_BYTES, `used_bytes` told up to five times too much.
KEPT_FEED_BYTES = 16 << 10
DEFAULT_WINDOW_BYTES = 128 << 20  # what the zstd tool itself takes without being asked

_MARKS = {
    "gz": (b"\x1f\x8b",),
    "bz2": (b"BZh",),
    "xz": (b"\xfd7zXZ\x00",),
    # Skippable frames (0x184D2A50 to 0x184D2A5F) hold what others need, such as an index: the library skips them.
    "zst": (b"\x28\xb5\x2f\xfd", *(bytes([0x50 + n, 0x2A, 0x4D, 0x18]) for n in range(16))),
}
_NAMES = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zst": "zstd"}


class _Member(Protocol):
    """One member's decoder: takes input, gives output, knows its end."""

    @property
    def ended(self) -> bool:
        """Whether the member is whole; its check sum was right then."""
        ...

    @property
    def hungry(self) -> bool:
        """Whether there is no more output without more input."""
        ...

    def take(self, data: memoryview) -> tuple[bytes, int]:
        """Some output, and how many bytes of `data` are done with; the others come again."""
        ...


def _gzip_library() -> Any:
    """zlib-ng where it is installed: the same zlib, 1.5 (several languages) to 2.2 times (English, code) as fast."""
    try:
        from zlib_ng import zlib_ng
    except ImportError:
        import zlib

        return zlib
    return zlib_ng


class _Gzip:
    def __init__(self, _: int) -> None:
        self._decoder = _gzip_library().decompressobj(31)
        self.hungry = True

    @property
    def ended(self) -> bool:
        return bool(self._decoder.eof)

    def take(self, data: memoryview) -> tuple[bytes, int]:
        data = data[:GZIP_FEED_BYTES]
        out = self._decoder.decompress(data, OUT_BYTES)
        rest = self._decoder.unused_data if self._decoder.eof else self._decoder.unconsumed_tail
        return out, len(data) - len(rest)


class _Bz2OrXz:
    """Both decoders of the standard library keep the input that they have not used yet.

    What they were given counts as used when they want more, or are at the end and say what they did not need: the last
    output of a member may come long after its last input, and what lies behind that is the next member's.
    """

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder
        self._given_bytes = 0

    @property
    def ended(self) -> bool:
        return bool(self._decoder.eof)

    @property
    def hungry(self) -> bool:
        return bool(self._decoder.needs_input)

    def take(self, data: memoryview) -> tuple[bytes, int]:
        given = data[:0]
        if self.hungry:
            given = data[:KEPT_FEED_BYTES]
            self._given_bytes = len(given)
        out = self._decoder.decompress(given, OUT_BYTES)
        if not self.hungry and not self.ended:
            return out, 0
        return out, self._given_bytes - len(self._decoder.unused_data)


class _Zstd:
    def __init__(self, window_bytes: int) -> None:
        import zstandard

        self._decoder = zstandard.ZstdDecompressor(max_window_size=window_bytes).decompressobj()
        self.hungry = True

    @property
    def ended(self) -> bool:
        return bool(self._decoder.eof)

    def take(self, data: memoryview) -> tuple[bytes, int]:
        data = data[:ZSTD_FEED_BYTES]
        out = self._decoder.decompress(data)
        return out, len(data) - len(self._decoder.unused_data)


def _bz2(_: int) -> _Member:
    import bz2

    return _Bz2OrXz(bz2.BZ2Decompressor())


def _xz(window_bytes: int) -> _Member:
    import lzma

    return _Bz2OrXz(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=window_bytes))


_DECODERS: dict[str, Callable[[int], _Member]] = {
    "gz": _Gzip,
    "bz2": _bz2,
    "xz": _xz,
    "zst": _Zstd,
}


class DecompressedFile:
    """Reads what a compressed file holds, from beginning to end; a context, at whose end `file` is closed.

    path: what the file is called. window_bytes: how much memory a member may ask for to be read (--max-window-bytes).
    seen(offset, data): is given the file's own bytes as they are read, each once and in order.
    """

    def __init__(
        self,
        file: RandomFile,
        path: str,
        compression: str,
        window_bytes: int = DEFAULT_WINDOW_BYTES,
        seen: Callable[[int, memoryview], None] | None = None,
    ) -> None:
        self.path = path
        self._compression = compression
        self._window_bytes = window_bytes
        self._seen = seen
        self._file = file
        self._member: _Member | None = None
        self._input = memoryview(b"")  # read from the file, not yet used
        self._read_bytes = 0
        self._out = memoryview(b"")  # decompressed, not yet read
        self._out_bytes = 0
        self._at_start = True

    def __enter__(self) -> DecompressedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """The file is not read any more."""
        self._file.close()

    @property
    def used_bytes(self) -> int:
        """See FileStream. Of what has come out, perhaps not all was read."""
        used = self._read_bytes - len(self._input)
        if self._member is not None and not self._member.hungry:  # it still works on what it was given last
            used += min(KEPT_FEED_BYTES, len(self._input))
        return round(used * (1 - len(self._out) / max(1, self._out_bytes)))

    def readinto(self, buffer: memoryview) -> int:
        """Put the next bytes, one at least, into `buffer`; 0 only at the end of the last member. BadInput else."""
        while not self._out:
            out = self._next()
            if out is None:
                return 0
            self._out = memoryview(out)
            self._out_bytes += len(out)
        count = min(len(buffer), len(self._out))
        buffer[:count] = self._out[:count]
        self._out = self._out[count:]
        return count

    def _next(self) -> bytes | None:
        """Some output, perhaps none yet; None at the end of the file."""
        if self._member is None:
            self._member = self._begin()
            if self._member is None:
                return None
        member = self._member
        if member.hungry and not self._input and not self._fill():
            # The last output may come without input; a decoder that has none left is short of its end.
            out, _ = self._take(member)
            if not out and not member.ended:
                raise BadInput(
                    f"{printable(self.path)}: byte {self._read_bytes}: truncated {self._name} data, after "
                    f"{self._out_bytes} bytes of text. Get the complete file."
                )
        else:
            out, used = self._take(member)
            self._input = self._input[used:]
        if member.ended:
            self._member = None
        return out

    @property
    def _name(self) -> str:
        return _NAMES[self._compression]

    def _take(self, member: _Member) -> tuple[bytes, int]:
        try:
            return member.take(self._input)
        except MemoryError:
            raise
        except Exception as error:  # zlib.error, OSError, LZMAError, ZstdError, EOFError: each has its own
            where = f"{printable(self.path)}: near byte {self._read_bytes - len(self._input)}"
            if "memory" in str(error).lower():
                raise BadInput(
                    f"{where}: {self._name} data with a window of more than {self._window_bytes} bytes. Raise "
                    f"--max-window-bytes, for example to 2GiB."
                ) from None
            raise BadInput(f"{where}: damaged {self._name} data ({error}). Get the file again.") from None

    def _fill(self) -> bool:
        """Read on; False at the end of the file."""
        kept = len(self._input)
        data = bytearray(kept + READ_BYTES)
        data[:kept] = self._input
        view = memoryview(data)
        with naming(self.path):
            got = fill_at(
                self._file, self._read_bytes, view[kept:]
            )  # so that the output before damage is the same
        if self._seen is not None:
            self._seen(self._read_bytes, view[kept : kept + got])
        self._read_bytes += got
        self._input = view[: kept + got]
        return got > 0

    def _begin(self) -> _Member | None:
        """The decoder of the next member, None at the end of the file. Only zeros may lie behind a member."""
        marks = _MARKS[self._compression]
        while True:
            if len(self._input) < 8:
                self._fill()
            if not self._input:
                return None
            if bytes(self._input[:8]).startswith(marks):
                self._at_start = False
                return _DECODERS[self._compression](self._window_bytes)
            place = self._read_bytes - len(self._input)
            head = bytes(self._input[:4]).hex()
            if self._at_start and bytes(self._input[: len(LFS_POINTER)]) == LFS_POINTER:
                raise BadInput(f"{printable(self.path)}: {LFS_ADVICE}")
            if any(mark.startswith(bytes(self._input)) for mark in marks):
                raise BadInput(
                    f"{printable(self.path)}: byte {self._read_bytes}: truncated at the start of {self._name} data. "
                    f"Get the complete file."
                )
            if self._at_start:
                raise BadInput(
                    f"{printable(self.path)}: not {self._name} data despite its extension (got 0x{head}). Rename the "
                    f"file."
                )
            if self._input[0] == 0:  # tapes and disks pad with zeros
                data = bytes(self._input)
                self._input = self._input[len(data) - len(data.lstrip(b"\0")) :]
                continue
            raise BadInput(
                f"{printable(self.path)}: byte {place}: extra bytes after the {self._name} data (got 0x{head}). Remove "
                f"them with head -c {place}."
            )
