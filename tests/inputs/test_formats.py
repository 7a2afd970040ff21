"""Every format, compression and division into pieces gives the documents of a naive reader of the whole file."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from input_kinds import COMPRESSIONS, write_kind
from readings import read

from tokenmill.inputs.errors import BadInput, InvalidText

KINDS = ["parquet.none", "arrow.none", "feather.none"]
KINDS += [f"{form}.{compression}" for form in ("jsonl", "csv", "tsv", "tar") for compression in COMPRESSIONS]
TEXTS = st.lists(
    st.text(st.characters(codec="utf-8"), max_size=30)
    | st.sampled_from(["", "\n", '"', "a,b\tc", "\r\n", "\x00", "é" * 3000, "漢" * 511]),
    max_size=40,
)


def _zstd(data: bytes) -> bytes:
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
        return stream.read()


DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gz": gzip.decompress,
    "zst": _zstd,
    "bz2": bz2.decompress,
    "xz": lzma.decompress,
}


def naive(path: Path, kind: str) -> list[str]:
    """The documents of a file by the usual library, which reads all of it at once."""
    form, compression = kind.split(".")
    data = DECOMPRESS[compression](path.read_bytes())
    if form == "parquet":
        return pyarrow.parquet.read_table(io.BytesIO(data))["text"].to_pylist()
    if form == "arrow":
        return pyarrow.ipc.open_stream(data).read_all()["text"].to_pylist()
    if form == "feather":
        return pyarrow.ipc.open_file(data).read_all()["text"].to_pylist()
    if form == "jsonl":
        return [json.loads(line)["text"] for line in data.split(b"\n") if line.strip()]
    if form == "tar":
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            members = [member for member in archive if member.isfile() and "/." not in member.name[1:]]
            return [archive.extractfile(member).read().decode() for member in members]  # type: ignore[union-attr]
    rows = csv.DictReader(io.StringIO(data.decode(), newline=""), delimiter="," if form == "csv" else "\t")
    return [row["text"] for row in rows]


@settings(deadline=None)
@given(
    texts=TEXTS,
    kind=st.sampled_from(KINDS),
    members=st.integers(1, 3),
    seed=st.integers(0, 5),
    pieces=st.integers(1, 40),
    block_bytes=st.sampled_from([1 << 10, 1 << 16]),
)
def test_equal_to_a_naive_reader(
    texts: list[str], kind: str, members: int, seed: int, pieces: int, block_bytes: int
) -> None:
    with TemporaryDirectory() as folder:
        path = write_kind(Path(folder) / "in", texts, kind, members, seed)
        pieces = max(1, min(pieces, path.stat().st_size))  # none is empty
        documents, intake = read(path, pieces, block_bytes=block_bytes)
        assert documents == naive(path, kind) == texts
        assert (intake.records, intake.skipped, intake.unreadable) == (len(texts), {}, [])


@settings(deadline=None)
@given(
    texts=TEXTS,
    kind=st.sampled_from([kind for kind in KINDS if kind.endswith((".gz", ".zst")) or kind in KINDS[:3]]),
    part=st.floats(0, 1, exclude_max=True),
    pieces=st.integers(1, 5),
)
def test_a_truncated_file_is_one_error(texts: list[str], kind: str, part: float, pieces: int) -> None:
    """Only an Arrow stream may look complete: it needs no end mark."""
    with TemporaryDirectory() as folder:
        path = write_kind(Path(folder) / "in", texts, kind)
        data = path.read_bytes()
        path.write_bytes(data[: max(5, int(part * (len(data) - 1)))])
        documents, intake = read(path, pieces, on_error="skip")
        assert documents == texts[: len(documents)]
        if kind != "arrow.none":
            assert intake.unreadable
            with pytest.raises((BadInput, InvalidText)) as caught:
                read(path, pieces)
            assert path.name in str(caught.value)
            assert str(caught.value).isprintable()
