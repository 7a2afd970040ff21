"""Sums of counts are exact or a one-line error, in every command that reads counts."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bpe.__main__ import main
from bpe.errors import BadArgument, BadCounts
from bpe.pretoken_counts.count_sums import exact_sum, weighted_bytes
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import CountsFacts
from bpe.pretoken_counts.counts_file import CountsFile
from bpe.pretokenizer import Pretokenizer
from bpe.training import train, train_on
from tokenmill.inputs import _core

FACTS = CountsFacts(Pretokenizer.from_pattern("gpt2"), text_bytes=5, documents=1)
Fails = Callable[..., None]


@pytest.mark.parametrize("highest", [1, 2**31, 2**32, 2**53 + 1, 2**62, 2**64 - 1])
@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_sums_are_exact(size: int, highest: int) -> None:
    rng = random.Random(size)
    counts = [rng.randint(0, highest) for _ in range(size)]
    lengths = [rng.choice([1, 2, 9, 70_000]) for _ in range(size)]
    ends = np.cumsum(lengths, dtype=np.uint64)
    assert exact_sum(np.array(counts, np.uint64)) == sum(counts)
    assert weighted_bytes(ends, np.array(counts, np.uint64)) == sum(map(int.__mul__, lengths, counts))


# -- commands ------------------------------------------------------------------------------------------------


@pytest.fixture
def fails(capfd: pytest.CaptureFixture[str]) -> Fails:
    """fails(message, *arguments) checks for exit code 3 and one line on stderr that contains the message."""

    def command(message: str, *arguments: object) -> None:
        code = main(list(map(str, arguments)))
        out, err = capfd.readouterr()
        assert (code, out, err.count("\n")) == (3, "", 1), (out, err)
        assert re.search(message, err), err

    return command


def raw_file(path: Path, pretokens: dict[bytes, int], **footer: object) -> Path:
    """Write a counts file with one block of these pretokens and arbitrary footer fields, with valid checksums."""
    lengths = struct.pack(f"<{len(pretokens)}B", *map(len, pretokens))
    counts = struct.pack(f"<{len(pretokens)}Q", *pretokens.values())
    text = b"".join(pretokens)
    block = struct.pack("<IBBHQ", len(pretokens), 1, 8, 0, len(text)) + lengths + counts + text
    header = b"tmcounts" + struct.pack("<II", 1, 0)
    sums = {
        "blocks": 1,
        "distinct": len(pretokens),
        "total": sum(pretokens.values()),
        "pretoken_bytes": len(text),
    }
    foot = json.dumps(FACTS.to_json() | sums | footer).encode()
    start = struct.pack("<Q", len(header) + len(block) + 8)
    digest = _core.xxh64(header + foot + start).to_bytes(8, "little")
    path.write_bytes(
        header + block + _core.xxh64(block, 0).to_bytes(8, "little") + foot + start + digest + b"tmcntend"
    )
    return path


def commands(tmp_path: Path, *files: Path) -> dict[str, list[object]]:
    """Return every command that reads counts, by name."""
    tokenizer = tmp_path / "tokenizer.json"
    if not tokenizer.exists():
        train([b"aab ab"], 258).save(tokenizer)
    return {
        "train": [
            "train",
            "--counts",
            *files,
            "--vocab-size",
            300,
            "--output",
            tmp_path / "t.json",
            "--quiet",
        ],
        "count": ["count", "--counts", *files, "--output", tmp_path / "sum.counts", "--quiet"],
        "report": ["report", tokenizer, "--counts", *files],
        "info": ["info", files[0]],
    }


COMMANDS = ["train", "count", "report", "info"]


def test_a_good_raw_file_is_accepted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = raw_file(tmp_path / "a.counts", {b"ab": 2, b"b": 1})
    assert PretokenCounts.load(made).as_dict() == {b"ab": 2, b"b": 1}
    for command in commands(tmp_path, made, made).values():
        assert main(list(map(str, command))) == 0, capfd.readouterr()


@pytest.mark.parametrize("name", ["train", "count", "report"])
def test_four_files_of_two_to_the_62_merged_the_wrong_pair(name: str, tmp_path: Path, fails: Fails) -> None:
    files = [raw_file(tmp_path / f"{number}.counts", {b"x": 2**62, b"yz": 3}) for number in range(4)]
    fails(
        "4 sets of counts: .*18,446,744,073,709,551,628",
        *commands(tmp_path, *files)[name],
    )
    assert not (tmp_path / "t.json").exists()
    assert not (tmp_path / "sum.counts").exists()


@pytest.mark.parametrize(
    "counts", [{b"a": 2**63}, {b"a": 2**62, b"b": 2**62}, dict.fromkeys([b"a", b"b"], 2**63)]
)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_whose_sum_is_too_large(
    name: str, counts: dict[bytes, int], tmp_path: Path, fails: Fails
) -> None:
    made = raw_file(tmp_path / "a.counts", counts)
    fails(r"a\.counts: ", *commands(tmp_path, made)[name])


@pytest.mark.parametrize("name", ["train", "report"])
def test_counts_times_lengths_beyond_two_to_the_63_were_a_traceback(
    name: str, tmp_path: Path, fails: Fails
) -> None:
    made = raw_file(tmp_path / "a.counts", {b"abcd": 2**61, b"e": 1})
    fails(
        "pretokens: .*9,223,372,036,854,775,809",
        *commands(tmp_path, made)[name],
    )


def test_counts_just_below_the_limit_are_kept_and_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = raw_file(tmp_path / "a.counts", {b"abcd": 2**62, b"e": 2**62 - 1})
    for name in ("count", "info"):
        assert main(list(map(str, commands(tmp_path, made)[name]))) == 0
    assert str(2**63 - 1) in capfd.readouterr().out
    assert CountsFile(tmp_path / "sum.counts").total == 2**63 - 1


@pytest.mark.parametrize("name", COMMANDS)
def test_a_count_of_zero_is_refused(name: str, tmp_path: Path, fails: Fails) -> None:
    made = raw_file(tmp_path / "a.counts", {b"a": 1, b"b": 0})
    fails(r"a\.counts: .*block 0 at byte 16", *commands(tmp_path, made)[name])


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("footer", "message"),
    [
        ({"text_bytes": float("inf")}, "Infinity"),
        ({"total": float("nan")}, "NaN"),
        ({"text_bytes": 1.5}, "1.5"),
        ({"distinct": 2.0}, "2.0"),
        ({"documents": "1"}, "'1'"),
        ({"replaced": -1}, "-1"),
        ({"text_bytes": 2**63}, f"{2**63}"),
        ({"blocks": True}, "True"),
        ({"sample": None}, "None"),
        ({"sources": [["a", 1, 0.5, 0]]}, "0.5"),
        ({"special_tokens": [1]}, "got 1"),
    ],
    ids=str,
)
def test_footers_of_other_numbers(
    name: str, footer: dict[str, object], message: str, tmp_path: Path, fails: Fails
) -> None:
    made = raw_file(tmp_path / "a.counts", {b"a": 1, b"b": 1}, **footer)
    fails(rf"a\.counts: .*footer.*{re.escape(message)}", *commands(tmp_path, made)[name])


def test_lengths_whose_sum_wraps_are_found(tmp_path: Path) -> None:
    path = raw_file(tmp_path / "a.counts", {b"a": 1, b"b": 1})
    data = bytearray(path.read_bytes())
    block = struct.pack("<IBBHQ", 2, 8, 1, 0, 2) + struct.pack("<2Q2B", 3, 2**64 - 1, 1, 1) + b"ab"
    start = struct.unpack("<Q", data[-24:-16])[0]
    foot = bytes(data[start:-24])
    data[16:start] = block + _core.xxh64(block, 0).to_bytes(8, "little")
    moved = struct.pack("<Q", 16 + len(block) + 8)
    digest = _core.xxh64(bytes(data[:16]) + foot + moved).to_bytes(8, "little")
    path.write_bytes(bytes(data[: 16 + len(block) + 8]) + foot + moved + digest + b"tmcntend")
    with pytest.raises(BadCounts):
        PretokenCounts.load(path)


# -- from Python ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1.5, -1, 2**63, 2**64], ids=str)
def test_invalid_counts_are_refused(count: int) -> None:
    with pytest.raises(BadArgument, match="counts"):
        PretokenCounts.from_mapping({b"a": count, b"b": 1})


def test_training_on_counts_made_by_hand_checks_them_too() -> None:
    with pytest.raises(BadCounts):
        train_on(PretokenCounts.from_mapping({b"abcd": 2**61}), 300)
