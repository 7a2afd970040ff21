"""A sample has whole documents, spread evenly over the text, the same for one seed, and reports its size."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bpe import count_pretokens, train
from bpe.errors import BadArgument, EnvironmentFailure
from bpe.pretoken_counts import sampling
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.sources import FileRange, Source, listed

END = "<|endoftext|>"


def sampled(paths: Sequence[Any], size: int, seed: int, tokens: Sequence[str] = ()) -> tuple[list[Any], str]:
    spans, note = sampling.sampled(listed(paths, "auto"), size, seed, CountingOptions(tokens))
    return list(spans), note


def taken(spans: Sequence[Source]) -> list[bytes]:
    texts = []
    for span in spans:
        assert isinstance(span, FileRange)
        texts.append(Path(span.file.path).read_bytes()[span.start : span.stop])
    return texts


def numbered_documents(path: Path, count: int, first: int = 0) -> list[str]:
    rng = random.Random(first)
    documents = [f"{first + place}:" + "é" * rng.randint(5, 60) for place in range(count)]
    path.write_text(END.join(documents), encoding="utf-8")
    return documents


@pytest.mark.parametrize("seed", range(3))
def test_whole_documents_without_repetition(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "WINDOW_BYTES", (256, 4096))
    paths = [tmp_path / "empty", tmp_path / "a", tmp_path / "b", tmp_path / "empty"]
    paths[0].write_bytes(b"")
    every = numbered_documents(paths[1], 2000) + numbered_documents(paths[2], 500, 2000)
    size = sum(path.stat().st_size for path in paths)
    spans, note = sampled(paths, size // 10, seed, [END])
    documents = [text for part in taken(spans) for text in part.decode().split(END) if text]
    assert set(documents) <= set(every)
    assert len(set(documents)) == len(documents)
    assert 0.07 < sum(map(len, documents)) / sum(map(len, every)) < 0.13
    early = sum(int(text.partition(":")[0]) < 1250 for text in documents) / len(documents)
    assert 0.4 < early < 0.6
    assert re.search(rf": documents at \d+ places in 2 of 4 files, seed {seed}$", note)
    assert sampled(paths, size // 10, seed, [END]) == (spans, note)
    assert sampled(paths, size // 10, seed + 1, [END])[0] != spans


@pytest.mark.parametrize("text", ["日本" * 50, "x" * 50 + END * 30], ids=["half a character", "separators"])
def test_a_sample_of_nothing_is_refused(text: str, tmp_path: Path) -> None:
    """The error claimed that the inputs hold no text."""
    (tmp_path / "a").write_text(text)
    refused = 0
    for seed in range(9):
        try:
            assert sampled([tmp_path / "a"], 1, seed, [END])[0]
        except BadArgument as error:
            assert str(error).startswith("sample_bytes: ")  # noqa: PT017
            refused += 1
    assert refused or "日" not in text


@pytest.mark.parametrize(
    "text", ["日本語\n" * 10_000, "日本語" * 10_000, "x\n" * 50_000], ids=["lines", "none", "short"]
)
@pytest.mark.parametrize("tokens", [[], [END]], ids=["lines", "documents"])
def test_long_documents_are_sampled_within(
    text: str, tokens: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From an endless document lines are sampled, from an endless line characters, up to the requested size."""
    monkeypatch.setattr(sampling, "WINDOW_BYTES", (64, 4096))
    (tmp_path / "a").write_text(text)
    size = len(text.encode())
    for share in (0.9, 0.5, 0.05):
        spans, _ = sampled([tmp_path / "a"], int(size * share), 1, tokens)
        parts = [part.decode() for part in taken(spans)]  # characters are whole
        assert 0.8 * share < sum(len(part.encode()) for part in parts) / size < min(1, 1.2 * share)
        if text.startswith("日本語\n"):
            assert set("\n".join(parts).split("\n")) <= {"日本語", ""}
        assert all(before.stop <= after.start for before, after in pairwise(spans))


def test_small_inputs_are_sampled_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    spans, note = sampled([tmp_path / "a"], 4, 0)
    assert (taken(spans), note) == ([b"text"], "")


@pytest.mark.parametrize(
    ("size", "seed", "message"),
    [(0, 0, "^sample_bytes: .*0"), (1.5, 0, "^sample_bytes: "), (5, "x", "^seed: ")],
)
def test_bad_options(size: Any, seed: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match=message):
        sampled([b""], size, seed)


def test_inputs_without_random_access_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "array.json").write_text('[{"text": "a"}]')
    (tmp_path / "packed.jsonl.gz").write_bytes(b"")
    for source in (b"text", tmp_path / "pipe", tmp_path / "array.json", tmp_path / "packed.jsonl.gz"):
        with pytest.raises(BadArgument, match="sample_bytes"):
            sampled([source], 5, 0)
    count_pretokens([b"the mill"]).save(tmp_path / "a.counts")
    with pytest.raises(BadArgument, match="sample_bytes"):
        train([], 260, counts=[tmp_path / "a.counts"], sample_bytes=4)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    found = listed([tmp_path / "a"], "auto")
    (tmp_path / "a").unlink()
    with pytest.raises(EnvironmentFailure, match="No such file"):
        sampling.sampled(found, 99_999, 0, CountingOptions())
