"""Hostile datasets: sound datasets with seeded changes that aim at excessive cost or wrong reads.

A change is a function of a random generator and the dataset's folder. tests/fuzz/bounded_run.py defines the limits of
a reader.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import random
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mutations import HUGE, VALUES, places

from flat_tokens import Writer
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import SplitRecord, read_manifest

Change = Callable[[random.Random, Path], None]

BOMB_BYTES = 2**30
CODECS = (
    {"id": "pickle"},
    {"id": "zlib", "level": 1},
    {"id": "delta", "dtype": "<u8", "astype": "|i1"},
    {"id": "delta", "dtype": "<u4"},
    {"id": "astype", "encode_dtype": "|i1", "decode_dtype": "|S100000000"},
    {"id": "packbits"},
    {"id": "shuffle", "elementsize": 2**31},
    {"id": "crc32"},
    {"id": "fixedscaleoffset", "scale": 1, "offset": 0, "dtype": "<u8", "astype": "|u1"},
)


LAYOUTS = (
    ArrayLayout.create(2, 64),
    ArrayLayout.create(2, 1024, compression="none"),
    ArrayLayout.create(2, 64, compression="lz4-bitshuffle"),
    ArrayLayout.create(3, 16, 64),
    ArrayLayout.create(3, 16, 64, "none"),
)


def write_sound(root: Path, rng: random.Random) -> None:
    """Write a small dataset with a manifest, in one of the layouts, half of them with a loss mask."""
    layout = rng.choice(LAYOUTS)
    has_mask = rng.random() < 0.5
    model = {"type": "BPE", "vocab": {chr(ord("A") + id_): id_ for id_ in range(30)}, "merges": []}
    tokenizer = root.with_name(f"{root.name}.json")
    tokenizer.write_text(json.dumps({"model": model, "added_tokens": []}))
    facts = [{"path": "a.txt"}]
    with Writer(root, tokenizer, layout=layout, has_mask=has_mask, sources=facts) as writer:
        for name, count in (("train", 100), ("validation", 5)):
            for _ in range(count):
                ids = [rng.randrange(30) for _ in range(rng.randint(1, 9))]
                writer.add(name, ids, [rng.random() < 0.5 for _ in ids] if has_mask else None)
    tokenizer.unlink()


def files_of(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())


def metadata_of(root: Path) -> list[Path]:
    return [path for path in files_of(root) if path.name.startswith(".") or path.name == "zarr.json"]


def chunks_of(root: Path) -> list[Path]:
    return [path for path in files_of(root) if path.name.isdigit()]


def change_bytes(rng: random.Random, root: Path) -> None:
    path = rng.choice(files_of(root))
    data = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(data) + 1)
        length = rng.choice([1, 1, 1, 4, 8, 64])
        new = rng.choice([rng.randbytes(length), b"\xff" * length, bytes(length)])
        data[at : at + rng.choice([0, length])] = new
    path.write_bytes(data[: rng.choice([len(data), len(data), rng.randrange(len(data) + 1)])])


def leave_sparse_tail(rng: random.Random, root: Path) -> None:
    path = rng.choice(files_of(root))
    if rng.random() < 0.5:
        os.truncate(path, rng.choice([2**30, 2**32, 2**32 + 1, 2**36]))
        return
    data = path.read_bytes()
    at = rng.randrange(len(data) + 1)
    with path.open("wb") as file:
        file.write(data[:at])
        file.seek(rng.choice([2**30, 2**32]))
        file.write(data[at:] or b"\n")


def _edit(path: Path, edit: Callable[[Any], None]) -> None:
    value = json.loads(path.read_text())
    edit(value)
    path.write_text(json.dumps(value))


def claim_many_chunks(rng: random.Random, root: Path) -> None:
    """Claim Zarr chunks of one element, or shards of many of them."""
    count = rng.choice([2**24, 2**31, 2500000000, 2**32, 2**40, 2**62])
    for path in rng.sample([path for path in metadata_of(root) if path.name in (".zarray", "zarr.json")], 4):
        value = json.loads(path.read_text())
        if "shape" not in value:
            continue
        value["shape"] = [rng.choice([count, count, *value["shape"]])]
        if "chunks" in value:
            value["chunks"] = [1]
        else:
            per_shard = rng.choice([1, 2**10, 2**20, 2**24])
            value["chunk_grid"]["configuration"]["chunk_shape"] = [per_shard]
            value["codecs"][0]["configuration"]["chunk_shape"] = [1]
            for chunk in chunks_of(path.parent):
                os.truncate(chunk, 16 * per_shard + 4)
        path.write_text(json.dumps(value))
    if rng.random() < 0.8:
        (root / "manifest.json").unlink()


def claim_huge_numbers(rng: random.Random, root: Path) -> None:
    def edit(value: Any) -> None:
        numbers = [(node, key) for node, key in places(value) if type(node[key]) is int]
        for node, key in rng.sample(numbers, min(len(numbers), rng.randint(1, 3))):
            node[key] = rng.choice(HUGE)

    for path in rng.sample(metadata_of(root), rng.randint(1, 3)):
        _edit(path, edit)
    if rng.random() < 0.7:
        (root / "manifest.json").unlink()


def change_metadata(rng: random.Random, root: Path) -> None:
    def edit(value: Any) -> None:
        found = places(value)
        for node, key in rng.sample(found, min(len(found), rng.randint(1, 2))):
            node[key] = rng.choice([*VALUES, *HUGE])
        if "filters" in value and rng.random() < 0.5:
            value["filters"] = rng.choices(CODECS, k=rng.choice([1, 1, 2, 9]))
            value["compressor"] = rng.choice([value["compressor"], None, *CODECS])
        if "codecs" in value and rng.random() < 0.5:
            extra = {"name": f"numcodecs.{rng.choice(CODECS)['id']}", "configuration": {}}
            value["codecs"] = rng.choice(
                [[extra, *value["codecs"]], [*value["codecs"], extra], value["codecs"] * 2]
            )

    _edit(rng.choice(metadata_of(root)), edit)
    if rng.random() < 0.7:
        (root / "manifest.json").unlink()


def change_manifest(rng: random.Random, root: Path) -> None:
    """Change the manifest, and make its own hash match."""
    manifest = read_manifest(root)
    assert manifest is not None
    counts = {
        name: SplitRecord(*(rng.choice([value, value, abs(rng.choice(HUGE)) % 2**31]) for value in record))
        for name, record in manifest.splits.items()
    }
    options = {"a": [[]] * rng.choice([0, 10, 10**5])}
    files = manifest.files._replace(bytes=rng.choice([manifest.files.bytes, 2**40]))
    changed = dataclasses.replace(manifest, splits=counts, files=files, options=options)
    data = changed.to_bytes()
    if rng.random() < 0.3:
        data = json.dumps(json.loads(data), indent=rng.choice([None, 1])).encode()
    (root / "manifest.json").write_bytes(data)


@functools.cache
def bomb(kind: str) -> bytes:
    """Return a stream of BOMB_BYTES zeros, built by repeating one part, since compressing zeros takes seconds."""
    part = bytes(2**20)
    times = BOMB_BYTES // len(part)
    if kind == "gzip":
        stream = zlib.compressobj(1, zlib.DEFLATED, 31)
        head = stream.compress(part) + stream.flush(zlib.Z_FULL_FLUSH)
        return head + (stream.compress(part) + stream.flush(zlib.Z_FULL_FLUSH)) * times
    # A header without a size, then blocks of one byte repeated 128 KiB times.
    block = (2**17 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    return b"\x28\xb5\x2f\xfd\x00\x70" + block * (BOMB_BYTES // 2**17)


def put_bomb(rng: random.Random, root: Path) -> None:
    kind = rng.choice(["gzip", "zstd"])
    names = [
        f"{split}/{name}" for split in ("train", "validation") for name in ("encoded_tokens", "seq_starts")
    ]
    array = root / rng.choice([*names, *(f"loss_mask/{split}" for split in ("train", "validation"))])
    chunk = rng.choice(chunks_of(array))
    if (array / ".zarray").is_file():
        filters = rng.choice([None, [{"id": "delta", "dtype": "<u4"}]])
        size = rng.choice([64, 64, 2**16, 2**20])

        def edit(value: Any) -> None:
            value.update(compressor={"id": kind}, filters=filters, chunks=[size])

        _edit(array / ".zarray", edit)
        chunk.write_bytes(bomb(kind))
    else:
        options = {"level": 1, "checksum": False} if kind == "zstd" else {"level": 1}
        _edit(array / "zarr.json", lambda value: _shard_of(value, kind, options, rng))
        with chunk.open("r+b") as file:
            index = np.frombuffer(file.read()[-68:-4], "<u8").reshape(-1, 2).copy()
            stop = file.seek(0, os.SEEK_END)
            file.write(bomb(kind))
            index[rng.randrange(len(index))] = stop, len(bomb(kind))
            file.write(index.tobytes())
    if rng.random() < 0.8:
        (root / "manifest.json").unlink()


def _shard_of(value: Any, kind: str, options: dict[str, Any], rng: random.Random) -> None:
    sharding = value["codecs"][0]["configuration"]
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    sharding["codecs"] = [little, {"name": kind, "configuration": options}]
    sharding["index_codecs"] = [little]
    if rng.random() < 0.5:
        value["chunk_key_encoding"] = {
            "name": "v2",
            "separator": ".",
        }  # left to zarr, which then finds no files
    if rng.random() < 0.3:
        size = rng.choice([2**16, 2**20])
        sharding["chunk_shape"] = [size]
        value["chunk_grid"]["configuration"]["chunk_shape"] = [size * 4]


def put_link(rng: random.Random, root: Path) -> None:
    """Replace a file or folder by a link to its moved copy; a reader that follows the link reads the original
    dataset.
    """
    entry = rng.choice(sorted(root.rglob("*")))
    outside = root.parent / "outside"
    entry.rename(outside)
    entry.symlink_to(rng.choice([outside, os.path.relpath(outside, entry.parent)]))


def put_special_file(rng: random.Random, root: Path) -> None:
    entry = rng.choice(sorted(root.rglob("*")))
    if entry.is_dir():
        shutil.rmtree(entry)
    else:
        entry.unlink()
    rng.choice([os.mkfifo, Path.mkdir, Path.touch])(entry)


CHANGES: dict[str, Change] = {
    "bytes": change_bytes,
    "sparse": leave_sparse_tail,
    "many zarr chunks": claim_many_chunks,
    "huge numbers": claim_huge_numbers,
    "metadata": change_metadata,
    "manifest": change_manifest,
    "bomb": put_bomb,
    "link": put_link,
    "special file": put_special_file,
}
