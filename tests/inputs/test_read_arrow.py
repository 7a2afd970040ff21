"""Parquet and Arrow: every type of text column, bad rows by their row number, and damage in one line."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from readings import read

from tokenmill.inputs import arrow_texts
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.rules import MarkRules

TEXTS = ["", "é", None, "a" * 3000, "漢" * 5, "b", "<|endoftext|>"]
SUFFIXES = [".arrow", ".feather", ".parquet"]
TYPES = [
    *("string", "large_string", "binary", "large_binary", "string_view", "binary_view"),
    *("dictionary", "large_dictionary"),
]


def write(path: Path, values: Any, rows: int = 7, codec: str | None = None) -> Path:
    """A table with the values as a column and within a struct, in row groups or record batches of `rows`."""
    outer = pa.StructArray.from_arrays([values], ["inner"])
    table = pa.table({"id": pa.array(range(len(values))), "text": values, "outer": outer})
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows, compression=codec or "none", data_page_size=500)
        return path
    make = pa.ipc.new_stream if path.suffix == ".arrow" else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with make(str(path), table.schema, options=options) as writer:
        for batch in table.to_batches(max_chunksize=rows):
            writer.write_batch(batch)
    return path


def column(texts: list[str | None], kind: str) -> Any:
    values = pa.array(texts, pa.large_string() if kind == "large_dictionary" else pa.string())
    return values.dictionary_encode() if "dictionary" in kind else values.cast(getattr(pa, kind)())


@pytest.mark.slow
@pytest.mark.promise("input-formats")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", TYPES)
def test_every_type_gives_its_rows_in_order(
    kind: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_texts, "BATCH_BYTES", 5000)
    monkeypatch.setattr(arrow_texts, "MAX_BATCH_ROWS", 5)
    texts = random.Random(kind).choices(TEXTS, k=100)
    good = [text for text in texts if text is not None]
    nulls = [row for row, text in enumerate(texts) if text is None]
    for codec in (None, "zstd"):
        rows = 100 if suffix == ".parquet" and "view" in kind else 7  # pyarrow cannot write more row groups
        path = write(tmp_path / f"in{suffix}", column(texts, kind), rows, codec)
        for field in ("text", "/outer/inner"):
            for pieces in (1, 3, 50):
                documents, intake = read(path, pieces, text_field=field, on_error="quarantine")
                assert documents == good
                assert intake.records == len(texts)
                assert [record.place for record in intake.kept] == nulls


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_bytes_that_are_not_text(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"in{suffix}", pa.array([b"ok", b"a\xff", b"\xe6\xbc", b"\xa2", b"end"]), rows=2)
    documents, intake = read(path, 3, on_error="quarantine")
    assert documents == ["ok", "end"]
    assert [(record.place, record.data) for record in intake.kept] == [
        (1, b"a\xff"),
        (2, b"\xe6\xbc"),
        (3, b"\xa2"),
    ]
    with pytest.raises(BadInput, match=rf"in\{suffix}.*row 1.*byte 1"):
        read(path)
    assert read(path, invalid="replace")[0] == ["ok", "a\ufffd", "\ufffd", "\ufffd", "end"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_that_hold_no_text(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"in{suffix}", pa.array(["x"]))
    for field in ("body", "id", "outer", "/text/inner", "/outer/none"):
        with pytest.raises(BadInput, match=rf"in\{suffix}.*--text-field"):
            read(path, text_field=field)
    with pytest.raises(BadInput, match=r"'body'.*--prompt-field"):
        read(path, marks=MarkRules("body", "text"))
    (tmp_path / f"no{suffix}").write_bytes(b"none at all")
    with pytest.raises(BadInput, match=rf"no\{suffix}"):
        read(tmp_path / f"no{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_two_columns_of_one_name(suffix: str, tmp_path: Path) -> None:
    """One of them was taken, without a word."""
    path = tmp_path / f"in{suffix}"
    table = pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    if suffix == ".parquet":
        pq.write_table(table, path)
    else:
        make = pa.ipc.new_stream if suffix == ".arrow" else pa.ipc.new_file
        with make(str(path), table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(BadInput, match=rf"in\{suffix}"):
        read(path)


@pytest.mark.parametrize("suffix", [".feather", ".parquet"])
def test_other_batches_are_read_beside_a_damaged_one(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"in{suffix}", pa.array([f"{row:04} " * 40 for row in range(40)]), 10, "zstd")
    data = bytearray(path.read_bytes())
    third = len(data) // 3
    data[third : third + 100] = bytes(100)
    path.write_bytes(data)
    for pieces in (1, 4):
        documents, intake = read(path, pieces, on_error="skip")
        assert 10 <= len(documents) <= 30
        assert documents == sorted(documents)
        assert intake.unreadable


@pytest.mark.parametrize("number", [-1, 2])
def test_an_index_outside_its_dictionary(number: int, tmp_path: Path) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0, number, 1]), pa.array(["x", "y"]), safe=False)
    with pytest.raises(BadInput):
        read(write(tmp_path / "in.arrow", values))


def test_dictionaries_that_change_within_a_stream(tmp_path: Path) -> None:
    schema = pa.schema([("text", pa.dictionary(pa.int8(), pa.string()))])
    with pa.ipc.new_stream(str(tmp_path / "in.arrow"), schema) as writer:
        for texts in (["a", "b"], ["c", "d"]):
            array = pa.array(texts).dictionary_encode().cast(schema[0].type)
            writer.write_batch(pa.record_batch([array], schema))
    assert read(tmp_path / "in.arrow")[0] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("suffix", [".arrow", ".feather"])
def test_extra_bytes_after_the_end(suffix: str, tmp_path: Path) -> None:
    """What followed the end was lost in silence."""
    path = write(tmp_path / f"in{suffix}", pa.array([str(number) for number in range(20)]))
    whole = path.read_bytes()
    extra = [bytes(64), b"a"] if suffix == ".feather" else [whole, bytes(64), b"a"]
    for damaged in (*(whole + more for more in extra), bytes(64), bytes(4096)):
        path.write_bytes(damaged)
        with pytest.raises(BadInput, match=rf"in\{suffix}"):
            read(path)


# A separate process, because Arrow measures the peak of the whole process.
READ = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import pyarrow
from readings import read
documents, _ = read(Path(sys.argv[1]))
print(len(documents), pyarrow.default_memory_pool().max_memory())
"""


def test_memory_follows_the_rows_that_are_read_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    table = pa.table({"text": [f"{row:05}" * 2000 for row in range(8000)]})
    pq.write_table(table, path, compression="zstd", write_batch_size=64)
    done = subprocess.run(
        [sys.executable, "-c", READ, path, Path(__file__).parent], capture_output=True, text=True, check=True
    )
    rows, peak_bytes = map(int, done.stdout.split())
    assert rows == 8000
    assert peak_bytes < 40 << 20  # of 80 MB


def test_rows_that_a_file_stores_once(tmp_path: Path) -> None:
    """A file of a few hundred bytes with far larger rows."""
    texts = pa.array(["x" * 100_000]).dictionary_encode()
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 500, pa.int32()), texts.dictionary)
    for stored in (False, True):
        pq.write_table(pa.table({"text": values}), tmp_path / "in.parquet", store_schema=stored)
        documents, _ = read(tmp_path / "in.parquet", 2)
        assert documents == ["x" * 100_000] * 500
