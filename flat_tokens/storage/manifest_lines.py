"""A manifest as this package writes it, line by line: its sources may be a million, of which a reader needs none.

Parsed as a whole, each source takes ten times its line, 1.3 kB. Read so, memory is that of the files and of the
sources that are wanted; the others are hashed and counted, but not parsed, which would take most of the time. The value
is the one that parsing the whole would give; what is not in this very form is left to that
(flat_tokens/storage/manifest.py).

    {
    "format": "flat-tokens",
    ...
    "sources": [
    {"path": "a.txt", ...},
    {"path": "b.txt", ...}
    ],
    "files": [
    {"path": ".zgroup", ...}
    ],
    "manifest_sha256": "..."
    }
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from flat_tokens.storage.files import check_length
from flat_tokens.storage.places import Place, open_file

SELF_HASH_NAME = "manifest_sha256"
SELF_HASH_ZEROS = "0" * 64
MEMBERS = ("format", "format_version", "splits", "layout", "tokenizer", "options", "versions")
LISTS = ("sources", "files")
# Parsed at a time, so the names of their members are one string each. Text may become some fifty times as much memory.
_LINES_AT_ONCE = 1000
_BYTES_AT_ONCE = 2**20
# Bytes of a line: a hole in a sparse file has no end of a line, and must not become one in memory.
MEMBER_LINE_BYTES = 2**20
LISTED_LINE_BYTES = 2**16  # a path of 4,096 bytes, escaped, twice


class _OtherFormError(Exception):
    """The file is not in the form above."""


class ManifestLines(NamedTuple):
    value: dict[str, Any]
    sources_left_out: int
    digest: str  # that it should state


def read_lines(path: Place, limit_bytes: int, most_sources: int | None) -> ManifestLines | None:
    """The manifest's value, with so many of its sources at most. None: with all of them.

    None if it is not written as above; DatasetError if it is no regular file or longer than limit_bytes."""
    with open_file(path) as file, file.reader() as buffered:
        check_length(str(path), file.size, limit_bytes)
        lines = _Lines(buffered)
        value: dict[str, Any] = {}
        sources_left_out = 0
        try:
            lines.expect(b"{\n")
            for name in MEMBERS:
                value[name] = json.loads(lines.between(b'"%b": ' % name.encode("ascii"), b",\n"))
            for name in LISTS:
                lines.expect(b'"%b": [\n' % name.encode("ascii"))
                kept: list[Any] = []
                value[name] = kept
                most = most_sources if name == "sources" else None
                for texts in lines.listed():
                    wanted = texts if most is None else texts[: most - len(kept)]
                    kept += _values(wanted)
                    sources_left_out += len(texts) - len(wanted)
            value[SELF_HASH_NAME] = lines.stated_hash()
        except (_OtherFormError, ValueError, RecursionError):
            return None
        return ManifestLines(value, sources_left_out, lines.digest.hexdigest())


class _Lines:
    """The lines of a file, hashed as they go by, all with 64 zeros in place of the hash."""

    def __init__(self, file: io.BufferedReader[Any]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def _next(self, most_bytes: int) -> bytes:
        line = self._file.readline(most_bytes)
        if len(line) == most_bytes:
            raise _OtherFormError
        self.digest.update(line)
        return line

    def expect(self, line: bytes) -> None:
        if self._next(LISTED_LINE_BYTES) != line:
            raise _OtherFormError

    def between(self, start: bytes, end: bytes) -> bytes:
        line = self._next(MEMBER_LINE_BYTES)
        if not line.startswith(start) or not line.endswith(end):
            raise _OtherFormError
        return line[len(start) : -len(end)]

    def listed(self) -> Iterator[list[bytes]]:
        """The texts of a list's values, one a line, some of them at a time."""
        texts: list[bytes] = []
        size = 0
        goes_on: bool | None = None  # by the comma of the line before, if there was one
        while (line := self._next(LISTED_LINE_BYTES)) != b"],\n":
            if not line or goes_on is False:
                raise _OtherFormError
            goes_on = line.endswith(b",\n")
            texts.append(line.removesuffix(b",\n"))
            size += len(line)
            if len(texts) == _LINES_AT_ONCE or size >= _BYTES_AT_ONCE:
                yield texts
                texts, size = [], 0
        if goes_on:
            raise _OtherFormError
        yield texts

    def stated_hash(self) -> str:
        start, end = b'"%b": "' % SELF_HASH_NAME.encode("ascii"), b'"\n}\n'
        line = self._file.read(LISTED_LINE_BYTES)
        stated = line[len(start) : -len(end)]
        if line != start + stated + end or len(stated) != len(SELF_HASH_ZEROS):
            raise _OtherFormError
        self.digest.update(start + SELF_HASH_ZEROS.encode("ascii") + end)
        return stated.decode("ascii")


def _values(texts: list[bytes]) -> list[Any]:
    """A value a line, each an object of plain values: lists within lists would take more memory than they say."""
    values: list[Any] = json.loads(b"[%b]" % b",".join(texts))
    if len(values) != len(texts) or not all(map(_is_flat, values)):
        raise _OtherFormError
    return values


def _is_flat(value: Any) -> bool:
    return isinstance(value, dict) and not any(isinstance(inner, (dict, list)) for inner in value.values())
