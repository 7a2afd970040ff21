"""Tar archives: each file in an archive is one document, whatever its name.

An archive is read from its start, and a file is held in memory. Folders, links, devices and hidden files are skipped.
Python's `tarfile` takes a damaged or missing header for the end of the archive, so this module checks the end itself.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import Any, Self

from tokenmill.errors import TokenmillError, printable
from tokenmill.inputs import utf8
from tokenmill.inputs.blocks import StreamFile
from tokenmill.inputs.documents import Event, Reading
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.intake import MALFORMED, TOO_LONG
from tokenmill.inputs.rows import bad_row, text_rows, valid_row

_READ_BYTES = 1 << 20
_RECORDS = (".jsonl", ".ndjson", ".jsonlines")


def documents(reading: Reading) -> Iterator[Event]:
    """The documents of the archive."""
    return text_rows(reading, _texts(reading))


def _texts(reading: Reading) -> Iterator[tuple[int, bytes]]:
    """(number of the file in the archive, text) of the good files."""
    where, number = printable(reading.source.shown), 0
    try:
        # "r|" does not seek. The owner of the stream closes it.
        archive: Any = tarfile.TarFile.open(
            fileobj=StreamFile(reading.stream()), mode="r|", tarinfo=_Header, bufsize=_READ_BYTES
        )
        while (member := archive.next()) is not None:
            archive.members.clear()  # tarfile keeps them all
            if member.isfile() and not _is_hidden(member.name):
                text = _text(reading, archive, member, number)
                reading.intake.records += 1
                if text is not None:
                    yield number, text
                number += 1
            while (left := archive.offset - archive.fileobj.tell()) > 0:  # tarfile would not stop at the end
                if not archive.fileobj.read(min(left, _READ_BYTES)):
                    raise tarfile.ReadError("unexpected end of data")
        while rest := archive.fileobj.read(_READ_BYTES):
            if any(rest):
                raise BadInput(
                    f"{where}: extra bytes after the end of the archive. Unpack concatenated archives with "
                    "tar --ignore-zeros -x."
                )
    except TokenmillError:
        raise
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise BadInput(f"{where}: invalid tar archive ({printable(error)}). Get the complete file.") from None


class _Header(tarfile.TarInfo):
    """A header that is an error unless it is valid or the end mark, a block of zeros."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == tarfile.BLOCKSIZE and not any(buf):
                raise
            raise tarfile.ReadError(str(error)) from None


def _is_hidden(name: str) -> bool:
    """Whether the file or a folder in its path begins with a dot, as in folders on disk."""
    return any(part.startswith(".") and part not in (".", "..") for part in name.split("/"))


def _text(reading: Reading, archive: Any, member: tarfile.TarInfo, number: int) -> bytes | None:
    """The text of a file, or None if it is bad."""
    name, limit = f"{printable(member.name)}: ", reading.rules.max_record_bytes
    if member.size > limit:
        bad_row(reading, number, MALFORMED, name + TOO_LONG.format(limit=limit), length=member.size)
        return None
    text: bytes = archive.extractfile(member).read()
    if len(text) < member.size:
        raise tarfile.ReadError("unexpected end of data")
    if member.name.lower().endswith(_RECORDS):
        advice = "JSON Lines in an archive (unpack the archive and pass its files)"
        bad_row(reading, number, MALFORMED, name + advice, text)
    elif what := utf8.other_kind(text):
        bad_row(reading, number, MALFORMED, name + what.partition(". ")[0], text)
    else:
        return valid_row(reading, number, text, name)
    return None
