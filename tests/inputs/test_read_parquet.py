"""Rows of Parquet are read so that memory follows the longest text, however often a file repeats it."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tokenmill.inputs import arrow_texts, read_parquet
from tokenmill.inputs.arrow_texts import batch_of, cut_by_bytes, joined, lengths_of
from tokenmill.inputs.read_parquet import BATCH_BYTES, REPEATED_BYTES, _ParquetText, dictionary_page_bytes
from tokenmill.inputs.source_list import Source
from tokenmill.stores import open_file

MIB = 1 << 20


# In a process of its own: Arrow's highest account of memory is of all that a process did.
READ = """
import sys, numpy as np, pyarrow
from tokenmill.inputs.arrow_texts import batch_of
from tokenmill.inputs.read_parquet import _ParquetText
from tokenmill.inputs.source_list import Source
rows, source = 0, Source(sys.argv[1], 0, 0)
with source.open() as opened, _ParquetText(source, opened, tuple(sys.argv[2].split())) as file:
    for array in file.arrays(0):
        batch = batch_of(array)
        assert bytes(memoryview(batch.text)[:5]) == b"xxxxx"
        assert set(np.diff(batch.offsets).tolist()) == {1 << 20}
        rows += len(batch)
print(rows, pyarrow.default_memory_pool().max_memory())
"""


def arrays_of(path: Path, *names: str) -> list[Any]:
    source = Source(str(path), 0, 0)
    with source.open() as opened, _ParquetText(source, opened, names or ("text",)) as file:
        return [array for group in range(file.group_count) for array in file.arrays(group)]


def repeated(kind: str, text: str, rows: int, path: Path) -> None:
    """A file of some hundred bytes that holds the text once, for all rows."""
    index = pa.array(np.zeros(rows, np.int32))
    texts = pa.DictionaryArray.from_arrays(index, pa.array([text]))
    options: dict[str, Any] = {"compression": "zstd", "store_schema": kind == "a dictionary to Arrow"}
    if kind == "in a struct":
        pq.write_table(pa.table({"outer": pa.StructArray.from_arrays([texts], ["text"])}), path, **options)
    elif kind == "as beginnings":
        encoding = {"column_encoding": {"text": "DELTA_BYTE_ARRAY"}, "use_dictionary": False}
        pq.write_table(pa.table({"text": pa.array([text] * rows)}), path, **options, **encoding)
    else:
        pq.write_table(pa.table({"text": texts}), path, **options)
    assert path.stat().st_size < 2000


@pytest.mark.parametrize("kind", ["a dictionary", "a dictionary to Arrow", "in a struct", "as beginnings"])
def test_memory_follows_the_longest_text_not_how_often_it_stands_there(kind: str, tmp_path: Path) -> None:
    """10,000 rows of 1 MB in a file of 469 bytes took 10.6 GB."""
    path = tmp_path / "in.parquet"
    repeated(kind, "x" * MIB, 400, path)
    names = "outer text" if kind == "in a struct" else "text"
    done = subprocess.run(
        [sys.executable, "-c", READ, path, names], capture_output=True, text=True, check=True
    )
    rows, most_bytes = map(int, done.stdout.split())
    assert rows == 400
    assert most_bytes < 4 * REPEATED_BYTES


def test_one_long_text_among_many_short_ones_in_a_dictionary(tmp_path: Path) -> None:
    """Rows are few only where a value is long: the size of the dictionary says nothing."""
    for texts, rows in (
        ([f"a{number}" for number in range(60_000)], read_parquet.READ_ROWS),
        (["b" * 4 * MIB, "a"], 8),
    ):
        table = pa.table({"text": pa.array(texts).dictionary_encode()})
        path = tmp_path / "in.parquet"
        pq.write_table(table, path, store_schema=False, dictionary_pagesize_limit=8 * MIB)
        source = Source(str(path), 0, 0)
        with source.open() as opened, _ParquetText(source, opened, ("text",)) as file:
            column = file._metadata.row_group(0).column(0)
            size = dictionary_page_bytes(opened, column.dictionary_page_offset)
            assert size == sum(len(text) + 4 for text in texts)
            assert file._longest_in_dictionary(0, size) == max(map(len, texts))
            expected = min(rows, max(1, BATCH_BYTES // (column.total_uncompressed_size // len(texts))))
            assert file._rows_at_once(0) == expected


TEXTS = ["", "é", None, "a" * 3000, "漢" * 5, None, "b", "c" * 90_000]


@pytest.mark.parametrize("rows", [0, 1, 255, 256, 257, 9000])
@pytest.mark.parametrize(
    "kind", ["string", "large_string", "binary", "large_binary", "string_view", "binary_view", "dictionary"]
)
def test_every_type_gives_its_rows_in_order(
    kind: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (arrow_texts, read_parquet):
        monkeypatch.setattr(module, "BATCH_BYTES", 200_000)
    if kind.endswith("_view"):
        rows = min(rows, 257)  # Arrow can't write more of them
    generator = random.Random(rows)
    texts = generator.choices(TEXTS, [9, 9, 9, 3, 9, 9, 9, 0.1], k=rows)
    values = pa.array(texts, pa.string())
    values = values.dictionary_encode() if kind == "dictionary" else values.cast(getattr(pa, kind)())
    outer = pa.StructArray.from_arrays([values], ["inner"])
    group_sizes = (100_000, 700)
    for group_rows in group_sizes:
        path = tmp_path / f"{group_rows}.parquet"
        pq.write_table(
            pa.table({"text": values, "outer": outer}), path, row_group_size=group_rows, data_page_size=5000
        )
        for names in (("text",), ("outer", "inner")):
            arrays = arrays_of(path, *names)
            got = [value for array in arrays for value in array.to_pylist()]
            assert [value.decode() if isinstance(value, bytes) else value for value in got] == texts
            for array in arrays:
                batch = batch_of(array)
                sizes = np.diff(batch.offsets)
                assert len(batch) == len(array) <= arrow_texts.MAX_BATCH_ROWS
                assert batch.offsets[-1] < 1_300_000 or len(sizes) == 1


def test_cutting_and_joining() -> None:
    array = pa.array(["aa", None, "bbbb", "", "c" * 9, "dd", "ee"])
    assert lengths_of(array).tolist() == [2, 0, 4, 0, 9, 2, 2]
    assert lengths_of(array.cast(pa.string_view())).tolist() == [2, 0, 4, 0, 9, 2, 2]
    for each in (array, array.dictionary_encode(), array.cast(pa.large_binary())):
        parts = [part.to_pylist() for part in cut_by_bytes(each, 5)]
        assert [len(part) for part in parts] == [2, 2, 1, 2]
        assert list(chain.from_iterable(parts)) == each.to_pylist()
    assert [part.to_pylist() for part in cut_by_bytes(array.slice(0, 0), 5)] == [[]]
    only_null = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int32()), pa.array([], pa.string()))
    assert [part.to_pylist() for part in cut_by_bytes(only_null, 5)] == [[None, None]]
    parts = [array.slice(start, 1) for start in range(7)]
    assert [len(each) for each in joined(parts, 10**9, 3)] == [3, 3, 1]
    assert [each.to_pylist() for each in joined(parts, 10**9, 100)] == [array.to_pylist()]
    assert [len(each) for each in joined(iter([array, array]), 1, 100)] == [7, 7]
    assert list(joined([], 5, 5)) == []


@pytest.mark.parametrize(
    ("header", "size"),
    [
        (b"\x15\x04\x15\x0e", 7),
        (b"\x15\x04\x15\x80\x80\x80\x01", 1 << 20),
        (b"\x15\x00\x15\x0e", 0),
        (b"\x15\x04\x15\x0d", 0),
        (b"\x15\x04\x15\x80\x80", 0),
        (b"\x15\x04\x19\x0e", 0),
        (b"\x25\x04\x15\x0e", 0),
        (b"\x15" + b"\xff" * 20, 0),
        (b"", 0),
    ],
)
def test_the_header_of_a_dictionary_page(header: bytes, size: int, tmp_path: Path) -> None:
    (tmp_path / "page").write_bytes(b"PAR1" + header)
    with open_file(str(tmp_path / "page")) as file:
        assert dictionary_page_bytes(file, 4) == size
