"""Counting notes how often a text holds a separator that is no special token."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe.__main__ import main
from bpe.patterns import PATTERNS
from bpe.pretoken_counts.counting import CountingOptions, count_sources
from bpe.pretoken_counts.memory import MemoryBudget
from bpe.pretoken_counts.workspace import Workspace
from bpe.tokenizer import END_OF_TEXT

DOCUMENTS = ["Hello, world.", "it's\n", " ", "", "漢字", "12", "<|", "|>", "x endoftext y", 'a "', "é!\n\n"]


class Notes:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def begin(self, phase: str, total: int | None, unit: str) -> None:
        pass

    def update(self, done: int) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.parametrize("pattern", [*PATTERNS, r"\w+|\W", r"[\s\S]"])
def test_the_count_is_told(pattern: str, tmp_path: Path) -> None:
    text = END_OF_TEXT.join(DOCUMENTS * 9).encode()
    times = 9 * len(DOCUMENTS) - 1
    for block_bytes in (100, None):
        told = Notes()
        count_sources([text], CountingOptions((), pattern, block_bytes=block_bytes), told)
        (note,) = told.notes
        assert note.startswith("<|endoftext|>: ")
        assert f" {times} times" in note
    for quiet, special_tokens in (
        (text, [END_OF_TEXT]),
        (b"an endoftext, the endoftext\nends", []),
        (b"", []),
    ):
        told = Notes()
        count_sources([quiet], CountingOptions(special_tokens, pattern), told)
        assert not told.notes


def test_spilled_counts_are_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"document {number}{END_OF_TEXT}" for number in range(30_000)).encode()
    told = Notes()
    with Workspace(tmp_path) as workspace:
        budget = MemoryBudget.of(None)
        monkeypatch.setattr(type(budget), "free_bytes", property(lambda _: 1 << 26))
        monkeypatch.setattr("bpe.pretoken_counts.bounded_counter.SPILL_SHARE", 1 << 10)
        counts = count_sources([text], CountingOptions(), told, budget, workspace)
        assert len(counts.parts) > 1
    assert len(told.notes) == 1
    assert "<|endoftext|>: occurs 30,000 times" in told.notes[0]


@pytest.mark.parametrize("command", ["train", "count"])
def test_the_commands_tell(command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("b.HTM", "a.txt", "c.html", "d.log"):
        (tmp_path / name).write_text(f"some words{END_OF_TEXT}more words{END_OF_TEXT}")
    files = sorted(map(str, tmp_path.iterdir()))
    sizes = ["--vocab-size", "260"] if command == "train" else []
    assert main([command, *files, *sizes, "--output", str(tmp_path / "out.json")]) == 0
    err = capfd.readouterr().err
    assert "tokenmill: note: <|endoftext|>: occurs 8 times" in err
    assert f"tokenmill: note: {files[1]} and 1 more: read as plain text" in err
    options = ["--special-token", END_OF_TEXT, "--output", str(tmp_path / "two.json")]
    assert main([command, files[0], *sizes, *options]) == 0
    err = capfd.readouterr().err
    assert "plain text" not in err
    assert "ordinary text" not in err
