"""Counts that outgrow memory go to disk and read back equal; counts that cannot fit give an error, not a kill."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from bpe.errors import BadArgument, EnvironmentFailure, NotEnoughMemory
from bpe.pretoken_counts.counting import CountingOptions, count_pretokens, count_sources
from bpe.pretoken_counts.counts_file import CountsFile
from bpe.pretoken_counts.memory import MIN_FREE_BYTES, MemoryBudget, available_bytes, trim_memory, used_bytes
from bpe.pretoken_counts.sources import listed
from bpe.pretoken_counts.workspace import Workspace
from bpe.training import train, train_on

END = "<|endoftext|>"


def random_words(seed: int, size: int) -> bytes:
    """Return random letters in words of 4 to 12: nearly every pretoken is new."""
    rng = random.Random(seed)
    letters = bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=size))
    text = bytearray(letters)
    place = 0
    while place < size:
        text[place] = 32
        place += rng.randint(4, 12)
    return bytes(text)


def test_spilled_counts_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(random_words(1, 3 << 20) + END.encode() + random_words(1, 1 << 20) + b" end")
    expected = count_pretokens([path], [END])
    budget = MemoryBudget(used_bytes() + (40 << 20))
    with Workspace(tmp_path) as workspace:
        counted = count_sources(
            listed([path], "auto"), CountingOptions([END]), budget=budget, workspace=workspace
        )
        assert len(counted.parts) > 2
        assert all(isinstance(part, CountsFile) for part in counted.parts)
        counted.save(tmp_path / "spilled.counts", workspace)
        assert counted.facts == expected.facts
    expected.save(tmp_path / "whole.counts")
    assert (tmp_path / "spilled.counts").read_bytes() == (tmp_path / "whole.counts").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["spilled.counts", "text.txt", "whole.counts"]


@pytest.mark.parametrize("pattern", ["gpt2", r"\w+|\W"])
def test_a_text_without_a_cut_is_refused_before_it_fills_memory(pattern: str, tmp_path: Path) -> None:
    path = tmp_path / "one word.txt"
    path.write_bytes(b"word " + b"x" * (12 << 20))
    trim_memory()  # else memory freed by earlier tests leaves room
    budget = MemoryBudget(used_bytes() + MIN_FREE_BYTES)
    with Workspace(tmp_path) as workspace, pytest.raises(NotEnoughMemory) as raised:
        count_sources(
            listed([path], "auto"), CountingOptions([END], pattern), budget=budget, workspace=workspace
        )
    assert raised.value.exit_code == 5
    assert "one word.txt: byte " in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_budget_that_is_too_small() -> None:
    with pytest.raises(BadArgument, match=r"max_memory.*1\.0"):
        train([b"ab"], 300, max_memory_bytes=10**6)
    assert available_bytes() > 0
    assert MemoryBudget.of(None).limit_bytes > used_bytes()


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure):
        Workspace(tmp_path / "no")
    (tmp_path / "gone").mkdir()
    with Workspace(tmp_path / "gone") as workspace:
        (tmp_path / "gone").rmdir()
        with pytest.raises(EnvironmentFailure, match="--temp-dir"):
            workspace.new_file()


@pytest.mark.slow
def test_random_letters_under_a_limit_were_killed(tmp_path: Path) -> None:
    """Random letters that need ten times the address space once counted: spilled, then rejected or fitted."""
    path = tmp_path / "letters.txt"
    path.write_bytes(random_words(2, 24 << 20))
    limit_bytes = 480 << 20  # Python, numpy, the core and the thread stacks map 300 MB before counting
    script = (
        "import resource, sys\n"
        "from bpe.__main__ import main\n"
        "import numpy, bpe.cli.training_commands\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({limit_bytes}, {limit_bytes}))\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "train", str(path), "--vocab-size", "300", "--threads", "1"]
    command += ["--output", str(tmp_path / "t.json"), "--quiet"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (5, ""), ended.stderr
    assert ended.stderr.count("\n") == 1
    assert "error: merging " in ended.stderr
    assert f"--counts {tmp_path}/t.counts " in ended.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["letters.txt", "t.counts"]
    command[4:5] = ["--counts", str(tmp_path / "t.counts"), "--min-pretoken-count", "fit"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "note: min_pretoken_count: " in ended.stderr
    assert CountsFile(tmp_path / "t.counts").facts.text_bytes == 24 << 20


def test_merging_that_outgrows_the_budget_is_stopped() -> None:
    counts = count_pretokens([random_words(4, 1 << 20)])
    with pytest.raises(NotEnoughMemory, match=r"50\.0.*--max-memory"):
        train_on(counts, 60_000, budget=MemoryBudget(50_000_000))
