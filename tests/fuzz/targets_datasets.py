"""Targets of flat_tokens: datasets, their metadata, codecs, and files of other tools."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from bounded_run import Target
from hostile_datasets import BOMB_BYTES, CHANGES, CODECS, LAYOUTS, bomb, files_of, write_sound
from mutations import HUGE, VALUES, change_bytes, change_json, change_value

sys.path.insert(0, str(Path(__file__).parents[1] / "flat_tokens"))
from exchange_layouts import write_datatrove, write_litdata, write_mds, write_megatron

import flat_tokens
from flat_tokens import statistics
from flat_tokens.errors import FlatTokensError
from flat_tokens.exchange.formats import FORMATS, ReadOptions, module_of
from flat_tokens.storage.codecs import CodecChain
from flat_tokens.storage.entries import load_entries
from flat_tokens.storage.file_digest import file_digest
from flat_tokens.storage.manifest import read_files, read_manifest, read_sources
from flat_tokens.storage.nodes import read_array, read_group
from tokenmill.errors import TokenmillError

ERRORS = (FlatTokensError, TokenmillError)

# -- datasets ------------------------------------------------------------------------------------------------------


def read_all(root: Path) -> None:
    """Run every reader of a dataset. An error ends only its reader; the first error is raised at the end."""
    errors: list[FlatTokensError] = []
    for reader in (_verify, _open, _info, _head, _sequences, _rows, _batches, _packs):
        try:
            reader(root)
        except FlatTokensError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _verify(root: Path) -> None:
    for problem in flat_tokens.verify_dataset(root).problems:
        assert problem.isprintable(), repr(problem)


def _open(root: Path) -> None:
    flat_tokens.open(root)


def _info(root: Path) -> None:
    statistics.describe(flat_tokens.open(root))


def _head(root: Path) -> None:
    path = flat_tokens.open(root).tokenizer_path
    if path is not None:
        load_entries(path)


def _sequences(root: Path) -> None:
    for split in ("train", "validation"):
        array = flat_tokens.open(root)[split]
        for index, _ in enumerate(itertools.islice(array, 200)):
            if array.loss_mask is not None:
                array.trained_of(index)


def _rows(root: Path) -> None:
    train = flat_tokens.open(root).train
    train.rows(range(min(train.row_count(7), 200)), 7)


def _batches(root: Path) -> None:
    for options in ({}, {"packed": False}):
        loader = flat_tokens.Loader(flat_tokens.open(root).train, 4, 2, streams=1, **options)
        for batch in loader.from_step(0, min(len(loader), 20), prefetch=False):
            batch.loss_mask.sum()


def _packs(root: Path) -> None:
    packed = flat_tokens.PackedSequences(
        flat_tokens.open(root).train, 16, max_packs=20, split_across_pack=True
    )
    for index in range(len(packed)):
        packed[index]


def _make_dataset(kind: str) -> Callable[[random.Random, Path], Path]:
    def make(rng: random.Random, folder: Path) -> Path:
        root = folder / "d"
        write_sound(root, rng)
        for _ in range(1 if kind == "link" else rng.choice([1, 1, 2])):
            with suppress(ValueError, IndexError, OSError, KeyError, TypeError):  # on the first result
                CHANGES[kind](rng, root)
        return root

    return make


@cache
def _sound(layout: int, wanted: str) -> dict[str, bytes]:
    """Return the files of a sound dataset with names that end in `wanted`."""
    with TemporaryDirectory() as folder:
        root = Path(folder, "d")
        write_sound(root, _Drawn(layout))
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in files_of(root)
            if path.name.endswith(wanted)
        }


class _Drawn(random.Random):
    """Draw at random, except for the layout."""

    def __init__(self, layout: int) -> None:
        super().__init__(layout)
        self._layout: int | None = layout

    def choice(self, among: Any) -> Any:
        if among is LAYOUTS:
            return LAYOUTS[self._layout or 0]
        return super().choice(among)


# -- metadata ------------------------------------------------------------------------------------------------------


def make_manifest(rng: random.Random, folder: Path) -> Path:
    """Write a manifest or one of its lists with changes, most of them with matching digests."""
    layout = rng.randrange(len(LAYOUTS))
    files = {name: _sound(layout, name)[name] for name in ("manifest.json", "files.jsonl", "sources.jsonl")}
    value = json.loads(files["manifest.json"])
    changed = rng.choice(sorted(files))
    if changed == "manifest.json":
        new = change_value(rng, value)
        value = new if isinstance(new, dict) else value
    else:
        lines = [json.loads(line) for line in files[changed].splitlines()]
        lines = change_value(rng, lines) if rng.random() < 0.8 else lines * rng.choice([0, 2, 1000])
        text = "\n".join(map(json.dumps, lines if isinstance(lines, list) else [lines])) + "\n"
        files[changed] = change_bytes(rng, text.encode()) if rng.random() < 0.2 else text.encode()
        facts = {"bytes": len(files[changed]), "xxh64": file_digest((files[changed],))}
        value[changed.partition(".")[0]] = facts | {"lines": files[changed].count(b"\n")}
    files["manifest.json"] = _hashed(value)
    if rng.random() < 0.2:
        files[changed] = change_bytes(rng, files[changed])
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def _hashed(value: dict[str, Any]) -> bytes:
    """Return the text of a manifest with its own hash."""
    text = json.dumps({**value, "manifest_sha256": "0" * 64})
    return hashlib.sha256(text.encode()).hexdigest().join(text.rsplit("0" * 64, 1)).encode()


def read_manifests(folder: Path) -> None:
    manifest = read_manifest(folder)
    assert manifest is not None
    with suppress(FlatTokensError):
        read_sources(folder, manifest, 1)
    read_files(folder, manifest)


def make_metadata(rng: random.Random, folder: Path) -> Path:
    """Write the Zarr metadata of an array and its group."""
    layout, suffixes = rng.randrange(len(LAYOUTS)), (".zarray", ".zattrs", ".zgroup", "zarr.json")
    found = [item for suffix in suffixes for item in _sound(layout, suffix).items()]
    files = {name: data for name, data in found if "train" in name}
    changed = rng.choice(sorted(files))
    for name, data in files.items():
        value = json.loads(data)
        if name == changed or rng.random() < 0.2:
            value = change_value(rng, value)
            if isinstance(value, dict) and rng.random() < 0.3:
                value["filters"] = rng.choices(CODECS, k=rng.choice([1, 2, 20]))
                value["compressor"] = rng.choice([None, *CODECS])
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    return folder


def read_metadata(folder: Path) -> None:
    read_group(folder / "train")
    for name in ("encoded_tokens", "seq_starts"):
        read_array(folder / "train" / name)


# -- codecs --------------------------------------------------------------------------------------------------------

_VALUES = np.arange(64, dtype="<u4") % 7
_CHAINS: tuple[tuple[list[dict[str, Any]], dict[str, Any] | None], ...] = (
    ([], {"id": "zstd", "level": 1, "checksum": True}),
    ([], {"id": "zstd", "level": 3}),
    ([], {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 2, "blocksize": 0}),
    ([], {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 1, "blocksize": 64}),
    ([], {"id": "lz4", "acceleration": 1}),
    ([], {"id": "gzip", "level": 1}),
    ([{"id": "delta", "dtype": "<u4", "astype": "<u4"}], {"id": "zstd", "level": 1}),
    ([], None),
)


def make_chunk(rng: random.Random, _: Path) -> bytes:
    """Return a Zarr chunk after its codecs as JSON, with changes in the chunk or the codecs."""
    filters, compressor = rng.choice(_CHAINS)
    crc = rng.random() < 0.3
    payload = CodecChain.of(filters, compressor, crc).encode(_VALUES)
    chain: Any = [filters, compressor, crc]
    if rng.random() < 0.2:
        chain = change_value(rng, chain)
    payload = change_bytes(rng, payload) if rng.random() < 0.95 else _bomb_start(rng)
    if rng.random() < 0.2 and compressor is not None:  # for another codec
        other = rng.choice(_CHAINS)[1]
        payload = CodecChain.of([], other, False).encode(_VALUES)
    return json.dumps(chain).encode() + b"\n" + payload


def _bomb_start(rng: random.Random) -> bytes:
    return bomb(rng.choice(["gzip", "zstd"]))[: BOMB_BYTES >> 12]


def read_chunk(data: bytes) -> None:
    head, _, payload = data.partition(b"\n")
    try:
        filters, compressor, crc = json.loads(head)
        chain = CodecChain.of(list(filters), compressor, bool(crc))
    except (TypeError, AttributeError, KeyError):  # shapes that zarr_metadata rejects earlier
        return
    values = np.empty(64, "<u4")
    chain.decode(payload, values, 3, False)
    chain.decode(payload, values)


# -- files of other tools ------------------------------------------------------------------------------------------

_DOCUMENTS = [[1, 2, 3], [], [65535], [7] * 40]
_READ_FORMATS = [name for name, known in FORMATS.items() if known.read_dtypes is not None]


@cache
def _foreign(name: str, packed: bool) -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        root = Path(folder, "a")
        if name in ("mds", "litdata"):
            {"mds": write_mds, "litdata": write_litdata}[name](root, _DOCUMENTS, zstd=packed)
        else:
            root.mkdir()
            ids = np.array([id_ for ids in _DOCUMENTS for id_ in ids], "<u4" if packed else "<u2")
            match name:
                case "megatron":
                    write_megatron(root / "a.bin", _DOCUMENTS, "int32" if packed else "uint16")
                case "datatrove":
                    write_datatrove(root / "a.ds", _DOCUMENTS, "uint32" if packed else "uint16")
                case "npy":
                    np.save(root / "a.npy", ids)
                    np.save(root / "a.offsets.npy", np.cumsum([0, *map(len, _DOCUMENTS)]))
                case _:
                    ids.tofile(root / "a.bin")
        return {path.name: path.read_bytes() for path in files_of(root)}


def _make_foreign(name: str) -> Callable[[random.Random, Path], Path]:
    def make(rng: random.Random, folder: Path) -> Path:
        files = dict(_foreign(name, rng.random() < 0.5))
        for changed in rng.sample(sorted(files), min(len(files), rng.choice([1, 1, 2]))):
            data = files[changed]
            if changed.endswith(".json"):
                files[changed] = change_json(rng, json.loads(data))
            elif changed.endswith(".npy") and rng.random() < 0.5:
                files[changed] = _npy_header(rng, data)
            elif changed.endswith((".idx", ".index")) and rng.random() < 0.5:
                at = rng.choice([9, 17, 18, 26, 34, *range(34, len(data), 4)])
                files[changed] = (data[:at] + struct.pack("<q", rng.choice(HUGE) % 2**63) + data[at + 8 :])[
                    : len(data)
                ]
            else:
                files[changed] = change_bytes(rng, data)
        root = folder / "a"
        root.mkdir()
        for file, data in files.items():
            (root / file).write_bytes(data)
        if rng.random() < 0.05:
            (root / rng.choice(sorted(files))).unlink()
        return root

    return make


def _npy_header(rng: random.Random, data: bytes) -> bytes:
    """Put another header before the same numbers."""
    described = {
        "descr": rng.choice(
            ["<u2", "<i8", ">u4", "|O", "<f8", "<M8[s]", "|V100000000", "<U9", [("a", "<i4")], "b1"]
        ),
        "fortran_order": rng.choice([False, True]),
        "shape": rng.choice([(rng.choice(HUGE),), (), (2, 3), (len(data) - 128,), (2**40, 0), (-1,), ("a",)]),
    }
    text = str(rng.choice([described, {**described, "more": 1}, rng.choice(VALUES)])).encode(errors="replace")
    version = rng.choice([b"\x01\0", b"\x02\0", b"\x03\0", b"\x04\0"])
    size = struct.pack("<H" if version[0] == 1 else "<I", rng.choice([len(text), len(text), 65535]))
    return b"\x93NUMPY" + version + size + text + data[128:]


def _read_foreign(name: str) -> Callable[[Path], None]:
    places = {"megatron": "a", "datatrove": "a.ds", "npy": "a.npy", "nanogpt": "a.bin"}

    def read(root: Path) -> None:
        place = str(root / places[name]) if name in places else str(root)
        count = 0
        for block in module_of(name).read(Path(place), ReadOptions(None, None, [])):
            count += len(block.ids)

    return read


TARGETS = [
    *(
        Target(
            f"dataset: {kind}",
            _make_dataset(kind),
            read_all,
            ERRORS,
            base_bytes=1 << 29,
            base_seconds=30.0,
            must_refuse=kind == "link",
        )
        for kind in CHANGES
    ),
    Target("manifest", make_manifest, read_manifests, ERRORS),
    Target("zarr metadata", make_metadata, read_metadata, ERRORS),
    Target("codecs", make_chunk, read_chunk, (*ERRORS, ValueError)),
    *(Target(f"import: {name}", _make_foreign(name), _read_foreign(name), ERRORS) for name in _READ_FORMATS),
]
