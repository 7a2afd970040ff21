"""A sample has whole documents, spread evenly over the text, the same for one seed, and reports its size."""

from __future__ import annotations

import os
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest

from bpe.errors import BadArgument, EnvironmentFailure
from bpe.pretoken_counts import sampling
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.sampling import sampled
from bpe.pretoken_counts.sources import FileRange
from bpe.training import train

END = "<|endoftext|>"


def numbered_documents(path: Path, count: int, first: int = 0) -> list[str]:
    rng = random.Random(first)
    documents = [f"{first + place}:" + "é" * rng.randint(5, 60) for place in range(count)]
    path.write_text(END.join(documents), encoding="utf-8")
    return documents


def taken(ranges: list[object]) -> list[bytes]:
    texts = []
    for range_ in ranges:
        assert isinstance(range_, FileRange)
        texts.append(range_.path.read_bytes()[range_.start : range_.stop])
    return texts


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "WINDOW_BYTES", (64, 4096))


@pytest.mark.parametrize("seed", range(5))
def test_whole_documents_without_repetition(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "WINDOW_BYTES", (256, 4096))
    paths = [tmp_path / "a", tmp_path / "b", tmp_path / "empty"]
    paths[2].write_bytes(b"")
    every = numbered_documents(paths[0], 2000) + numbered_documents(paths[1], 500, 2000)
    size = sum(path.stat().st_size for path in paths)
    ranges, words = sampled([paths[2], *paths], size // 10, seed, CountingOptions([END]))
    documents = [text for part in taken(ranges) for text in part.decode().split(END) if text]
    assert set(documents) <= set(every)
    assert len(set(documents)) == len(documents)
    share = sum(map(len, documents)) / sum(map(len, every))
    assert 0.07 < share < 0.13
    early = sum(int(text.partition(":")[0]) < 1250 for text in documents) / len(documents)
    assert 0.4 < early < 0.6
    assert re.fullmatch(
        rf"sampled \d+\.\d kB of \d+\.\d kB \([\d.]+ %\): documents at \d+ places in 2 of 4 files, seed {seed}",
        words,
    )
    assert sampled([paths[2], *paths], size // 10, seed, CountingOptions([END])) == (ranges, words)
    assert sampled([paths[2], *paths], size // 10, seed + 1, CountingOptions([END]))[0] != ranges


@pytest.mark.parametrize("separators", [[END], [END, "<s>"], ["<s>", END]], ids=len)
def test_a_window_has_the_documents_that_begin_in_it(separators: list[str], tmp_path: Path) -> None:
    """The window may start or end within a document, within a separator or after one, and be long or short."""
    documents = ["one", "the second", "3", "fourth one", "5th", "six"]
    text = ""
    starts, stops = [], []
    for place, document in enumerate(documents):
        starts.append(len(text))
        text += document
        stops.append(len(text))
        text += separators[place % len(separators)]
    path = tmp_path / "a"
    path.write_text(text)
    tried = 0
    with path.open("rb") as file:
        for start in range(len(text)):
            for stop in range(start + 8, len(text) + 1):
                begin = [place for place, first in enumerate(starts) if start <= first < stop]
                if not begin:
                    continue  # within a document: lines are taken
                tried += 1
                taken = sampling._part(file, len(text), start, stop, [token.encode() for token in separators])
                assert taken[0] == starts[begin[0]], (start, stop)
                last = begin[-1]
                assert taken[1] == (stops[last] if stop < len(text) else len(text)), (start, stop)
    assert tried > 500


@pytest.mark.parametrize("text", ["日本" * 50, "x" * 50 + END * 30], ids=["half a character", "separators"])
def test_a_sample_of_nothing_is_refused(text: str, tmp_path: Path) -> None:
    """The error claimed that the inputs hold no text."""
    (tmp_path / "a").write_text(text)
    for seed in range(9):
        try:
            ranges, _ = sampled([tmp_path / "a"], 1, seed, CountingOptions([END]))
        except BadArgument as error:
            assert str(error).startswith("sample_bytes: ")  # noqa: PT017
        else:
            assert ranges
    if text.startswith("日"):
        with pytest.raises(BadArgument, match="sample_bytes"):
            sampled([tmp_path / "a"], 1, 0, CountingOptions([END]))


@pytest.mark.usefixtures("small_windows")
def test_lines_are_documents(tmp_path: Path) -> None:
    lines = [f"line {place} " + "x" * (place % 50) for place in range(3000)]
    (tmp_path / "a").write_text("\n".join(lines) + "\n")
    ranges, words = sampled([tmp_path / "a"], 5000, 0, CountingOptions([]))
    got = [line for part in taken(ranges) for line in part.decode().split("\n") if line]
    assert set(got) <= set(lines)
    assert ": lines at " in words


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize(
    "text", ["日本語\n" * 10_000, "日本語" * 10_000, "x\n" * 50_000], ids=["lines", "none", "short"]
)
@pytest.mark.parametrize("special_tokens", [[], [END]], ids=["lines", "documents"])
def test_long_documents_are_sampled_within(text: str, special_tokens: list[str], tmp_path: Path) -> None:
    """From an endless document lines are sampled, from an endless line characters, up to the requested size."""
    (tmp_path / "a").write_text(text)
    for share in (0.9, 0.5, 0.05):
        size = len(text.encode())
        ranges, _ = sampled([tmp_path / "a"], int(size * share), 1, CountingOptions(special_tokens))
        parts = taken(ranges)
        assert 0.8 * share < sum(map(len, parts)) / size < min(1, 1.2 * share)
        assert all(part.decode() for part in parts)  # characters are whole
        if text.startswith("日本語\n"):
            assert set("\n".join(part.decode() for part in parts).split("\n")) <= {"日本語", ""}
        places = [(range_.start, range_.stop) for range_ in ranges if isinstance(range_, FileRange)]
        assert all(stop <= start for (_, stop), (start, _) in pairwise(places))


def test_small_inputs_are_sampled_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    assert sampled([tmp_path / "a"], 4, 0, CountingOptions([])) == ([tmp_path / "a"], "")


def test_training_reports_its_sample(tmp_path: Path) -> None:
    numbered_documents(tmp_path / "a", 5000)
    notes: list[str] = []

    class Recorder:
        def begin(self, phase: str, total: int | None, unit: str) -> None:
            pass

        def update(self, done: int) -> None:
            pass

        def note(self, text: str) -> None:
            notes.append(text)

    tokenizer = train([tmp_path / "a"], 260, [END], sample_bytes=50_000, seed=3, progress=Recorder())
    assert tokenizer.vocab_size == 260
    assert notes[0].startswith("sampled ")


@pytest.mark.parametrize(
    ("sample_bytes", "seed", "message"),
    [
        (0, 0, "^sample_bytes: .*0"),
        (1.5, 0, "^sample_bytes: "),
        (5, "x", "^seed: "),
    ],
)
def test_bad_options(sample_bytes: int, seed: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match=message):
        sampled([tmp_path / "a"], sample_bytes, seed, CountingOptions([]))


def test_counts_without_text_were_used_as_the_sample(tmp_path: Path) -> None:
    counts = tmp_path / "a.counts"
    count_pretokens([b"the mill"]).save(counts)
    with pytest.raises(BadArgument, match="sample_bytes"):
        train([], 260, counts=counts, sample_bytes=4)


def test_inputs_without_random_access_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for source in (b"text", tmp_path / "pipe"):
        with pytest.raises(BadArgument):
            sampled([source], 5, 0, CountingOptions([]))
    (tmp_path / "array.json").write_text('[{"text": "a"}]')
    with pytest.raises(BadArgument, match="array"):
        sampled([tmp_path / "array.json"], 5, 0, CountingOptions([]))


def test_a_file_that_can_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100_000)

    def broken(*_: object) -> tuple[int, int]:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(sampling, "_part", broken)
    with pytest.raises(EnvironmentFailure, match="Input/output"):
        sampled([tmp_path / "a"], 99_999, 0, CountingOptions([]))
