"""JSON arrays of records, read as JSON Lines of the same length.

    [\n  {"text": "a"},\n  {"text": "b"}\n]   ->     {"text": "a"}\n   {"text": "b"}  (spaces and CRs for the rest)

The comma between two records becomes the LF that ends a line, the brackets of the array become spaces, and each LF
becomes a CR, which JSON allows in the same places. So every byte keeps its offset, and each record is checked as a line
is. Brackets are only counted.

A file may be an array unless its name says JSON Lines, or its records are lists themselves (--text-field /0).
"""

from __future__ import annotations

import codecs
import re

from tokenmill.errors import printable
from tokenmill.inputs.blocks import ByteStream
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.kinds import is_named_lines
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Source
from tokenmill.stores.files import read_at

_HEAD_BYTES = 4096  # an array begins within these, after white space
_SPACE = b" \t\r\n"
_BEFORE = re.compile(b"[ \t\r\n%b]*+" % codecs.BOM_UTF8)
_AFTER = re.compile(rb"[ \t\r]*+")
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)  # up to its closing quote
_IN_RECORD = re.compile(rb'[^"\[\]{}]*+')
_BETWEEN_RECORDS = re.compile(rb'[^"\[\]{},]*+')


def may_be_array(source: Source, rules: IntakeRules) -> bool:
    """Return whether a source of JSON records may be an array, by its name and by the fields that are read."""
    has_lists = rules.marks is None and rules.text_path[0].isdecimal()
    return not has_lists and not is_named_lines(source.path)


def is_array(source: Source, rules: IntakeRules) -> bool:
    """Return whether an uncompressed source of JSON records is an array."""
    if not may_be_array(source, rules):
        return False
    with source.open() as file:
        head = read_at(file, 0, _HEAD_BYTES)
    return head.removeprefix(codecs.BOM_UTF8).lstrip(b" \t\r\n").startswith(b"[")


class ArrayLines:
    """A stream of JSON Lines, or of one array as JSON Lines. BadInput comes after the last byte before the damage.

    path: name of the source in errors.
    """

    def __init__(self, stream: ByteStream, path: str) -> None:
        self._stream, self._path = stream, path
        self._offset = 0  # in the file, of the next byte
        self._is_array: bool | None = None  # None while there was only white space
        self._is_closed = False
        self._depth = 0  # open lists and objects in the array
        self._in_string = self._is_escaped = False  # escaped: the last byte was a backslash in a string
        self._has_value = self._after_comma = False  # since the last comma between records
        self._damage: BadInput | None = None

    @property
    def used_bytes(self) -> int:
        return self._stream.used_bytes

    def readinto(self, buffer: memoryview) -> int:
        if self._damage is not None:
            raise self._damage
        count = self._stream.readinto(buffer)
        good = self._rewrite(buffer[:count])
        self._offset += good
        fault = ""
        if good < count:
            fault = f"invalid JSON array (got 0x{buffer[good]:02x}). Fix the file."
        elif not count and self._is_array and not self._is_closed:
            fault = "JSON array without a closing bracket. Get the complete file."
        if fault:
            self._damage = BadInput(f"{printable(self._path)}: byte {self._offset}: {fault}")
            if not good:
                raise self._damage
        return good

    def _rewrite(self, data: memoryview) -> int:
        """Rewrite the next bytes of the file in place. Return the offset of the first one that cannot follow."""
        at, size = 0, len(data)
        if self._is_array is None and (at := _end(_BEFORE, data, 0)) < size:
            self._is_array = data[at] == ord("[")
            if self._is_array:
                data[at] = ord(" ")
        if not self._is_array:
            return size
        data[at:] = bytes(data[at:]).replace(b"\n", b"\r")
        while at < size and not self._is_closed:
            if self._in_string:
                at = _end(_STRING, data, at + self._is_escaped)
                self._is_escaped = bytes(data[at:]) == b"\\"
                self._in_string = at == size or self._is_escaped
                at += 1
                continue
            start, at = at, _end(_IN_RECORD if self._depth else _BETWEEN_RECORDS, data, at)
            byte = bytes(data[at : at + 1])
            self._has_value |= self._depth == 0 and bool(bytes(data[start:at]).strip(_SPACE))
            if self._depth == 0 and byte in (b",", b"]", b"}"):
                needs_value = byte == b"," or self._after_comma
                if byte == b"}" or (needs_value and not self._has_value):
                    return at
                data[at] = ord("\n" if byte == b"," else " ")
                self._is_closed, self._after_comma, self._has_value = byte == b"]", byte == b",", False
            elif byte:
                self._has_value = True
                self._in_string = byte == b'"'
                self._depth += (byte in b"[{") - (byte in b"]}")
            at += 1
        return _end(_AFTER, data, at) if self._is_closed else size


def _end(pattern: re.Pattern[bytes], data: memoryview, start: int) -> int:
    """The end of the longest match, which may be empty."""
    match = pattern.match(data, start)
    return start if match is None else match.end()
