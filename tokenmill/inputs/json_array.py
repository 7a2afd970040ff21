"""JSON arrays of records, read as JSON Lines of the same length (native/json_array.hpp).

A file may be an array unless its name says JSON Lines, or its records are lists themselves (--text-field /0).
"""

from __future__ import annotations

import numpy as np

from tokenmill.errors import printable
from tokenmill.inputs._core import JsonArray
from tokenmill.inputs.blocks import FileStream
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.kinds import is_named_lines
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Source

_HEAD_BYTES = 4096  # an array begins within these, after white space


def may_be_array(source: Source, rules: IntakeRules) -> bool:
    """Return whether a source of JSON records may be an array, by its name and by the fields that are read."""
    has_lists = rules.marks is None and rules.text_path[0].isdecimal()
    return not has_lists and not is_named_lines(source.path)


def is_array(source: Source, rules: IntakeRules) -> bool:
    """Return whether an uncompressed source of JSON records is an array."""
    if not may_be_array(source, rules):
        return False
    head = np.empty(min(_HEAD_BYTES, source.size_bytes), np.uint8)
    with source.open() as file:
        count = file.readinto_at(0, head.data)
    array = JsonArray()
    array.rewrite(head[:count])
    return array.is_array


class ArrayLines:
    """A stream of JSON Lines, or of one array as JSON Lines. BadInput comes after the last byte before the damage.

    path: name of the source in errors.
    """

    def __init__(self, stream: FileStream, path: str) -> None:
        self._stream, self._path = stream, path
        self._array = JsonArray()
        self._offset = 0
        self._damage: BadInput | None = None

    @property
    def used_bytes(self) -> int:
        """See FileStream."""
        return self._stream.used_bytes

    def readinto(self, buffer: memoryview) -> int:
        """See ByteStream."""
        if self._damage is not None:
            raise self._damage
        count = self._stream.readinto(buffer)
        good = self._array.rewrite(np.frombuffer(buffer[:count], np.uint8))
        self._offset += good
        if good < count:
            self._damage = self._damaged(f"invalid JSON array (got 0x{buffer[good]:02x}). Fix the file.")
        elif not count and self._array.is_cut:
            self._damage = self._damaged("JSON array without a closing bracket. Get the complete file.")
        if self._damage is not None and not good:
            raise self._damage
        return good

    def _damaged(self, detail: str) -> BadInput:
        return BadInput(f"{printable(self._path)}: byte {self._offset}: {detail}")
