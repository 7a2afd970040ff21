"""Text must be valid UTF-8: find the first byte that is not, or replace what is wrong as CPython does.

`replace_invalid(b)[0] == b.decode(errors="replace").encode()` for every b; `check` passes exactly those buffers
that `b.decode()` accepts. Both cost one pass at memory speed over valid text and make no copy of it.
"""

from __future__ import annotations

import codecs
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from tokenmill.errors import BadArgument
from tokenmill.inputs import _core
from tokenmill.inputs.errors import InvalidText

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

Invalid = Literal["error", "replace"]

# UTF-32-LE begins with UTF-16-LE's mark, so it comes first.
_OTHER_BOMS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}

# Files that are no text whatever they are named: text that begins so is not valid UTF-8 or holds control characters.
_OTHER_FILES = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    **{b"BZh%d1AY&SY" % level: "bzip2" for level in range(1, 10)},
    b"PK\x03\x04": "zip",
    b"PAR1\x15": "Parquet",
    b"ARROW1\x00\x00": "Arrow",
}
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
LFS_ADVICE = "a Git LFS pointer, not the data. Run git lfs pull in the cloned folder."
# What a tar archive has behind the name and owner of its first file: all of it may be valid UTF-8.
_TAR_MARK, _TAR_PLACE = b"ustar", 257
HEAD_BYTES = _TAR_PLACE + len(_TAR_MARK)  # so many of a text's first bytes tell

_this_thread = threading.local()  # handlers are global by name, so the count must not be


def _replace_and_count(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    _this_thread.replaced += 1
    return "\ufffd", error.end


codecs.register_error("bpe.replace_invalid", _replace_and_count)


def first_invalid(buffer: Buffer) -> int:
    """The offset of the first byte that is not valid UTF-8, -1 if there is none."""
    return _core.validate_utf8(buffer)


def check(buffer: Buffer, where: str | Path = "text", base_bytes: int = 0) -> None:
    """Raise InvalidText with the offset of the first byte that is not valid UTF-8.

    where: what the message calls the source. base_bytes: where `buffer` starts in it, added to the offset.
    check(b"ab\\xff", "f.txt") -> InvalidText: f.txt: byte 2: invalid UTF-8 (got 0xff) ...
    """
    offset = _core.validate_utf8(buffer)
    if offset >= 0:
        raise invalid_text(buffer, offset, where, base_bytes)


def check_rows(buffer: Buffer, offsets: NDArray[np.uint64]) -> None:
    """Raise InvalidText if one of the rows [offsets[i], offsets[i + 1]) of the buffer is not valid UTF-8.

    All are if they are together and none begins within a character. Offsets that fall or leave the buffer are the
    caller's to refuse.
    """
    view = memoryview(buffer).cast("B")
    first, stop = int(offsets[0]), int(offsets[-1])
    check(view[first:stop], base_bytes=first)
    starts = offsets[(offsets > first) & (offsets < min(stop, view.nbytes))]
    cut = np.flatnonzero(np.frombuffer(view, np.uint8)[starts] & 0xC0 == 0x80)
    if len(cut):
        raise InvalidText(f"text: byte {starts[cut[0]]}: a document must not begin inside a character")


def invalid_text(buffer: Buffer, offset: int, where: str | Path, base_bytes: int = 0) -> InvalidText:
    """The error for the byte at `offset` of `buffer`, which starts `base_bytes` into its source."""
    view = memoryview(buffer).cast("B")
    if base_bytes == 0 and (what := other_kind(view)):
        return InvalidText(f"{where}: {what}")
    return InvalidText(
        f"{where}: byte {base_bytes + offset}: invalid UTF-8 (got 0x{view[offset]:02x}). Fix the text, or pass "
        f"--invalid replace to insert U+FFFD."
    )


def invalid_byte(offset: int, byte: int, within: str = "") -> str:
    """Return the fault of a record: (7, 0xff, " of the text") -> "invalid UTF-8 at byte 7 of the text (0xff)"."""
    return f"invalid UTF-8 at byte {offset}{within} (0x{byte:02x})"


def other_kind(head: Buffer) -> str | None:
    """What a file is whose beginning shows that it is no UTF-8 text, and what to do, as errors say it; else None.

    b"\\xff\\xfeh\\0" -> "looks like UTF-16, not UTF-8. Convert it first with iconv -f UTF-16 -t UTF-8." head: the first
    HEAD_BYTES of the text, or more.
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
    """Whether a file that begins so is a tar archive."""
    return bytes(memoryview(head).cast("B")[_TAR_PLACE:HEAD_BYTES]) == _TAR_MARK


def replace_invalid(buffer: Buffer) -> tuple[Buffer, int]:
    """(the text with U+FFFD for what is not valid UTF-8, how many were put in); valid text comes back as it is.

    b"a\\xffb" -> (b"a\\xef\\xbf\\xbdb", 1). The replacements are CPython's: one for each maximal cut-off
    sequence (Unicode 15, 3.9, practice for U+FFFD). Text after the first wrong byte is decoded once more.
    """
    offset = _core.validate_utf8(buffer)
    if offset < 0:
        return buffer, 0
    view = memoryview(buffer).cast("B")
    _this_thread.replaced = 0
    tail = codecs.decode(view[offset:], "utf-8", "bpe.replace_invalid").encode()
    return bytes(view[:offset]) + tail, _this_thread.replaced


def ensure_valid(
    buffer: Buffer, where: str | Path, invalid: Invalid = "error", base_bytes: int = 0
) -> tuple[Buffer, int]:
    """`check` or `replace_invalid`, as `invalid` says; UTF-16, and what is no text at all, is refused either way."""
    if invalid == "error":
        check(buffer, where, base_bytes)
        return buffer, 0
    if invalid != "replace":
        raise BadArgument(f'invalid: must be "error" or "replace" (got {invalid!r})')
    if base_bytes == 0 and other_kind(buffer):
        raise invalid_text(buffer, 0, where)
    return replace_invalid(buffer)


def cut_character_bytes(tail: bytes) -> int:
    """How many of the last bytes (at most 3) are the valid start of a character that goes on: b"a\\xe2\\x82" -> 2."""
    for size in range(len(tail), 0, -1):
        try:
            _, used = codecs.utf_8_decode(tail[-size:], "strict", False)
        except UnicodeDecodeError:
            continue
        return size - used
    return 0


class TextDecoder:
    """Decodes a text that comes in blocks; a character may lie across two of them.

    base_bytes: where the text starts in its source; a byte order mark counts only at 0.

    TextDecoder("f.txt", "error").decode(b"a\xc3"), .decode(b"\xa9", final=True) -> "a", "é"
    """

    def __init__(self, where: str | Path, invalid: Invalid = "error", base_bytes: int = 0) -> None:
        self._where = where
        self._replace = invalid == "replace"
        self._decoder = codecs.getincrementaldecoder("utf-8")(
            "bpe.replace_invalid" if self._replace else "strict"
        )
        self._fed_bytes = base_bytes
        self.replaced = 0

    def decode(self, block: bytes, final: bool = False) -> str:
        """The block's text, less a cut character at its end; InvalidText names the byte's offset in the source."""
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


class ValidPieces:
    """Checks or mends the UTF-8 of a text that comes in pieces, and cuts it between characters.

    where, base_bytes: what errors call the source, and where in it the text begins. `replaced`: how many U+FFFD were
    put in, the same as for the whole at once. bad_place, bad_byte: of InvalidText, where in the source and what.
    """

    def __init__(self, where: str, invalid: Invalid, base_bytes: int) -> None:
        self._where = where
        self._place = base_bytes  # of the first byte that is held
        self._held = b""
        self._decoder = TextDecoder(where, invalid, base_bytes) if invalid == "replace" else None
        self.bad_place = self.bad_byte = -1

    @property
    def replaced(self) -> int:
        return self._decoder.replaced if self._decoder is not None else 0

    def take(self, piece: Buffer, final: bool) -> Buffer:
        """The text that is whole with this piece; InvalidText names the byte."""
        if self._decoder is not None:
            return self._decoder.decode(bytes(piece), final).encode()
        data = self._held + bytes(piece) if self._held else piece
        view = memoryview(data)
        bad = _core.validate_utf8(data)
        # A character that is cut looks like a wrong one: its bytes wait for the next piece.
        if bad >= 0 and (final or not _may_go_on(bytes(view[bad:]))):
            self.bad_place, self.bad_byte = self._place + bad, view[bad]
            raise invalid_text(data, bad, self._where, self._place)
        stop = bad if bad >= 0 else len(view)
        self._held = bytes(view[stop:])
        self._place += stop
        return view[:stop]


def _may_go_on(tail: bytes) -> bool:
    """Whether the bytes are the beginning of a character."""
    if len(tail) > 3:
        return False
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    try:
        return decoder.decode(tail) == ""
    except UnicodeDecodeError:
        return False
