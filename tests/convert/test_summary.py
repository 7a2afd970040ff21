"""What the summary says of the layout."""

from __future__ import annotations

from pathlib import Path

import pytest

import bpe
from convert import ConvertOptions, convert
from tokenmill.engines.inline_engine import InlineEngine


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_a_layout_without_checksums_is_named(tmp_path: Path, zarr_format: int, compression: str) -> None:
    text, tokenizer = tmp_path / "a.txt", tmp_path / "tok.json"
    text.write_text("so it goes on and on, and so it ends. " * 9)
    bpe.train([str(text)], 270).save(str(tokenizer))
    summary = convert(
        ConvertOptions(
            [str(text)],
            str(tokenizer),
            str(tmp_path / "out.zarr"),
            zarr_format=zarr_format,
            compression=compression,
            progress="none",
        ),
        InlineEngine(),
    )
    told = [line for line in summary.lines() if line.startswith("  checksums")]
    if zarr_format == 3 or compression == "zstd":
        assert told == []
    else:
        (line,) = told
        assert f"zarr format 2 with compression {compression}" in line
        assert "tokenmill verify" in line
