"""Tar archives: each file in them is a document, whole, whatever its name ends with.

Archives are a stream of headers, each with its file behind it, so they are read from the beginning. A file is held
whole. Folders, links and devices are no records, and neither are files whose name, or that of a folder above, begins
with a dot, as in folders of the disk. The headers are read here: Python's `tarfile` takes one that is damaged, or an
archive that was cut off between two files, for the end.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import NamedTuple

from tokenmill.errors import printable
from tokenmill.inputs import utf8
from tokenmill.inputs.blocks import ByteStream
from tokenmill.inputs.documents import Event, Reading
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.intake import INVALID_UTF8, MALFORMED, TOO_LONG, BadRecord

_BLOCK_BYTES = 512
_READ_BYTES = 1 << 20
_MOST_NAME_BYTES = 1 << 20  # of what names and other attributes take that a header has no room for
_RECORDS = (".jsonl", ".ndjson", ".jsonlines")
_PAX_TYPES = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)


class _Member(NamedTuple):
    """A file of the archive, whose bytes come next."""

    name: str
    size: int


def documents(reading: Reading) -> Iterator[Event]:
    """The documents of the archive."""
    with reading.stream() as stream:
        archive = _Archive(stream, printable(reading.source.shown))
        yield from reading.texts(_texts(reading, archive), stream)


def _texts(reading: Reading, archive: _Archive) -> Iterator[tuple[int, bytes]]:
    """(number of the file in the archive, its text) of the good ones."""
    for number, member in enumerate(archive.members()):
        text = _text(reading, archive, member, number)
        reading.intake.records += 1  # a file that the archive holds whole
        if text is not None:
            yield number, text


def _text(reading: Reading, archive: _Archive, member: _Member, number: int) -> bytes | None:
    """The text of a file; None if it is bad."""
    rules, size = reading.rules, member.size

    def bad(reason: str, detail: str, data: bytes) -> None:
        record = BadRecord(reason, f"{member.name}: {detail}", number, data, size, is_row=True)
        reading.intake.bad(reading.source_index, reading.source, record)

    if size > rules.max_record_bytes:
        bad(MALFORMED, TOO_LONG.format(limit=rules.max_record_bytes), b"")
        return None
    text = archive.take(size)
    if member.name.lower().endswith(_RECORDS):
        bad(MALFORMED, "JSON Lines in an archive (unpack the archive and pass its files)", text)
        return None
    if what := utf8.other_kind(text):
        bad(MALFORMED, what.partition(". ")[0], text)
        return None
    if (place := utf8.first_invalid(text)) < 0:
        return text
    if rules.invalid == "replace":
        mended, replaced = utf8.replace_invalid(text)
        reading.intake.replaced += replaced
        return bytes(mended)
    bad(INVALID_UTF8, utf8.invalid_byte(place, text[place]), text)
    return None


class _Archive:
    """A stream as the files of a tar archive; BadInput where it is none, or ends before its end mark."""

    def __init__(self, stream: ByteStream, where: str) -> None:
        self._stream, self._where = stream, where
        self._place = 0  # in the archive
        self._rest = 0  # bytes before the next header

    def members(self) -> Iterator[_Member]:
        """The files, in order; what is not taken of one is passed over."""
        name, size = b"", -1  # of the next file, where a header of its own says so
        while (header := self._header()) is not None:
            if header.type in (tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE, *_PAX_TYPES):
                data = self._attributes(header)
                if header.type == tarfile.GNUTYPE_LONGNAME:
                    name = data.rstrip(b"\0")
                elif header.type != tarfile.XGLTYPE:
                    name, size = self._pax(data, name, size)
                continue
            if header.type == tarfile.GNUTYPE_LONGLINK:
                self._attributes(header)
                continue
            if header.type == tarfile.GNUTYPE_SPARSE:
                raise self._sparse()
            if size < 0:
                size = header.size if header.type in tarfile.REGULAR_TYPES else 0
            own_name = name.decode("utf-8", "surrogateescape") or header.name
            self._rest = -(-size // _BLOCK_BYTES) * _BLOCK_BYTES
            is_hidden = any(part[:1] == "." != part for part in own_name.split("/") if part != "..")
            if header.type in tarfile.REGULAR_TYPES and not own_name.endswith("/") and not is_hidden:
                yield _Member(printable(own_name), size)
            name, size = b"", -1
        # `cat a.tar b.tar`: most readers stop at the first end mark, and say nothing.
        while data := self._read(_READ_BYTES, may_end=True):
            if data.count(0) != len(data):
                raise BadInput(
                    f"{self._where}: extra bytes after the end of the archive, before byte {self._place}. Unpack "
                    "concatenated archives with tar --ignore-zeros -x."
                )

    def take(self, size: int) -> bytes:
        """So many bytes of the file that `members` gave last."""
        self._rest -= size
        return self._read(size)

    def _header(self) -> tarfile.TarInfo | None:
        """The next header, None at the end mark."""
        self._pass_over()
        place = self._place
        block = self._read(_BLOCK_BYTES, may_end=place == 0)
        if place == 0 and not block:
            raise BadInput(f"{self._where}: not a tar archive (got 0 bytes)")
        if len(block) == _BLOCK_BYTES and not any(block):
            return None
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            what = "not a tar archive" if place == 0 else f"byte {place}: invalid tar header"
            raise BadInput(f"{self._where}: {what} ({printable(error)})") from None
        if header.size < 0:
            raise BadInput(f"{self._where}: byte {place}: invalid file size (got {header.size})")
        return header

    def _attributes(self, header: tarfile.TarInfo) -> bytes:
        if header.size > _MOST_NAME_BYTES:
            raise BadInput(
                f"{self._where}: byte {self._place}: names must be at most {_MOST_NAME_BYTES} bytes (got {header.size})"
            )
        self._rest = -(-header.size // _BLOCK_BYTES) * _BLOCK_BYTES
        return self.take(header.size)

    def _pax(self, data: bytes, name: bytes, size: int) -> tuple[bytes, int]:
        """The name and the size with what the attributes say of them: each is "LENGTH KEY=VALUE\\n" of LENGTH bytes,
        so that a value may look like another attribute."""
        while data:
            digits, _, rest = data.partition(b" ")
            length = int(digits) if digits.isdigit() and len(digits) < 8 else 0
            key, is_given, value = rest[: max(0, length - len(digits) - 2)].partition(b"=")
            if not is_given or data[length - 1 : length] != b"\n":
                raise BadInput(f"{self._where}: byte {self._place}: invalid pax attributes")
            if key == b"path":
                name = value
            elif key == b"size" and value.isdigit() and len(value) < 20:
                size = int(value)
            elif key == b"size" or key.startswith(b"GNU.sparse"):
                raise self._sparse()
            data = data[length:]
        return name, size

    def _sparse(self) -> BadInput:
        return BadInput(
            f"{self._where}: byte {self._place}: sparse files are not supported. Unpack the archive with tar -x."
        )

    def _pass_over(self) -> None:
        while self._rest > 0:
            self._rest -= len(self._read(min(self._rest, _READ_BYTES)))

    def _read(self, size: int, *, may_end: bool = False) -> bytes:
        """So many bytes, fewer at the end of the stream if it may end; memory grows with what is there."""
        parts: list[bytes] = []
        buffer = bytearray(min(size, _READ_BYTES))
        left = size
        with memoryview(buffer) as view:
            while left and (got := self._stream.readinto(view[: min(left, len(buffer))])):
                parts.append(bytes(view[:got]))
                left -= got
        self._place += size - left
        if left and not may_end:
            raise BadInput(f"{self._where}: byte {self._place}: truncated archive. Get the complete file.")
        return parts[0] if len(parts) == 1 else b"".join(parts)
