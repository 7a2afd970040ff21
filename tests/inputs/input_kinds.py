"""Documents as files of every kind that can be read, for the tests."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import random
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

END = "<|endoftext|>"

PACKED = ["gz", "zst", "bz2", "xz"]
COMPRESSIONS = ["none", *PACKED]
KINDS = [f"{form}.{c}" for form in ("txt", "jsonl") for c in COMPRESSIONS]
KINDS += ["parquet.none", "csv.none", "tsv.xz", "arrow.none", "feather.none", "tar.none", "tar.xz"]


def _zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gz": gzip.compress,
    "zst": _zstd,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def compressed(data: bytes, compression: str, members: int = 1) -> bytes:
    """The data as so many members of about equal size, cut anywhere."""
    step = -(-len(data) // members) or 1
    parts = [data[start : start + step] for start in range(0, len(data), step)] or [b""]
    return b"".join(map(COMPRESS[compression], parts))


def json_lines(documents: Sequence[str], seed: int = 0) -> bytes:
    """One line per document, with other fields around the text, escaped in one of two ways, and blank lines between."""
    rng = random.Random(seed)
    lines = []
    for index, document in enumerate(documents):
        record = {"id": index, "text": document, "meta": {"text": "not this", "x": [1, None]}}
        keys = rng.sample(list(record), k=3)
        ascii_only = rng.random() < 0.5
        lines.append(json.dumps({key: record[key] for key in keys}, ensure_ascii=ascii_only))
        lines.extend(rng.choice(["", " \t"]) for _ in range(rng.randrange(2)))
    return "\n".join(lines).encode() + (b"\n" if rng.random() < 0.5 else b"")


def tar_of(documents: Sequence[str], seed: int = 0) -> bytes:
    """One file per document, in the three forms that there are, with a folder, a link and hidden files between them."""
    out = io.BytesIO()
    form = (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT)[seed % 3]
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for index, document in enumerate(documents):
            folder = "long/" * 30 if index % 3 == 1 and form != tarfile.USTAR_FORMAT else "./in/"
            for name, kind, data in (
                (folder, tarfile.DIRTYPE, b""),
                (f"{folder}.hidden", tarfile.REGTYPE, b"not this"),
                (f"{folder}link", tarfile.SYMTYPE, b""),
                (f"{folder}{index}.txt", tarfile.REGTYPE, document.encode()),
            ):
                member = tarfile.TarInfo(name)
                member.type, member.size, member.linkname = kind, len(data), "." * (kind == tarfile.SYMTYPE)
                archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def write_kind(path: Path, documents: Sequence[str], kind: str, members: int = 1, seed: int = 0) -> Path:
    """The documents as a file of the kind, which gets the kind's suffix: "jsonl.gz" -> path.jsonl.gz."""
    form, compression = kind.split(".")
    path = path.with_name(path.name + f".{form}" + (f".{compression}" if compression != "none" else ""))
    if form == "parquet":
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table({"id": list(range(len(documents))), "text": pyarrow.array(documents, "string")})
        pyarrow.parquet.write_table(table, path, row_group_size=5, write_page_checksum=True)
        return path
    if form in ("arrow", "feather"):
        import pyarrow

        table = pyarrow.table({"id": list(range(len(documents))), "text": pyarrow.array(documents, "string")})
        make = pyarrow.ipc.new_stream if form == "arrow" else pyarrow.ipc.new_file
        options = pyarrow.ipc.IpcWriteOptions(compression="zstd" if seed % 2 else None)
        with make(str(path), table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=5)
        return path
    if form in ("csv", "tsv"):
        rows = io.StringIO(newline="")
        writer = csv.writer(rows, delimiter="," if form == "csv" else "\t")
        writer.writerows([("id", "text"), *enumerate(documents)])
        path.write_bytes(compressed(rows.getvalue().encode(), compression, members))
        return path
    if form == "tar":
        path.write_bytes(compressed(tar_of(documents, seed), compression, members))
        return path
    data = json_lines(documents, seed) if form == "jsonl" else END.join(documents).encode()
    path.write_bytes(compressed(data, compression, members))
    return path
