"""Arrow IPC, streams and files: rows in order in however many pieces, and damage told with file and byte."""

from __future__ import annotations

import base64
import contextlib
import json
import random
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from readings import read

from tokenmill.errors import BadArgument
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.sources import find_sources

TEXTS = ["", "é", None, "a" * 3000, "漢" * 5, "b"]


def write(path: Path, values: Any, rows: int = 7, options: Any = None) -> Path:
    outer = pa.StructArray.from_arrays([values], ["inner"])
    table = pa.table({"id": pa.array(range(len(values))), "text": values, "outer": outer})
    make = pa.ipc.new_stream if path.suffix == ".arrow" else pa.ipc.new_file
    with make(str(path), table.schema, options=options) as writer:
        for batch in table.to_batches(max_chunksize=rows):
            writer.write_batch(batch)
    return path


@pytest.mark.parametrize("suffix", [".arrow", ".feather"])
@pytest.mark.parametrize("kind", ["string", "large_string", "binary", "string_view", "dictionary"])
def test_every_type_gives_its_rows_in_order(kind: str, suffix: str, tmp_path: Path) -> None:
    rng = random.Random(kind)
    texts = rng.choices(TEXTS, k=100)
    values = pa.array(texts, pa.string())
    values = values.dictionary_encode() if kind == "dictionary" else values.cast(getattr(pa, kind)())
    good = [text for text in texts if text is not None]
    for codec in (None, "lz4", "zstd"):
        path = write(tmp_path / f"in{suffix}", values, options=pa.ipc.IpcWriteOptions(compression=codec))
        for field in ("text", "/outer/inner"):
            for pieces in (1, 3, 50):
                documents, intake = read(path, pieces, text_field=field, on_error="quarantine")
                assert documents == good
                assert intake.records == len(texts)
                nulls = [row for row, text in enumerate(texts) if text is None]
                assert [record.place for record in intake.kept] == nulls


@pytest.mark.parametrize("suffix", [".arrow", ".feather"])
def test_big_endian_numbers_are_named(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"in{suffix}", pa.array(TEXTS))
    data = bytearray(path.read_bytes())
    # In the schema's flatbuffer, the field of the byte order is absent; let it refer to some number 1.
    start = data.index(b"\xff\xff\xff\xff") + 8
    message = start + int.from_bytes(data[start : start + 4], "little")
    fields = message - int.from_bytes(data[message : message + 4], "little", signed=True)
    header_at = message + int.from_bytes(data[fields + 8 : fields + 10], "little")
    schema = header_at + int.from_bytes(data[header_at : header_at + 4], "little")
    fields = schema - int.from_bytes(data[schema : schema + 4], "little", signed=True)
    assert data[fields + 4 : fields + 6] == b"\0\0"
    one = next(at for at in range(schema + 2, len(data), 2) if data[at : at + 2] == b"\1\0")
    data[fields + 4 : fields + 6] = (one - schema).to_bytes(2, "little")
    path.write_bytes(data)
    with pytest.raises(BadInput, match="in.*big-endian"):
        read(path, on_error="fail")


OF_POLARS = {  # write_ipc of polars 2.1, by zlib, in base 85
    (): (
        "c-nIe3i1y(WME)nU|{(4|Nnmx1`wMONOCc7GjIS&7KR@{aUP%u2N1$!LF(TC#dUzR0uW08F(Z%=U=RYz2`~tP)q->}"
        "F#G|kV_{$c>nTaCC;^E9h5j=jnWF(UM+7Ry12jhf$l`#S0RvQbOCyls2o3}Q&-X40"
    ),
    ("a", "é", ""): (
        "c-nIe3i1y(WME)nU|{(4|Nnmx1`wMONOCc7GjIS&7KR@{aUP%u2N1$!LF(TC#dUzR0uW08F(Z%=U=RYz2`~tP)q->}"
        "F#G|kV_{$c>nTaCC;^E9h5pY#GRJ`d0wDG?19b|6&Ef&_o&n{Vq4FU>tN~TWz`zHzmj$Rs04&1DfC`uxa03G*Hb@^c"
        "nmkA>5zVZ_D;bCeApbF-`OgCGKTyaB0bR`k3?&}0T@_G$3!t<Ent4=@gPA~vBRKK_Y(qb<"
    ),
}


@pytest.mark.parametrize("texts", OF_POLARS, ids=len)
def test_a_file_whose_schema_has_no_length_in_front(texts: tuple[str, ...], tmp_path: Path) -> None:
    """It was refused as no Arrow."""
    path = tmp_path / "in.arrow"
    data = zlib.decompress(base64.b85decode(OF_POLARS[texts]))
    path.write_bytes(data)
    for pieces in (1, 3):
        documents, intake = read(path, pieces)
        assert (tuple(documents), intake.records) == (texts, len(texts))
    for size in (9, 20, len(data) - 1, len(data) - 20):
        path.write_bytes(data[:size])
        with pytest.raises(BadInput, match=r"in\.arrow"):
            read(path)
    rng = random.Random(len(data))
    for _ in range(300):
        broken = bytearray(data)
        broken[rng.randrange(8, len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        with contextlib.suppress(BadInput):
            read(path)


@pytest.mark.parametrize("column", ["text", "other"])
def test_a_dictionary_that_follows_is_named(column: str, tmp_path: Path) -> None:
    """In a file the dictionary may stand behind the record batches, as polars writes it."""
    columns = {"text": pa.array(["a", "b"]), "other": pa.array(["c", "d"])}
    columns[column] = columns[column].dictionary_encode()
    path = tmp_path / "in.feather"
    with pa.ipc.new_file(str(path), pa.table(columns).schema) as writer:
        writer.write_table(pa.table(columns))
    data = path.read_bytes()
    starts = [at for at in range(0, len(data), 8) if data[at : at + 4] == b"\xff\xff\xff\xff"]
    _, dictionary, records, end = starts[:4]
    moved = data[:dictionary] + data[records:end] + data[dictionary:records] + data[end:]
    path.write_bytes(moved)
    with pytest.raises(BadInput):
        read(path)


def test_feather_version_1_is_named(tmp_path: Path) -> None:
    path = tmp_path / "in.feather"
    path.write_bytes(b"FEA1" + bytes(28) + b"FEA1")
    with pytest.raises(BadInput, match=r"in\.feather.*.*write_feather"):
        read(path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = write(tmp_path / "in.arrow", pa.array([b"ok", b"a\xff", b"end"]))
    documents, intake = read(path, on_error="quarantine")
    assert (documents, [record.place for record in intake.kept]) == (["ok", "end"], [1])
    with pytest.raises(BadInput, match=r"in\.arrow.*row 1.*byte 1"):
        read(path)


def test_damage_never_is_more_than_an_error(tmp_path: Path) -> None:
    """Whatever byte is changed or wherever the file ends: other documents, or one line that names the file."""
    path = write(tmp_path / "in.arrow", pa.array(["some text", "more", None, "end"] * 5))
    data = path.read_bytes()
    rng = random.Random(1)
    refused: list[str] = []
    for turn in range(400):
        damaged = bytearray(data)
        if turn % 4:
            for _ in range(rng.randrange(1, 4)):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        else:
            del damaged[rng.randrange(len(damaged)) :]
        path.write_bytes(damaged)
        refused += (error for _, error in read(path, on_error="skip")[1].unreadable)
    assert len(refused) > 50
    assert all("in.arrow" in message and "\n" not in message for message in refused)


def test_columns_that_hold_no_text(tmp_path: Path) -> None:
    path = write(tmp_path / "in.feather", pa.array(["x"]))
    with pytest.raises(BadInput, match="--text-field"):
        read(path, text_field="body")
    with pytest.raises(BadInput):
        read(path, text_field="id")
    (tmp_path / "no.arrow").write_bytes(b"no arrow at all")
    with pytest.raises(BadInput, match=r"no\.arrow.*byte 0"):
        read(tmp_path / "no.arrow")


def saved(folder: Path, parts: int) -> Path:
    """A folder as save_to_disk writes it, with a file beside its data that is none of it."""
    folder.mkdir(parents=True)
    names = [f"data-{number:05}-of-{parts:05}.arrow" for number in range(parts)]
    for number, name in enumerate(names):
        write(folder / name, pa.array([f"{folder.name} {number}", "x"]))
    write(folder / "cache-123.arrow", pa.array(["not this"]))
    (folder / "dataset_info.json").write_text("{}")
    state = {"_data_files": [{"filename": name} for name in reversed(names)], "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    return folder


def test_folders_of_save_to_disk(tmp_path: Path) -> None:
    folder = saved(tmp_path / "one", 3)
    texts = [document for source in find_sources([str(folder)]) for document in read(Path(source.path))[0]]
    assert texts == ["one 2", "x", "one 1", "x", "one 0", "x"]
    both = tmp_path / "both"
    for split in ("train", "test"):
        saved(both / split, 1)
    (both / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    names = [Path(source.path).parent.name for source in find_sources([str(both)])]
    assert names == ["train", "test"]
    for content in ("[]", '{"splits": ["train", "gone"]}'):
        (both / "dataset_dict.json").write_text(content)
        with pytest.raises(BadArgument, match=r"dataset_dict\.json: "):
            find_sources([str(both)])
    (folder / "state.json").write_text('{"_indices_data_files": [{"filename": "x"}], "_data_files": []}')
    with pytest.raises(BadArgument):
        find_sources([str(folder)])


@pytest.mark.parametrize("number", [-1, 2])
def test_a_number_outside_its_dictionary(number: int, tmp_path: Path) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0, number, 1]), pa.array(["x", "y"]), safe=False)
    with pytest.raises(BadInput):
        read(write(tmp_path / "in.arrow", values))


def test_a_dictionary_behind_the_first_record_batch(tmp_path: Path) -> None:
    """Its numbers would stand for the former texts."""
    schema = pa.schema([("text", pa.dictionary(pa.int8(), pa.string()))])
    with pa.ipc.new_stream(str(tmp_path / "in.arrow"), schema) as writer:
        for texts in (["a", "b"], ["c", "d"]):
            writer.write_batch(
                pa.record_batch([pa.array(texts).dictionary_encode().cast(schema[0].type)], schema)
            )
    with pytest.raises(BadInput, match=r"in\.arrow"):
        read(tmp_path / "in.arrow")


@pytest.mark.parametrize("suffix", [".arrow", ".feather"])
def test_what_is_cut_off_or_goes_on_behind_its_end(suffix: str, tmp_path: Path) -> None:
    """A file that was cut between two record batches, and what followed the end, was lost in silence."""
    path = write(tmp_path / f"in{suffix}", pa.array([str(number) for number in range(20)]))
    whole = path.read_bytes()
    starts = [at for at in range(0, len(whole), 8) if whole[at : at + 4] == b"\xff\xff\xff\xff"]
    assert len(read(path)[0]) == 20
    for damaged in (whole + whole, whole + bytes(64), whole + b"a", bytes(64), bytes(4096)):
        path.write_bytes(damaged)
        with pytest.raises(BadInput):
            read(path)
    for size in (starts[2], starts[-1], starts[-1] + 4, len(whole) - 1, len(whole) - 20):
        path.write_bytes(whole[:size])
        if suffix == ".arrow" and size in starts:  # which a stream may do
            assert len(read(path)[0]) == (7 if size == starts[2] else 20)
        else:
            with pytest.raises(BadInput):
                read(path)


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    """One of them was taken, without a word."""
    table = pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    with pa.ipc.new_file(str(tmp_path / "in.feather"), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(BadInput, match=r"in\.feather"):
        read(tmp_path / "in.feather")
