"""Written data: zarr reads it, it equals zarr's own output, and it does not depend on the assignment of runs to
writers.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numcodecs
import pytest
import zarr
from small_datasets import from_sequences

from flat_tokens.storage.layout import COMPRESSIONS, ArrayLayout

LAYOUTS = [
    pytest.param(
        ArrayLayout.create(zarr_format, 4, 12 if zarr_format == 3 else None, compression),
        id=f"v{zarr_format}-{compression}",
    )
    for zarr_format in (2, 3)
    for compression in COMPRESSIONS
]


def test_layouts_have_defaults() -> None:
    assert ArrayLayout.create() == ArrayLayout()
    assert ArrayLayout().shard_tokens == 2**16
    assert ArrayLayout.create(compression="none").shard_tokens == 2**18
    assert ArrayLayout().cuts("seq_starts")[1] == 2**14
    sharded = ArrayLayout.create(3)
    assert (sharded.chunk_tokens, sharded.shard_tokens, sharded.cuts("seq_starts")[1]) == (
        2**16,
        2**24,
        2**22,
    )
    assert sharded.to_json() == {
        "zarr_format": 3,
        "chunk_tokens": 2**16,
        "shard_tokens": 2**24,
        "compression": "zstd",
        "level": 1,
    }


def tree(root: Path) -> dict[str, bytes]:
    """Return every file below root by relative path."""
    return {
        str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bytes_equal_those_of_zarr(
    make_dataset: Any, random_sequences: Any, tmp_path: Path, layout: ArrayLayout
) -> None:
    if layout.compression == "zstd":  # tokens of level 1 use another search (test_token_matches.py)
        layout = dataclasses.replace(layout, level=3)
    sequences = random_sequences(1, 9)
    ours = tree(make_dataset(sequences, layout=layout))
    numcodecs.blosc.use_threads = False
    theirs_path = tmp_path / "theirs"
    group = zarr.open_group(theirs_path, mode="w-", zarr_format=layout.zarr_format)
    split = group.require_group("train")
    encoded, starts, max_token_id = from_sequences(sequences)
    split.attrs["max_token_id"] = max_token_id
    for name, values, chunk, shard in (
        ("encoded_tokens", encoded, *layout.cuts("encoded_tokens")),
        ("seq_starts", starts, *layout.cuts("seq_starts")),
    ):
        array = split.create_array(
            name,
            shape=values.shape,
            dtype=values.dtype,
            chunks=(chunk,),
            shards=(shard,) if layout.zarr_format == 3 else None,
            compressors=zarr_codecs(layout),
            filters=None,
            config={"write_empty_chunks": True},
        )
        array[:] = values
    theirs = tree(theirs_path)
    for path in [path for path in theirs if path.startswith("train/")]:
        if path.endswith(("zarr.json", ".zarray", ".zgroup")) or path == "train/.zattrs":
            expected = json.loads(theirs[path])
            (expected.get("compressor") or {}).pop("checksum", None)  # omitted: older readers do not know it
            assert json.loads(ours[path]) == expected, path
        elif not path.endswith(".zattrs"):  # arrays have no attributes; zarr writes {}
            assert ours[path] == theirs[path], path


def zarr_codecs(layout: ArrayLayout) -> Any:
    """Return the layout's compression as zarr objects."""
    if layout.zarr_format == 2:
        if layout.compression == "none":
            return None
        if layout.compression == "zstd":
            return numcodecs.Zstd(layout.level, checksum=True)
        shuffle = 2 if layout.compression == "lz4-bitshuffle" else 0
        return numcodecs.Blosc("lz4", layout.level, shuffle)
    crc32c = zarr.codecs.Crc32cCodec()
    if layout.compression == "none":
        return [crc32c]
    if layout.compression == "zstd":
        return [zarr.codecs.ZstdCodec(level=layout.level, checksum=True), crc32c]
    shuffle_name = "bitshuffle" if layout.compression == "lz4-bitshuffle" else "noshuffle"
    return [zarr.codecs.BloscCodec(cname="lz4", clevel=layout.level, shuffle=shuffle_name), crc32c]


def test_zarr_is_not_imported() -> None:
    code = (
        "import sys, pathlib, tempfile, numpy as np, flat_tokens\n"
        "from flat_tokens import writer\n"
        "layout = flat_tokens.ArrayLayout.create(3, 4, 8)\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    writer.create_split(pathlib.Path(folder), 'train', 1, 1, 0, layout)\n"
        "    ids = np.ones(1, dtype=np.uint32)\n"
        "    writer.write_run(pathlib.Path(folder), 'train', layout, 'encoded_tokens', 0, ids)\n"
        "sys.exit('zarr' in sys.modules)\n"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode
        == 0
    )


def test_all_zero_chunks_are_stored(make_dataset: Any) -> None:
    root = make_dataset([[1] + [0] * 15], layout=ArrayLayout.create(2, 4))
    names = sorted(path.name for path in (root / "train/encoded_tokens").iterdir())
    assert names == [".zarray", *"0123"]


def test_compressor_metadata_suits_old_readers(make_dataset: Any) -> None:
    """zarr 2.16 with numcodecs 0.12 and tensorstore 0.1.86 reject "checksum"; the frame has one anyway."""
    root = make_dataset()
    metadata = json.loads((root / "train/encoded_tokens/.zarray").read_text())
    assert metadata["compressor"] == {"id": "zstd", "level": 1}
    frame = (root / "train/encoded_tokens/0").read_bytes()
    assert frame[4] >> 2 & 1 == 1  # RFC 8878: the content checksum flag
