"""Where the pages of Parquet files lie: as pyarrow has it, and an error for metadata that are none."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tokenmill.inputs._core import parquet_chunks
from tokenmill.inputs.parquet_pages import ColumnChunks
from tokenmill.stores.files import LocalFile

WRITING = {
    "plain": {"use_dictionary": False, "compression": "none"},
    "dictionary": {"use_dictionary": True, "compression": "zstd"},
    "no statistics": {"write_statistics": False},
    "page index": {"write_page_index": True, "write_page_checksum": True, "store_decimal_as_integer": True},
    "delta": {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY", "n": "PLAIN"}},
    "bloom filters and an order": {"sorting_columns": [pq.SortingColumn(0)], "data_page_version": "2.0"},
}


def written(path: Path, rows: int = 50, **options: object) -> pq.FileMetaData:
    texts = [f"text {number % 7} " * (number % 5) for number in range(rows)]
    table = pa.table({"text": pa.array(texts, pa.string()), "n": pa.array(range(rows), pa.int64())})
    if "column_encoding" not in options:
        deep = pa.array([[{"a": text}] for text in texts], pa.list_(pa.struct({"a": pa.string()})))
        table = table.append_column("deep", deep)
    table = table.replace_schema_metadata({"about": "x" * 200})
    pq.write_table(table, path, row_group_size=11, **options)
    return pq.read_metadata(path)


def footer_of(path: Path) -> bytes:
    data = path.read_bytes()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


@pytest.mark.parametrize("how", WRITING)
@pytest.mark.parametrize("rows", [0, 50, 300])
def test_pages_lie_where_pyarrow_finds_them(how: str, rows: int, tmp_path: Path) -> None:
    metadata = written(tmp_path / "a", rows, **WRITING[how])
    with LocalFile(tmp_path / "a") as file:
        chunks = ColumnChunks(file, metadata.num_row_groups, metadata.num_columns)
    assert chunks.footer_bytes == metadata.serialized_size + 8
    for group in range(metadata.num_row_groups):
        ranges = []
        for index in range(metadata.num_columns):
            column = metadata.row_group(group).column(index)
            start = column.dictionary_page_offset or column.data_page_offset
            ranges.append((start, start + column.total_compressed_size))
            assert chunks.range_of(group, index) == ranges[-1]
            assert chunks.unpacked_bytes(group, index) == column.total_uncompressed_size
            assert chunks.has_delta_byte_array(group, index) == ("DELTA_BYTE_ARRAY" in column.encodings)
        assert chunks.range_of(group) == (min(ranges)[0], max(stop for _, stop in ranges))
    assert not any(chunks.is_encrypted(index) for index in range(metadata.num_columns))


def test_row_groups_that_only_pyarrow_finds_are_refused(tmp_path: Path) -> None:
    metadata = written(tmp_path / "a")
    with LocalFile(tmp_path / "a") as file, pytest.raises(ValueError, match="row groups"):
        ColumnChunks(file, metadata.num_row_groups + 1, metadata.num_columns)


def test_metadata_cut_at_any_byte_are_refused(tmp_path: Path) -> None:
    columns = written(tmp_path / "a").num_columns
    footer = footer_of(tmp_path / "a")
    whole = parquet_chunks(footer, columns)
    for size in range(len(footer)):
        with pytest.raises(ValueError, match=r"byte \d+ of the metadata: it ends too early"):
            parquet_chunks(footer[:size], columns)
    assert (parquet_chunks(footer + b"a signature", columns) == whole).all()
    for other in (0, columns - 1, columns + 1):
        with pytest.raises(ValueError, match="another number of columns"):
            parquet_chunks(footer, other)


def test_changed_metadata_give_an_error_or_places_within_64_bits(tmp_path: Path) -> None:
    columns = written(tmp_path / "a").num_columns
    footer, rng = footer_of(tmp_path / "a"), random.Random(1)
    refused = 0
    for _ in range(20_000):
        changed = bytearray(footer)
        for _ in range(rng.randrange(1, 4)):
            changed[rng.randrange(len(changed))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        try:
            facts = parquet_chunks(bytes(changed), columns).reshape(-1, 4)
        except ValueError:
            refused += 1
        else:
            assert (facts[:, 0] >= -1).all()
            assert (facts[:, 1] >= facts[:, 0]).all()
            assert (facts[:, 2:] >= 0).all()
    assert 2_000 < refused < 20_000


@pytest.mark.parametrize(
    "metadata",
    [
        b"\x1c" * 100_000,  # structs within structs
        b"\x19" * 100_000,  # lists of lists
        b"\x49\xfc\xff\xff\xff\xff\x0f",  # a list of 2**32 row groups
        b"\x48\xff\xff\xff\xff\x0f",  # bytes beyond the end
        b"\x46" + b"\xff" * 11,  # a number without end
        b"\x4e\x00",  # a type that there is not
        b"\x49\x15\x02\x00",  # a row group that is a number
    ],
)
def test_hostile_metadata_are_refused(metadata: bytes) -> None:
    with pytest.raises(ValueError, match=r"byte \d+ of the metadata: "):
        parquet_chunks(metadata, 1)


def test_numbers_at_the_ends_of_their_range() -> None:
    def number(value: int) -> bytes:
        bits, digits = (value << 1) ^ (value >> 63), bytearray()
        while bits > 127:
            digits.append(bits & 127 | 128)
            bits >>= 7
        return bytes([*digits, bits])

    def chunk(places: dict[int, int]) -> list[int]:
        """The facts of a column whose metadata have these fields of 64 bits and the encodings 3, 62 and 63."""
        fields, before = b"\x29\x35" + b"".join(map(number, (3, 62, 63))), 2
        for field, value in places.items():
            fields += bytes([(field - before) << 4 | 6]) + number(value)
            before = field
        return parquet_chunks(b"\x49\x1c\x19\x1c\x3c" + fields + b"\0" * 4, 1).tolist()

    most, bits = 2**63 - 1, 1 << 62 | 1 << 3
    assert chunk({6: 5, 7: 10, 9: 100}) == [100, 110, 5, bits]
    assert chunk({7: 10, 9: 100, 11: 40}) == [40, 50, 0, bits]
    assert chunk({7: 10, 9: 100, 11: 140}) == [100, 110, 0, bits]
    assert chunk({6: -5, 7: -10, 9: -1}) == [0, 0, 0, bits]
    assert chunk({6: most, 7: most, 9: most}) == [most, most, most, bits]
    assert chunk({6: -most - 1, 7: most, 9: 1}) == [1, most, 0, bits]
