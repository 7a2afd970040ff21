"""Token files of other tools, read and written by their documented layout, without code of this project or the
tools.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np

Documents = list[list[int]]


def write_megatron(prefix: Path, documents: Documents, dtype: str = "uint16") -> None:
    """Write PREFIX.bin and PREFIX.idx, one sequence per document."""
    code = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}[dtype]
    lengths = [len(ids) for ids in documents]
    pointers = [sum(lengths[:at]) * np.dtype(dtype).itemsize for at in range(len(lengths))]
    with prefix.with_suffix(".idx").open("wb") as file:
        file.write(b"MMIDIDX\x00\x00" + struct.pack("<QB", 1, code))
        file.write(struct.pack("<QQ", len(documents), len(documents) + 1))
        file.write(struct.pack(f"<{len(lengths)}i", *lengths) + struct.pack(f"<{len(lengths)}q", *pointers))
        file.write(struct.pack(f"<{len(lengths) + 1}q", *range(len(lengths) + 1)))
    np.array([id_ for ids in documents for id_ in ids], dtype).tofile(prefix.with_suffix(".bin"))


def read_megatron(prefix: Path) -> Documents:
    """Return the documents of PREFIX.bin and PREFIX.idx."""
    index = prefix.with_suffix(".idx").read_bytes()
    magic, version, code, sequences, borders = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version) == (b"MMIDIDX\x00\x00", 1)
    at = 34
    lengths = struct.unpack_from(f"<{sequences}i", index, at)
    pointers = struct.unpack_from(f"<{sequences}q", index, at + 4 * sequences)
    documents = struct.unpack_from(f"<{borders}q", index, at + 12 * sequences)
    assert len(index) == at + 12 * sequences + 8 * borders
    assert documents == tuple(range(sequences + 1))
    dtype = np.dtype({8: "<u2", 4: "<i4"}[code])
    data = prefix.with_suffix(".bin").read_bytes()
    return [
        np.frombuffer(data, dtype, length, pointer).tolist()
        for length, pointer in zip(lengths, pointers, strict=True)
    ]


def write_datatrove(path: Path, documents: Documents, dtype: str = "uint16") -> None:
    """Write NAME.ds and NAME.ds.index."""
    np.array([id_ for ids in documents for id_ in ids], dtype).tofile(path)
    np.cumsum([len(ids) for ids in documents], dtype=np.uint64).tofile(f"{path}.index")


def _table(items: list[bytes], settings: bytes = b"") -> bytes:
    first = 4 * (len(items) + 2) + len(settings)
    ends = np.cumsum([first, *map(len, items)]).astype("<u4")
    return struct.pack("<I", len(items)) + ends.tobytes() + settings + b"".join(items)


def write_mds(folder: Path, documents: Documents, dtype: str = "uint16", zstd: bool = False) -> None:
    """Write index.json and a shard with a text column and a column `tokens` of this type."""
    folder.mkdir()
    samples = []
    for ids in documents:
        values = np.array(ids, dtype).tobytes()
        column = bytes([1 << 2 | 2]) + struct.pack("<I", len(ids)) + values  # one axis, its size in 4 bytes
        samples.append(struct.pack("<II", 3, len(column)) + b"abc" + column)
    raw = _table(samples, b'{"format": "mds"}')
    packed = numcodecs.Zstd(1).encode(raw)
    (folder / ("shard.00000.mds.zstd" if zstd else "shard.00000.mds")).write_bytes(packed if zstd else raw)
    shard: dict[str, Any] = {
        "column_encodings": ["str", f"ndarray:{dtype}"],
        "column_names": ["id", "tokens"],
        "column_sizes": [None, None],
        "compression": "zstd" if zstd else None,
        "format": "mds",
        "hashes": [],
        "raw_data": {"basename": "shard.00000.mds", "bytes": len(raw), "hashes": {}},
        "samples": len(samples),
        "size_limit": 67108864,
        "version": 2,
        "zip_data": {"basename": "shard.00000.mds.zstd", "bytes": len(packed), "hashes": {}}
        if zstd
        else None,
    }
    (folder / "index.json").write_text(json.dumps({"shards": [shard], "version": 2}))


def write_litdata(folder: Path, documents: Documents, dtype: str = "uint16", zstd: bool = False) -> None:
    """Write index.json and a chunk of items without headers."""
    folder.mkdir()
    raw = _table([np.array(ids, dtype).tobytes() for ids in documents])
    name = "chunk-0-0.zstd.bin" if zstd else "chunk-0-0.bin"
    (folder / name).write_bytes(numcodecs.Zstd(1).encode(raw) if zstd else raw)
    number = {"uint16": 20, "int32": 16, "int64": 18}[dtype]
    index = {
        "chunks": [
            {
                "chunk_bytes": len(raw),
                "chunk_size": len(documents),
                "dim": sum(map(len, documents)),
                "filename": name,
            }
        ],
        "config": {
            "compression": "zstd" if zstd else None,
            "chunk_size": None,
            "chunk_bytes": 64000000,
            "data_format": [f"no_header_tensor:{number}"],
            "data_spec": "",
            "encryption": None,
            "item_loader": "TokensLoader",
        },
    }
    (folder / "index.json").write_text(json.dumps(index))
