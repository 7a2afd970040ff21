"""Sorted streams merge into the sum of their dicts for any block size; sets of counts load the pretokens that
training needs.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bpe.errors import BadArgument, NotEnoughMemory
from bpe.pretoken_counts import counts_writer, merge_parts
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import Arrays, CountedSource, CountsFacts, merged_facts
from bpe.pretoken_counts.counts_file import CountsFile
from bpe.pretoken_counts.memory import MemoryBudget, training_bytes, used_bytes
from bpe.pretoken_counts.merge_counts import joined, merge_sorted
from bpe.pretoken_counts.workspace import Workspace
from bpe.pretokenizer import Pretokenizer


def random_counts(rng: random.Random, size: int) -> dict[bytes, int]:
    alphabet = rng.choice([b"ab", b"abc \xff", bytes(range(256))])
    return {bytes(rng.choices(alphabet, k=rng.randint(1, 9))): rng.randint(1, 9) for _ in range(size)}


def in_blocks(counts: dict[bytes, int], size: int) -> Iterator[Arrays]:
    items = sorted(counts.items())
    for start in range(0, len(items), size):
        yield PretokenCounts.from_mapping(dict(items[start : start + size])).arrays


@pytest.mark.parametrize("seed", range(6))
def test_the_sum_of_streams(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        every = [random_counts(rng, rng.choice([0, 1, 5, 60])) for _ in range(rng.randint(0, 6))]
        streams = [list(in_blocks(counts, rng.randint(1, 20))) for counts in every]
        expected: Counter[bytes] = Counter()
        for counts in every:
            expected.update(counts)
        blocks = list(merge_sorted(streams))
        got = PretokenCounts(*joined(blocks)).as_dict()
        assert list(got.items()) == sorted(expected.items())
        assert all(len(ends) for _, ends, _ in blocks)


def test_merging_holds_a_block_a_stream() -> None:
    """A stream is read only as far as needed."""
    read: list[int] = []

    def counted_blocks() -> Iterator[Arrays]:
        for number in range(50):
            read.append(number)
            yield PretokenCounts.from_mapping({b"%02d" % number: 1}).arrays

    merged = merge_sorted([counted_blocks(), [PretokenCounts.from_mapping({b"x": 1}).arrays]])
    for place, _ in zip(range(10), merged, strict=False):
        assert len(read) <= place + 2


# -- sets ----------------------------------------------------------------------------------------------------


def plenty() -> MemoryBudget:
    return MemoryBudget(used_bytes() + (1 << 40))


def of_files(folder: Path, every: list[dict[bytes, int]]) -> CountSet:
    for place, counts in enumerate(every):
        PretokenCounts.from_mapping(counts).save(folder / f"{place}.counts")
    return CountSet.of_files(sorted(folder.glob("*.counts")))


def test_more_files_than_are_merged_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_parts, "FAN_IN", 3)
    monkeypatch.setattr(counts_writer, "BLOCK_PRETOKENS", 4)
    rng = random.Random(1)
    for size in range(1, 12):
        folder = tmp_path / str(size)
        folder.mkdir()
        every = [random_counts(rng, 30) for _ in range(size)]
        expected = sum((Counter(counts) for counts in every), Counter())
        counted = of_files(folder, every)
        with Workspace(folder) as workspace:
            assert counted.load(plenty(), workspace).as_dict() == expected
            counted.save(folder / "all", workspace)
        assert PretokenCounts.load(folder / "all").as_dict() == expected
        assert not list(folder.glob(".bpe*"))
    with pytest.raises(BadArgument):
        counted.blocks()


@pytest.mark.parametrize("in_memory", [True, False], ids=["memory", "files"])
@pytest.mark.parametrize("lowest", [1, 2, 5, 2**16, 2**17, 2**40, 2**62])
def test_rare_pretokens_are_left_out(lowest: int, in_memory: bool, tmp_path: Path) -> None:
    rng = random.Random(lowest)
    counts = {rng.randbytes(5): 2 ** rng.randint(0, 55) for _ in range(500)} | {b"a": 1, b"b": 2**62}
    expected = {pretoken: count for pretoken, count in counts.items() if count >= lowest}
    part = PretokenCounts.from_mapping(counts)
    counted = CountSet([part], part.facts) if in_memory else of_files(tmp_path, [counts])
    recorder = Recorder()
    with Workspace(tmp_path) as workspace:
        assert counted.load(plenty(), workspace, lowest, recorder).as_dict() == expected
    left_out = len(counts) - len(expected)
    if lowest == 1:
        assert recorder.notes == []
    else:
        assert recorder.notes[0].startswith("min_pretoken_count: ")
        assert f" {left_out:,} of {len(counts):,} " in recorder.notes[0]
        assert f" {lowest} times" in recorder.notes[0]


class Recorder:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def begin(self, phase: str, total: int | None, unit: str) -> None:
        pass

    def update(self, done: int) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_oversized_counts_are_refused_or_fitted(tmp_path: Path) -> None:
    rng = random.Random(2)
    every = [{rng.randbytes(100): rng.randint(1, 9) for _ in range(20_000)} for _ in range(3)]
    counted = of_files(tmp_path, every)
    expected = sum((Counter(counts) for counts in every), Counter())
    half = sorted(expected.values())[len(expected) // 2]
    kept = {pretoken: count for pretoken, count in expected.items() if count > half}
    # Exactly enough memory for those above the median.
    needed = training_bytes(len(kept), 100 * len(kept), 1 << 15, at_most=True)
    with Workspace(tmp_path) as workspace:
        tight = MemoryBudget(used_bytes() + needed + (20 << 20))
        with pytest.raises(NotEnoughMemory) as raised:
            counted.load(MemoryBudget(used_bytes() + (60 << 20)), workspace)
        assert raised.value.exit_code == 5
        assert "--min-pretoken-count 2 (or fit)" in str(raised.value)
        recorder = Recorder()
        fitted = counted.load(tight, workspace, "fit", recorder)
        lowest = int(fitted.counts.min())
        assert fitted.as_dict() == {key: count for key, count in expected.items() if count >= lowest}
        assert 1 < lowest <= half + 1
        assert f" {lowest} times" in recorder.notes[0]
        assert len(counted.load(plenty(), workspace, "fit", recorder)) == 60_000
        with pytest.raises(NotEnoughMemory):
            counted.load(MemoryBudget(used_bytes() + 1000), workspace, "fit")


@pytest.mark.parametrize("wrong", [0, -1, 2**63, "all", 1.5], ids=str)
def test_bad_lowest_counts(wrong: object, tmp_path: Path) -> None:
    with Workspace() as workspace, pytest.raises(BadArgument, match="min_pretoken_count"):
        CountSet([], CountsFacts()).load(plenty(), workspace, wrong)  # type: ignore[arg-type]


# -- facts ---------------------------------------------------------------------------------------------------


def facts(pattern: str, *special_tokens: str, **more: object) -> CountsFacts:
    return CountsFacts(Pretokenizer.from_pattern(pattern), special_tokens, **more)  # type: ignore[arg-type]


def test_counts_that_were_cut_in_different_ways_have_no_sum(tmp_path: Path) -> None:
    with pytest.raises(BadArgument):
        merged_facts([("a", facts("gpt2")), ("b", facts("cl100k"))])
    with pytest.raises(BadArgument):
        merged_facts([("a", facts("gpt2", "<s>", "<t>")), ("b", facts("gpt2"))])
    PretokenCounts.from_mapping({b"a": 1}, facts("gpt2")).save(tmp_path / "a")
    PretokenCounts.from_mapping({b"a": 1}, facts("qwen2")).save(tmp_path / "b")
    with pytest.raises(BadArgument, match="/a: .*/b"):
        PretokenCounts.load(tmp_path / "a", tmp_path / "b")


def test_facts_add_up() -> None:
    one = facts("gpt2", "<s>", text_bytes=5, documents=1, replaced=2, sources=(CountedSource("/x", 9, 5, 1),))
    two = facts(
        "gpt2", "<s>", text_bytes=7, documents=3, sources=(CountedSource("stdin", 7, 7),), tool="other 2"
    )
    both = merged_facts([("one", one), ("two", two), ("two", two)])
    assert (both.text_bytes, both.documents, both.replaced) == (19, 7, 2)
    assert [source.name for source in both.sources] == ["/x", "stdin", "stdin"]
    assert both.tool == f"{one.tool}, other 2"


def test_the_counts_file_of_a_set_is_readable_alone(tmp_path: Path) -> None:
    part = PretokenCounts.from_mapping({b"a": 1, b"b": 2}, facts("o200k", "<s>"))
    CountSet([part, part], part.facts).save(tmp_path / "x")
    file = CountsFile(tmp_path / "x")
    assert file.facts == part.facts
    assert PretokenCounts(*joined(file.blocks())).as_dict() == {b"a": 2, b"b": 4}
    assert np.array_equal(PretokenCounts.load(tmp_path / "x").counts, np.array([2, 4], np.uint64))
