"""Counts files return the counts that were written and add up exactly; damaged and foreign files are refused."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from notes import Notes
from splits import split

from bpe import CountSet, PretokenCounts, train, train_on
from bpe.__main__ import main
from bpe.errors import BadArgument, BadCounts, EnvironmentFailure, MissingInput, NotEnoughMemory
from bpe.pretoken_counts import counts_file, merging
from bpe.pretoken_counts.counts_facts import CountedSource, CountsFacts, merged_facts
from bpe.pretoken_counts.counts_file import CountsFile, write_counts_file
from bpe.pretoken_counts.memory import MemoryBudget, training_bytes, used_bytes
from bpe.pretoken_counts.workspace import Workspace
from bpe.pretokenizer import Pretokenizer

GPT2 = Pretokenizer.from_pattern("gpt2")
FACTS = CountsFacts(
    Pretokenizer((split(r"\w+", "keep"), split("gpt2"))),
    ("<|endoftext|>", "é\n"),
    text_bytes=2**40,
    documents=17,
    replaced=3,
    sample="sampled 1 of 2",
    sources=(CountedSource("/a\udcff", 10, 5, 123), CountedSource("stdin", 4, 4)),
)


def random_counts(rng: random.Random, size: int) -> dict[bytes, int]:
    alphabet = rng.choice([b"ab", b"abc \xff", bytes(range(256))])
    return {bytes(rng.choices(alphabet, k=rng.randint(1, 9))): rng.randint(1, 9) for _ in range(size)}


def sum_of(every: list[dict[bytes, int]]) -> dict[bytes, int]:
    return dict(sorted(sum((Counter(counts) for counts in every), Counter()).items()))


def saved(path: Path, counts: dict[bytes, int], facts: CountsFacts = FACTS) -> Path:
    PretokenCounts.from_mapping(counts, facts).save(path)
    return path


def raw_file(path: Path, pretokens: dict[bytes, int], **more: Any) -> Path:
    """Write a counts file with numpy alone. more: other arrays, or other fields of the header."""
    header = CountsFacts(GPT2, text_bytes=5, documents=1).to_json()
    header |= {"format": counts_file.FORMAT, "distinct": len(pretokens), "total": sum(pretokens.values())}
    header |= {"longest": max(map(len, pretokens), default=0)}
    arrays: dict[str, Any] = {
        "pretoken_bytes": np.frombuffer(b"".join(pretokens), np.uint8),
        "lengths": np.array([len(pretoken) for pretoken in pretokens], np.uint64),
        "counts": np.array(list(pretokens.values()), np.uint64),
    }
    header |= {key: value for key, value in more.items() if key not in arrays}
    arrays |= {key: value for key, value in more.items() if key in arrays}
    with path.open("wb") as file:
        np.savez(file, **arrays, header=np.frombuffer(json.dumps(header).encode(), np.uint8))
    return path


# -- one file


@pytest.mark.slow
@pytest.mark.parametrize("highest", [9, 255, 256, 2**32, 2**55])
@pytest.mark.parametrize("size", [0, 1, 7, 300])
@pytest.mark.parametrize("block", [1, 3, 10**6])
def test_round_trip(
    size: int, block: int, highest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts_file, "BLOCK_PRETOKENS", block)
    monkeypatch.setattr(counts_file, "BLOCK_BYTES", 40)
    rng = random.Random(size)
    counts = {rng.randbytes(rng.choice([1, 9, 300])): rng.randint(1, highest) for _ in range(size)}
    path = saved(tmp_path / "a.counts", counts)
    file = CountsFile(path)
    assert file.facts == FACTS
    assert (len(file), file.total, file.pretoken_bytes) == (
        len(counts),
        sum(counts.values()),
        sum(map(len, counts)),
    )
    assert list(PretokenCounts.load(path).as_dict().items()) == sorted(counts.items())
    assert all(text.nbytes <= file.largest_block_bytes() for text, _, _ in file.blocks())
    with np.load(path) as arrays:  # as documented
        ends = np.cumsum(arrays["lengths"], dtype=np.uint64)
        found = PretokenCounts(arrays["pretoken_bytes"], ends, arrays["counts"].astype(np.uint64))
        assert found.as_dict() == counts
        assert json.loads(arrays["header"].tobytes())["distinct"] == len(counts)
    # The bytes depend neither on the blocks nor on the path of the file.
    write_counts_file(tmp_path / "b", CountsFile(path).blocks(), FACTS)
    assert (tmp_path / "b").read_bytes() == path.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.counts", "b"]


@pytest.mark.long
def test_flipped_bits_and_truncations_are_found(tmp_path: Path) -> None:
    """A bit that changes nothing, such as one of a date in the zip file, may go unnoticed."""
    counts = {b"a": 2, b"bc": 300, b"d": 1, b"efg": 5, b"h": 70_000}
    data = saved(tmp_path / "good.counts", counts, CountsFacts(GPT2)).read_bytes()
    path = tmp_path / "bad.counts"
    for place in range(len(data)):
        bad = bytearray(data)
        bad[place] ^= 1 << place % 8
        path.write_bytes(bad)
        try:
            assert PretokenCounts.load(path).as_dict() == counts
        except BadCounts as error:
            assert str(error).startswith(str(path))  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
        path.write_bytes(data[:place])
        with pytest.raises(BadCounts, match=r"bad\.counts: "):
            CountsFile(path)


@pytest.mark.parametrize(
    "more",
    [
        {"format": "tokenmill counts 3"},
        {"text_bytes": float("inf")},
        {"text_bytes": 2**63},
        {"distinct": True},
        {"total": 4},
        {"longest": 1},
        {"special_tokens": [1]},
        {"pattern": Pretokenizer((split("(", "keep"),)).to_data()},
        {"lengths": np.array([2, 2**64 - 1], np.uint64)},
        {"lengths": np.array([2, 0], np.uint64)},
        {"lengths": np.array([[2], [1]], np.uint64)},
        {"counts": np.array([3, 0], np.uint64)},
        {"pretoken_bytes": np.frombuffer(b"abbb", np.uint8)},
    ],
    ids=str,
)
def test_wrong_contents_are_refused(more: dict[str, Any], tmp_path: Path) -> None:
    pretokens = {b"ab": 2, b"b": 1}
    assert PretokenCounts.load(raw_file(tmp_path / "good", pretokens)).as_dict() == pretokens
    with pytest.raises(BadCounts, match=r"a\.counts: "):
        PretokenCounts.load(raw_file(tmp_path / "a.counts", pretokens, **more))


@pytest.mark.parametrize("block", [2, 1 << 14])
@pytest.mark.parametrize(
    "texts", [[b"a", b"c", b"b", b"d"], [b"a", b"b", b"b", b"c"]], ids=["order", "repeat"]
)
def test_pretokens_that_do_not_ascend_are_refused(
    texts: list[bytes], block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merging and leaving out rare pretokens would add them up wrongly."""
    monkeypatch.setattr("bpe.pretoken_counts.counts_file.BLOCK_PRETOKENS", block)
    text = np.frombuffer(b"".join(texts), np.uint8)
    path = raw_file(tmp_path / "a.counts", dict.fromkeys((b"a", b"b", b"c", b"d"), 1), pretoken_bytes=text)
    with pytest.raises(BadCounts, match=r"a\.counts: .*ascend"):
        PretokenCounts.load(path)


def test_missing_and_unwritable(tmp_path: Path) -> None:
    for path in (tmp_path / "no.counts", tmp_path):
        with pytest.raises(MissingInput):
            CountsFile(path)
    for temporary, hint in ((False, ""), (True, "--temp-dir")):
        with pytest.raises(EnvironmentFailure, match=f"/dev/full.*{hint}"):
            write_counts_file("/dev/full", iter(()), CountsFacts(), temporary)


# -- sums


def plenty() -> MemoryBudget:
    return MemoryBudget(used_bytes() + (1 << 40))


def of_files(folder: Path, every: list[dict[bytes, int]]) -> CountSet:
    return CountSet.of_files([saved(folder / f"{place}", counts) for place, counts in enumerate(every)])


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 12])
def test_any_number_of_files_adds_up(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "FAN_IN", 3)
    rng = random.Random(size)
    monkeypatch.setattr(counts_file, "BLOCK_PRETOKENS", rng.choice([1, 4, 20]))
    every = [random_counts(rng, rng.choice([0, 1, 60])) for _ in range(size)]
    counted = of_files(tmp_path, every)
    with Workspace(tmp_path) as workspace:
        assert list(counted.load(plenty(), workspace).as_dict().items()) == list(sum_of(every).items())
        counted.save(tmp_path / "all", workspace)
    facts = merged_facts([("", FACTS)] * size)
    assert (tmp_path / "all").read_bytes() == saved(tmp_path / "once", sum_of(every), facts).read_bytes()
    assert not list(tmp_path.glob(".bpe*"))
    if size > 3:
        with pytest.raises(BadArgument, match="workspace"):
            counted.blocks()


@pytest.mark.parametrize("in_memory", [True, False], ids=["memory", "files"])
@pytest.mark.parametrize("lowest", [1, 2, 2**16, 2**17, 2**62])
def test_rare_pretokens_are_left_out(lowest: int, in_memory: bool, tmp_path: Path) -> None:
    rng = random.Random(lowest)
    counts = {rng.randbytes(5): 2 ** rng.randint(0, 55) for _ in range(500)} | {b"a": 1, b"b": 2**62}
    expected = {pretoken: count for pretoken, count in counts.items() if count >= lowest}
    part = PretokenCounts.from_mapping(counts)
    counted = CountSet([part], part.facts) if in_memory else of_files(tmp_path, [counts])
    progress = Notes()
    with Workspace(tmp_path) as workspace:
        assert counted.load(plenty(), workspace, lowest, progress).as_dict() == expected
    assert len(progress.notes) == (lowest > 1)
    if lowest > 1:
        assert f" {len(counts) - len(expected):,} of {len(counts):,} " in progress.notes[0]
        assert f" {lowest} times" in progress.notes[0]


def test_oversized_counts_are_refused_or_fitted(tmp_path: Path) -> None:
    rng = random.Random(2)
    every = [{rng.randbytes(100): rng.randint(1, 9) for _ in range(20_000)} for _ in range(3)]
    counted, expected = of_files(tmp_path, every), sum_of(every)
    half = sorted(expected.values())[len(expected) // 2]
    kept = sum(count > half for count in expected.values())
    needed = training_bytes(kept, 100 * kept, 1 << 15, at_most=True)
    with Workspace(tmp_path) as workspace:
        tight = MemoryBudget(used_bytes() + needed + (20 << 20))
        with pytest.raises(NotEnoughMemory, match=r"--min-pretoken-count 2 \(or fit\)"):
            counted.load(MemoryBudget(used_bytes() + (63 << 20)), workspace)
        fitted = counted.load(tight, workspace, "fit", Notes())
        lowest = int(fitted.counts.min())
        assert fitted.as_dict() == {key: count for key, count in expected.items() if count >= lowest}
        assert 1 < lowest <= half + 1
        assert len(counted.load(plenty(), workspace, "fit")) == 60_000
        with pytest.raises(NotEnoughMemory):
            counted.load(MemoryBudget(used_bytes() + 1000), workspace, "fit")


@pytest.mark.parametrize("wrong", [0, -1, 2**63, "all", 1.5], ids=str)
def test_bad_lowest_counts(wrong: Any) -> None:
    with Workspace() as workspace, pytest.raises(BadArgument, match="min_pretoken_count"):
        CountSet([], CountsFacts()).load(plenty(), workspace, wrong)


def test_counts_that_were_cut_in_different_ways_have_no_sum(tmp_path: Path) -> None:
    saved(tmp_path / "a", {b"a": 1}, CountsFacts(GPT2))
    others = [CountsFacts(GPT2, ("<s>",)), CountsFacts(Pretokenizer.from_pattern("qwen2"))]
    for facts in others:
        saved(tmp_path / "b", {b"a": 1}, facts)
        with pytest.raises(BadArgument, match="/a: .*/b"):
            PretokenCounts.load(tmp_path / "a", tmp_path / "b")


# -- exact sums


@pytest.mark.parametrize("command", ["train", "count", "report", "info"])
def test_sums_are_checked_by_every_command(
    command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Four counts of 2^62 overflowed, and training merged the wrong pair."""
    train([b"aab ab"], 258).save(tmp_path / "tokenizer.json")
    capfd.readouterr()

    words = {
        "train": f"train --vocab-size 300 --output {tmp_path}/t.json --quiet --counts",
        "count": f"count --output {tmp_path}/sum.counts --quiet --counts",
        "report": f"report {tmp_path}/tokenizer.json --counts",
        "info": "info",
    }[command]

    def run(*files: Path) -> tuple[int, str]:
        code = main([*words.split(), *map(str, files[:1] if command == "info" else files)])
        return code, capfd.readouterr().err

    good = raw_file(tmp_path / "good", {b"ab": 2, b"b": 1})
    assert run(good, good)[0] == 0
    (tmp_path / "sum.counts").unlink(missing_ok=True)
    bad = [raw_file(tmp_path / f"{number}", {b"x": 2**62, b"yz": 3}) for number in range(4)]
    if command == "info":
        bad = [raw_file(tmp_path / "large", {b"a": 2**62, b"b": 2**62})]
    code, error = run(*bad)
    assert (code, error.count("\n")) == (3, 1), error
    assert not (tmp_path / "sum.counts").exists()
    weighted = raw_file(tmp_path / "weighted", {b"abcd": 2**61, b"e": 1})
    assert run(weighted)[0] == (3 if command in ("train", "report") else 0)
    limit = raw_file(tmp_path / "limit", {b"abcd": 2**62, b"e": 2**62 - 1})
    if command == "count":
        assert run(limit)[0] == 0
        assert CountsFile(tmp_path / "sum.counts").total == 2**63 - 1


@pytest.mark.parametrize("count", [1.5, -1, 2**63, 2**64], ids=str)
def test_invalid_counts_are_refused(count: Any) -> None:
    with pytest.raises(BadArgument, match="counts"):
        PretokenCounts.from_mapping({b"a": count, b"b": 1})


def test_training_on_counts_made_by_hand_checks_them_too() -> None:
    with pytest.raises(BadCounts):
        train_on(PretokenCounts.from_mapping({b"abcd": 2**61}), 300)
