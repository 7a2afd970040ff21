"""Text must be valid UTF-8: find the first invalid byte, or replace invalid bytes as CPython does.

`check` accepts exactly the buffers that `b.decode()` accepts, and `replace_invalid(b)[0]` equals
`b.decode(errors="replace").encode()`. On valid text both cost one pass at memory speed and copy nothing.
"""

from __future__ import annotations

import codecs
import threading
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

# UTF-32-LE comes first, because its mark begins with the mark of UTF-16-LE.
_OTHER_BOMS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}

# Text that begins so is invalid UTF-8 or has control characters, so these files are not text whatever their names.
_OTHER_FILES = {
    MAGIC_NUMBERS["gz"] + b"\x08": "gzip",
    MAGIC_NUMBERS["zst"]: "zstd",
    MAGIC_NUMBERS["xz"]: "xz",
    **{MAGIC_NUMBERS["bz2"] + b"%d1AY&SY" % level: "bzip2" for level in range(1, 10)},
    b"PK\x03\x04": "zip",
    b"PAR1\x15": "Parquet",
    b"ARROW1\x00\x00": "Arrow",
}
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
LFS_ADVICE = "a Git LFS pointer, not the data. Run git lfs pull in the cloned folder."
# In a tar archive, after the name and owner of its first file. All bytes up to there may be valid UTF-8.
_TAR_MARK, _TAR_OFFSET = b"ustar", 257
HEAD_BYTES = _TAR_OFFSET + len(_TAR_MARK)  # enough to recognize a file

_this_thread = threading.local()  # error handlers are global by name, so the count must not be


def _replace_and_count(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    _this_thread.replaced += 1
    return "\ufffd", error.end


codecs.register_error("bpe.replace_invalid", _replace_and_count)


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

    b"\\xff\\xfeh\\0" -> "looks like UTF-16, not UTF-8. Convert it first with iconv -f UTF-16 -t UTF-8." head: the first
    HEAD_BYTES of the file, or more.
    """
    start = bytes(memoryview(head).cast("B")[:HEAD_BYTES])
    for mark, name in _OTHER_BOMS.items():
        if start.startswith(mark):
            return f"looks like {name}, not UTF-8. Convert it first with iconv -f {name} -t UTF-8."
    for mark, name in _OTHER_FILES.items():
        if start.startswith(mark):
            return f"looks like {name} data, not text. Unpack it, or rename it to match its content."
    if start.startswith(b"%PDF-"):
        return "looks like PDF data, not text. Extract its text first."
    if start.startswith(LFS_POINTER):
        return LFS_ADVICE
    if is_tar(start):
        return "looks like a tar archive, not text. Rename it to .tar, or pass --input-format tar."
    return None


def is_tar(head: Buffer) -> bool:
    """Return whether a file with these first bytes is a tar archive."""
    return bytes(memoryview(head).cast("B")[_TAR_OFFSET:HEAD_BYTES]) == _TAR_MARK


def repair(buffer: Buffer, replaces: bool) -> tuple[Buffer, int, int]:
    """Return (the text, the number of inserted U+FFFD, the offset of the first invalid byte that is left or -1).

    b"a\\xffb", True -> b"a\\xef\\xbf\\xbdb", 1, -1. b"a\\xffb", False -> b"a\\xffb", 0, 1.
    """
    bad = _core.validate_utf8(buffer)
    if bad < 0 or not replaces:
        return buffer, 0, bad
    return *replace_invalid(buffer), -1


def replace_invalid(buffer: Buffer) -> tuple[Buffer, int]:
    """Return (the text with U+FFFD for invalid bytes, the number of U+FFFD); valid text is returned unchanged.

    b"a\\xffb" -> (b"a\\xef\\xbf\\xbdb", 1). As in CPython, each maximal cut-off sequence becomes one U+FFFD
    (Unicode 15, 3.9, practice for U+FFFD).
    """
    offset = _core.validate_utf8(buffer)
    if offset < 0:
        return buffer, 0
    view = memoryview(buffer).cast("B")
    _this_thread.replaced = 0
    tail = codecs.decode(view[offset:], "utf-8", "bpe.replace_invalid").encode()
    return bytes(view[:offset]) + tail, _this_thread.replaced


def cut_character_bytes(tail: bytes) -> int:
    """Return the length of the incomplete character at the end, at most 3: b"a\\xe2\\x82" -> 2."""
    for size in range(len(tail), 0, -1):
        try:
            _, used = codecs.utf_8_decode(tail[-size:], "strict", False)
        except UnicodeDecodeError:
            continue
        return size - used
    return 0


class TextDecoder:
    """Decodes a text that comes in blocks, which may divide a character.

    base_bytes: offset of the text in its source. A byte order mark counts only at 0.
    replaced: inserted U+FFFD so far.

    TextDecoder("f.txt", "error").decode(b"a\xc3"), .decode(b"\xa9", final=True) -> "a", "é"
    """

    def __init__(self, where: str | Path, invalid: Invalid = "error", base_bytes: int = 0) -> None:
        self._where = where
        self._decoder = codecs.getincrementaldecoder("utf-8")(
            "bpe.replace_invalid" if invalid == "replace" else "strict"
        )
        self._fed_bytes = base_bytes
        self.replaced = 0

    def decode(self, block: bytes, final: bool = False) -> str:
        """Return the block's text up to the last whole character. InvalidText names the byte in the source."""
        held = self._decoder.getstate()[0]
        if self._fed_bytes == 0 and (what := other_kind(block)):
            raise InvalidText(f"{self._where}: {what}")
        _this_thread.replaced = 0
        try:
            text = self._decoder.decode(block, final)
        except UnicodeDecodeError as error:
            raise invalid_text(error.object, error.start, self._where, self._fed_bytes - len(held)) from None
        self.replaced += _this_thread.replaced
        self._fed_bytes += len(block)
        return text
