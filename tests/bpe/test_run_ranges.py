"""Runs merged by key range equal the sum of the runs, for any pretokens, blocks and ranges."""

import random
from collections import Counter
from pathlib import Path

import pytest

from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import CountsFacts
from bpe.pretoken_counts.counts_layout import MARK_BYTES
from bpe.pretoken_counts.merge_counts import merge_sorted
from bpe.pretoken_counts.runs import OpenRun, Run, cut_in_ranges
from bpe.pretoken_counts.scratch import Scratch


def random_counts(rng: random.Random) -> dict[bytes, int]:
    """Return pretokens of few letters, so that many are in several runs, and long ones with a common prefix."""
    same = b"z" * MARK_BYTES
    found = {}
    for _ in range(rng.choice([1, 5, 150])):
        end = bytes(rng.choices(b"ab\xff", k=rng.randrange(1, 7)))
        found[rng.choice([b"", b"", same[:-1], same]) + end] = rng.randrange(1, 9)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_sums(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr("bpe.pretoken_counts.counts_writer.BLOCK_PRETOKENS", rng.choice([2, 9, 50]))
    scratch = Scratch(str(tmp_path))
    runs: list[Run] = []
    expected: Counter[bytes] = Counter()
    for _ in range(rng.randrange(1, 6)):
        counts = [random_counts(rng) for _ in range(rng.randrange(1, 4))]
        for one in counts:
            expected.update(one)
        level = [(scratch.keep(PretokenCounts.from_mapping(one).blocks()),) for one in counts]
        # Split into several files, like the output of a merge.
        ranges = cut_in_ranges(level, rng.choice([500, 1 << 20]))
        runs.append(tuple(scratch.keep(merge_sorted(part.streams(scratch.place, {}))) for part in ranges))
    for range_bytes in (400, 3000, 1 << 30):
        ranges = cut_in_ranges(runs, range_bytes)
        assert (ranges[0].start, ranges[-1].stop) == (b"", None)
        if range_bytes == 1 << 30:
            assert len(ranges) == 1
        files = tuple(scratch.keep(merge_sorted(part.streams(scratch.place, {}))) for part in ranges)
        whole = CountSet([OpenRun(files, scratch.place, {})], CountsFacts())
        whole.save(tmp_path / "whole")
        assert PretokenCounts.load(tmp_path / "whole").as_dict() == dict(sorted(expected.items()))
        once = PretokenCounts.from_mapping(expected)
        once.save(tmp_path / "once")
        assert (tmp_path / "whole").read_bytes() == (tmp_path / "once").read_bytes()


def test_a_range_reads_its_blocks_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe.pretoken_counts.counts_writer.BLOCK_PRETOKENS", 10)
    scratch = Scratch(str(tmp_path))
    counts = PretokenCounts.from_mapping({f"{number:05}".encode(): 1 for number in range(2000)})
    runs = [(scratch.keep(counts.blocks()),) for _ in range(4)]
    ranges = cut_in_ranges(runs, runs[0][0].size // 4)
    assert len(ranges) == 17
    for wanted in ranges:
        begins = {part.mark.number for run in wanted.runs for part in run}
        assert len(begins) == 1
    sizes = [
        sum(len(ends) for _, ends, _ in merge_sorted(part.streams(scratch.place, {}))) for part in ranges
    ]
    assert sum(sizes) == 2000
    assert max(sizes) < 2 * min(sizes)
