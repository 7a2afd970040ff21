"""Temporary shards leave the disk while a conversion runs."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

import bpe
from convert import ConvertOptions, convert


class Watched(Executor):
    """Runs each task when it is submitted, and keeps the largest size of all temporary shards."""

    largest = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        sizes = [path.stat().st_size for path in Path("out.partial/shards").rglob("*.*") if path.is_file()]
        self.largest = max(self.largest, sum(sizes))
        return future


def test_merged_tokens_stayed_on_the_disk_until_their_starts_were_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("convert.shards.merge.MERGE_ITEMS", 64)
    Path("in.txt").write_text("<|endoftext|>".join(["to be or not to be " * 20] * 100))
    bpe.train(["in.txt"], 258, ["<|endoftext|>"], threads=1).save("tok.json")
    options = ConvertOptions(
        ["in.txt"], "tok.json", "out", text_chunk_bytes=2000, chunk_tokens=64, progress="none"
    )
    watched = Watched()
    summary = convert(options, watched)
    assert watched.largest < 4 * summary.tokens / 2
