"""A profiler may hold the frames of calls that have returned, and with them their views of buffers that are to grow.

The workers of some clusters have such a profiler.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from input_kinds import KINDS, write_kind
from naive_conversion import make_documents, tree

from bpe.long_text.long_document import encode_pieces
from bpe.tokenizer import Tokenizer
from convert import ConvertOptions
from convert import convert as run_conversion
from tokenmill.engines.inline_engine import InlineEngine


@pytest.fixture
def held_frames() -> Iterator[Callable[[], set[str]]]:
    """Called, it begins to hold the last frames of all calls in this thread and in new ones, and all their names."""
    frames: deque[FrameType] = deque(maxlen=100_000)
    names: set[str] = set()
    before = sys.getprofile()

    def hold(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            frames.append(frame)
            names.add(frame.f_code.co_name)

    def begin() -> set[str]:
        threading.setprofile(hold)
        sys.setprofile(hold)
        return names

    yield begin
    threading.setprofile(None)
    sys.setprofile(before)


def test_a_conversion_does_not_mind(
    here: Path, monkeypatch: pytest.MonkeyPatch, held_frames: Callable[[], set[str]]
) -> None:
    monkeypatch.setattr("convert.planning.plan.MIN_GIVEN_SHARD_BYTES", 2000)
    monkeypatch.setattr("convert.shards.write_units.MERGE_TOKENS", (640, 640))
    monkeypatch.setattr("convert.shards.shard_writer.BUFFER_BYTES", 60)
    monkeypatch.setattr("tokenmill.inputs.read_text.TEXT_BLOCK_BYTES", 500)
    (here / "in").mkdir()
    for number, kind in enumerate(KINDS):
        documents = make_documents(40, seed=number)
        texts = [text * (1 + place % 7) for place, text in enumerate(documents)]
        write_kind(here / "in" / f"{number}", texts, kind)
    options: dict[str, Any] = {"text_chunk_bytes": 3000, "chunk_tokens": 64, "validation_fraction": 0.2}
    options |= {"tokenizer": "tok.json", "progress": "none", "workers": 3}
    run_conversion(ConvertOptions(["in/*"], output="clean", **options), InlineEngine())
    names = held_frames()
    run_conversion(ConvertOptions(["in/*"], output="out", **options), ThreadPoolExecutor(3))
    assert tree(here / "out") == tree(here / "clean")
    assert "_encode" in names


def test_a_long_document_does_not_mind(
    listed: Callable[..., Tokenizer],
    nasty_texts: dict[str, str],
    held_frames: Callable[[], set[str]],
) -> None:
    tokenizer = listed(special_tokens=["<|endoftext|>"])
    texts = [*nasty_texts.values(), "a" * 3000, "ab <|endoftext|>" * 200]
    expected = [tokenizer.encode(text, "all") for text in texts]
    held_frames()
    for text, ids in zip(texts, expected, strict=True):
        pieces = (text[start : start + 30].encode() for start in range(0, len(text), 30))
        parts = encode_pieces(tokenizer, pieces, try_bytes=20, allowed_special="all")
        assert [id_ for part in parts for id_ in part.tolist()] == ids
