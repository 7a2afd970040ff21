"""Text must be valid UTF-8: find the first invalid byte, or replace invalid bytes as CPython does.

`check` accepts exactly the buffers that `b.decode()` accepts, and `replace_invalid(b)[0]` equals
`b.decode(errors="replace").encode()`. On valid text both cost one pass at memory speed and copy nothing.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from tokenmill.inputs import _core
from tokenmill.inputs.errors import InvalidText
from tokenmill.inputs.kinds import MAGIC_NUMBERS

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

Invalid = Literal["error", "replace"]

LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
LFS_ADVICE = "a Git LFS pointer, not the data. Run git lfs pull in the cloned folder."


def _encoding(name: str) -> str:
    return f"looks like {name}, not UTF-8. Convert it first with iconv -f {name} -t UTF-8."


def _data(name: str) -> str:
    return f"looks like {name} data, not text. Unpack it, or rename it to match its content."


# First bytes of files that are not text. Text that begins so is invalid UTF-8, has control characters, or is a Git LFS
# pointer. UTF-32-LE comes first, because its mark begins with the mark of UTF-16-LE.
_OTHER_KINDS = {
    codecs.BOM_UTF32_LE: _encoding("UTF-32"),
    codecs.BOM_UTF32_BE: _encoding("UTF-32"),
    codecs.BOM_UTF16_LE: _encoding("UTF-16"),
    codecs.BOM_UTF16_BE: _encoding("UTF-16"),
    MAGIC_NUMBERS["gz"] + b"\x08": _data("gzip"),
    MAGIC_NUMBERS["zst"]: _data("zstd"),
    MAGIC_NUMBERS["xz"]: _data("xz"),
    **{MAGIC_NUMBERS["bz2"] + b"%d1AY&SY" % level: _data("bzip2") for level in range(1, 10)},
    b"PK\x03\x04": _data("zip"),
    b"PAR1\x15": _data("Parquet"),
    b"ARROW1\x00\x00": _data("Arrow"),
    b"%PDF-": "looks like PDF data, not text. Extract its text first.",
    LFS_POINTER: LFS_ADVICE,
}
# In a tar archive, after the name and owner of its first file. All bytes up to there may be valid UTF-8.
_TAR_MARK, _TAR_OFFSET = b"ustar", 257
HEAD_BYTES = _TAR_OFFSET + len(_TAR_MARK)  # enough to recognize a file
_REPLACEMENT = "\ufffd"


def check(buffer: Buffer, where: str | Path = "text", base_bytes: int = 0) -> None:
    """Raise InvalidText with the offset of the first byte that is not valid UTF-8.

    where: name of the source in the message. base_bytes: offset of `buffer` in it, added to the reported offset.
    check(b"ab\\xff", "f.txt") -> InvalidText: f.txt: byte 2: invalid UTF-8 (got 0xff) ...
    """
    offset = _core.validate_utf8(buffer)
    if offset >= 0:
        raise invalid_text(buffer, offset, where, base_bytes)


def check_rows(buffer: Buffer, offsets: NDArray[np.uint64]) -> None:
    """Raise InvalidText if one of the rows [offsets[i], offsets[i + 1]) of the buffer is not valid UTF-8.

    The rows are valid if the whole is and no row begins inside a character. The caller checks that offsets ascend
    within the buffer.
    """
    view = memoryview(buffer).cast("B")
    first, stop = int(offsets[0]), int(offsets[-1])
    check(view[first:stop], base_bytes=first)
    starts = offsets[(offsets > first) & (offsets < min(stop, view.nbytes))]
    cut = np.flatnonzero(np.frombuffer(view, np.uint8)[starts] & 0xC0 == 0x80)
    if len(cut):
        raise InvalidText(f"text: byte {starts[cut[0]]}: a document must not begin inside a character")


def invalid_text(
    buffer: Buffer,
    offset: int,
    where: str | Path,
    base_bytes: int = 0,
    replace_flag: str = "--invalid replace",
) -> InvalidText:
    """Return the error for the byte at `offset` of `buffer`, which starts `base_bytes` into its source.

    replace_flag: see IntakeRules.
    """
    view = memoryview(buffer).cast("B")
    if base_bytes == 0 and (what := other_kind(view)):
        return InvalidText(f"{where}: {what}")
    return InvalidText(
        f"{where}: byte {base_bytes + offset}: invalid UTF-8 (got 0x{view[offset]:02x}). Fix the text, or pass "
        f"{replace_flag} to insert U+FFFD."
    )


def invalid_byte(offset: int, byte: int, within: str = "") -> str:
    """Return the fault of a record: (7, 0xff, " of the text") -> "invalid UTF-8 at byte 7 of the text (0xff)"."""
    return f"invalid UTF-8 at byte {offset}{within} (0x{byte:02x})"


def other_kind(head: Buffer) -> str | None:
    """Return an error message if the first bytes of a file show that it is not UTF-8 text.

    b"\xff\xfeh\0" -> "looks like UTF-16, not UTF-8. Convert it first with iconv -f UTF-16 -t UTF-8." head: the first
    HEAD_BYTES of the file, or more.
    """
    start = bytes(memoryview(head).cast("B")[:HEAD_BYTES])
    if start[_TAR_OFFSET:] == _TAR_MARK:
        return "looks like a tar archive, not text. Rename it to .tar, or pass --input-format tar."
    return next((message for mark, message in _OTHER_KINDS.items() if start.startswith(mark)), None)


def repair(buffer: Buffer, replaces: bool) -> tuple[Buffer, int, int]:
    """Return (the text, the number of inserted U+FFFD, the offset of the first invalid byte that is left or -1).

    b"a\xffb", True -> b"a\xef\xbf\xbdb", 1, -1. b"a\xffb", False -> b"a\xffb", 0, 1.
    """
    bad = _core.validate_utf8(buffer)
    if bad < 0 or not replaces:
        return buffer, 0, bad
    return *replace_invalid(buffer), -1


def replace_invalid(buffer: Buffer) -> tuple[Buffer, int]:
    """Return (the text with U+FFFD for invalid bytes, the number of U+FFFD); valid text is returned unchanged.

    b"a\xffb" -> (b"a\xef\xbf\xbdb", 1). As in CPython, each maximal cut-off sequence becomes one U+FFFD
    (Unicode 15, 3.9, practice for U+FFFD).
    """
    offset = _core.validate_utf8(buffer)
    if offset < 0:
        return buffer, 0
    view = memoryview(buffer).cast("B")
    tail = bytes(view[offset:])
    repaired = tail.decode(errors="replace")
    replaced = repaired.count(_REPLACEMENT) - tail.count(_REPLACEMENT.encode())
    return bytes(view[:offset]) + repaired.encode(), replaced


def cut_character_bytes(tail: bytes) -> int:
    """Return the length of the incomplete character at the end, at most 3: b"a\xe2\x82" -> 2."""
    for size in range(len(tail), 0, -1):
        try:
            _, used = codecs.utf_8_decode(tail[-size:], "strict", False)
        except UnicodeDecodeError:
            continue
        return size - used
    return 0


def whole_characters(pieces: Iterable[tuple[Buffer, bool]]) -> Iterator[memoryview]:
    """Yield a text that comes as (piece, is_last) in pieces that do not divide a character.

    [(b"a\xc3", False), (b"\xa9", True)] -> b"a", b"\xc3\xa9". Invalid bytes are kept.
    """
    rest = b""
    for piece, is_last in pieces:
        data = memoryview(rest + bytes(piece)) if rest else memoryview(piece)
        stop = len(data) - (0 if is_last else cut_character_bytes(bytes(data[-3:])))
        yield data[:stop]
        rest = bytes(data[stop:])
