"""Where the pages of a Parquet file lie and how much they are, read past pyarrow: it ends the process where a column is
encrypted or its statistics are damaged.

Format: https://parquet.apache.org/docs/file-format/, parquet.thrift there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tokenmill.inputs._core import parquet_chunks
from tokenmill.stores import RandomFile
from tokenmill.stores.files import read_at

_TAIL_BYTES = 8  # the footer's length and the mark behind it
_DELTA_BYTE_ARRAY = 7
_I32_FIELD = 0x15  # Thrift's compact protocol: the next field, an i32
_DICTIONARY_PAGE = 2
_HEADER_BYTES = 16  # two fields of at most six bytes each


class ColumnChunks:
    """The column chunks of a Parquet file: a column of a row group each.

    footer_bytes: how long the metadata at the end of the file are, with their length and the mark behind them.
    groups, columns: how many there are, by pyarrow. Raises ValueError for metadata that do not tell the same.
    """

    def __init__(self, file: RandomFile, groups: int, columns: int) -> None:
        tail = file.size - _TAIL_BYTES
        metadata_bytes = min(tail, int.from_bytes(read_at(file, tail, 4), "little"))
        self.footer_bytes = metadata_bytes + _TAIL_BYTES
        metadata = read_at(file, tail - metadata_bytes, metadata_bytes)
        facts = parquet_chunks(metadata, columns)
        if len(facts) != 4 * groups * columns:
            raise ValueError("inconsistent number of row groups")
        self._facts: NDArray[np.int64] = facts.reshape(groups, columns, 4)

    def is_encrypted(self, column: int) -> bool:
        """Is it, in any row group?"""
        return bool((self._facts[:, column, 0] < 0).any())

    def range_of(self, group: int, column: int | None = None) -> tuple[int, int]:
        """The bytes of the file [start, stop) that the column of a row group lies in, or all its columns do."""
        facts = self._facts[group] if column is None else self._facts[group, column, None]
        return max(0, int(facts[:, 0].min())), max(0, int(facts[:, 1].max()))

    def unpacked_bytes(self, group: int, column: int) -> int:
        """How long the pages are without compression."""
        return int(self._facts[group, column, 2])

    def has_delta_byte_array(self, group: int, column: int) -> bool:
        """Are there pages whose values share beginnings?"""
        return bool(self._facts[group, column, 3] >> _DELTA_BYTE_ARRAY & 1)


def dictionary_page_bytes(file: RandomFile, place: int) -> int:
    """How long the dictionary is, unpacked, whose page begins at this byte of a Parquet file; 0 if none begins there.

    No value of it is longer. It is what the page's header says, to which a reader holds it.
    """
    header = bytes(read_at(file, place, _HEADER_BYTES))
    kind, stop = _i32(header, 0)
    size, _ = _i32(header, stop)
    return max(0, size) if kind == _DICTIONARY_PAGE else 0


def _i32(header: bytes, place: int) -> tuple[int, int]:
    """(the next field of a struct in Thrift's compact protocol, the place behind it); -1 for what is no i32."""
    if header[place : place + 1] != bytes([_I32_FIELD]):
        return -1, place
    value = shift = 0
    for stop in range(place + 2, min(len(header), place + 6) + 1):
        byte = header[stop - 1]
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), stop
    return -1, place
