"""Documents as files of every kind that can be read, for the tests."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

from strategies import COMPRESSIONS, END, TAR_FORMATS, compressed, csv_bytes, tar_bytes

PACKED = COMPRESSIONS[1:]
KINDS = [f"{form}.{c}" for form in ("txt", "jsonl") for c in COMPRESSIONS]
KINDS += ["parquet.none", "csv.none", "tsv.xz", "arrow.none", "feather.none", "tar.none", "tar.xz"]


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


def write_kind(path: Path, documents: Sequence[str], kind: str, members: int = 1, seed: int = 0) -> Path:
    """The documents as a file of the kind, which gets the kind's suffix: "jsonl.gz" -> path.jsonl.gz."""
    form, compression = kind.split(".")
    path = path.with_name(path.name + f".{form}" + (f".{compression}" if compression != "none" else ""))
    if form in ("parquet", "arrow", "feather"):
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table({"id": list(range(len(documents))), "text": pyarrow.array(documents, "string")})
        if form == "parquet":
            pyarrow.parquet.write_table(table, path, row_group_size=5, write_page_checksum=True)
            return path
        make = pyarrow.ipc.new_stream if form == "arrow" else pyarrow.ipc.new_file
        options = pyarrow.ipc.IpcWriteOptions(compression="zstd" if seed % 2 else None)
        with make(str(path), table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=5)
        return path
    if form in ("csv", "tsv"):
        records = [{"id": index, "text": text} for index, text in enumerate(documents)]
        data = csv_bytes(records, "," if form == "csv" else "\t", None)
    elif form == "tar":
        data = tar_bytes([text.encode() for text in documents], TAR_FORMATS[seed % 3])
    else:
        data = json_lines(documents, seed) if form == "jsonl" else END.join(documents).encode()
    path.write_bytes(compressed(data, compression, members))
    return path
