"""Counts are kept if a step after counting fails; no other files remain."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from bpe.__main__ import main
from bpe.errors import BadTokenizer, EnvironmentFailure
from bpe.pretoken_counts import counting
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_file import CountsFile
from bpe.pretoken_counts.workspace import PREFIX
from bpe.tokenizer import Tokenizer
from bpe.training import train

END = "<|endoftext|>"
BPE = f"{os.sep}bpe{os.sep}"
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """run(*arguments) returns (exit code, stderr) of a command."""

    def command(*arguments: object) -> tuple[int, str]:
        code = main(list(map(str, arguments)))
        return code, capfd.readouterr().err

    return command


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, which contains a text, and use another folder for temporary files."""
    (tmp_path / "work").mkdir()
    (tmp_path / "temp").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    monkeypatch.setattr("bpe.pretoken_counts.counting.THREAD_BLOCK_BYTES", 1 << 16)  # several blocks
    Path("en.txt").write_text(f"the mill by the river and the weir{END}" * 5000)
    return tmp_path / "work"


def counts_of_text() -> dict[bytes, int]:
    return count_pretokens([Path("en.txt")], [END]).as_dict()


class Steps:
    """Count the package's function calls until cleanup begins, and signal the process at a chosen call."""

    def __init__(self, at: int, number: int) -> None:
        self._at, self._number = at, number
        self.count = 0
        self._is_counting = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        name, function = frame.f_code.co_filename, frame.f_code.co_name
        if event != "call" or BPE not in name or "tests" in name:
            return
        if name.endswith("training_commands.py"):
            self._is_counting = function != "__exit__" and (self._is_counting or function == "gather")
        # Python only prints exceptions raised while a generator is closed.
        if self._is_counting and function != "<genexpr>":
            self.count += 1
            if self.count == self._at:
                self._is_counting = False
                signal.raise_signal(self._number)


@contextmanager
def signalled(at: int, number: int = signal.SIGINT) -> Iterator[Steps]:
    steps = Steps(at, number)
    sys.setprofile(steps)
    try:
        yield steps
    finally:
        sys.setprofile(None)


def clear(here: Path) -> None:
    for path in here.iterdir():
        if path.name != "en.txt":
            path.unlink()


OPTIONS = f"en.txt --special-token {END} --threads 1"
COMMANDS = {
    "count": f"count {OPTIONS} --output c.counts --quiet".split(),
    "train": f"train {OPTIONS} --vocab-size 270 --output t.json".split(),
    "keep": f"train {OPTIONS} --vocab-size 265,270 --output {{vocab_size}}.json --keep-counts k.counts".split(),
}


@pytest.mark.slow
@pytest.mark.promise("exit-codes")
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["ctrl-c", "sigterm", "sighup"]
)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_signal_at_any_step(command: list[str], number: int, here: Path, run: Run) -> None:
    """Signals while counts were written or kept lost them."""
    expected = counts_of_text()
    assert run(*command)[0] == 0
    whole = {path.name: path.read_bytes() for path in here.iterdir()}
    clear(here)
    with signalled(0) as steps:
        assert run(*command)[0] == 0
    seen = set()
    for step in range(1 + number % 5, steps.count, 1 + steps.count // 12):
        clear(here)
        with signalled(step, number):
            code, err = run(*command)
        assert code in (0, 128 + number), err
        assert "Traceback" not in err
        assert not list(here.glob(f"*{PREFIX}*")) + list(here.glob("*.partial"))
        kept = [path for path in here.iterdir() if path.suffix == ".counts"]
        done = {path.name for path in here.iterdir()} >= set(whole)
        seen.add((code, done, len(kept)))
        if done:
            assert {name: Path(name).read_bytes() for name in whole} == whole
        elif kept:
            assert kept[0].name in err
            assert PretokenCounts.load(kept[0]).as_dict() == expected
    assert len(seen) >= 1 + ("train" in command)  # stopped before and after counting


def test_a_tokenizer_that_can_not_be_written_leaves_the_counts(
    here: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise BadTokenizer("this file format can't hold it")

    monkeypatch.setattr(Tokenizer, "save", refuse)
    code, err = run(*COMMANDS["train"])
    assert code == 2
    assert re.search(r"can't hold it\. .*--counts t\.counts ", err)
    assert PretokenCounts.load("t.counts").as_dict() == counts_of_text()


def test_counts_that_were_not_cut_at_a_special_token(here: Path, run: Run) -> None:
    """`the` is then an entry. Counts of a further text, counted first, cannot be added to these."""
    assert run("count", "en.txt", "--output", "plain.counts")[0] == 0
    command = ["train", "--counts", "plain.counts", "--vocab-size", "300", "--output", "t.json"]
    code, err = run(*command, "--special-token", "the")
    assert code == 2
    assert "special_tokens: " in err
    assert "'the'" in err
    assert "counts files are unchanged" in err
    code, err = run(*command, "en.txt", "--special-token", "the")
    assert code == 2
    assert "counts files: " in err
    assert "'the'" in err
    assert "counting:" not in err


def test_format_errors_were_found_after_the_training(here: Path, run: Run) -> None:
    for token in ("Ġthe", "Ċ"):
        code, err = run(*COMMANDS["train"], "--special-token", token)
        assert code == 2
        assert err.startswith("tokenmill: error: --special-token: ")
        assert repr(token) in err
    assert [path.name for path in here.iterdir()] == ["en.txt"]
    assert train([Path("en.txt")], 260, ["<début>", "café"]).special_tokens == {"<début>": 0, "café": 1}


def test_a_damaged_counts_file_was_found_when_all_was_counted(here: Path, run: Run) -> None:
    run("count", "en.txt", "--special-token", END, "--output", "a.counts")
    data = bytearray(Path("a.counts").read_bytes())
    data[200] ^= 1
    Path("a.counts").write_bytes(data)
    code, err = run(*COMMANDS["count"], "--counts", "a.counts")
    assert (code, err.count("\n")) == (3, 1)
    assert "a.counts: damaged" in err
    assert "--counts" not in err


def test_kept_counts_in_an_input_folder_are_not_text(here: Path, run: Run) -> None:
    command = ["count", ".", "--special-token", END, "--output", "../c.counts", "--quiet"]
    assert run(*command)[0] == 0
    whole = Path("../c.counts").read_bytes()
    Path("kept.counts").write_bytes(whole)
    code, _ = run(*command, "--counts", "kept.counts")
    assert code == 0
    assert CountsFile("../c.counts").total == 2 * CountsFile("kept.counts").total


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_disk_that_is_full_when_counts_are_spilled(
    command: list[str], here: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    spill, spilled = counting.write_counts_file, []

    def write_or_fail(path: Path, *arguments: Any, **named: Any) -> None:
        if len(spilled) == 1:
            path.write_bytes(b"half")
            raise EnvironmentFailure(f"{path}: can't write: {os.strerror(errno.ENOSPC)}")
        spilled.append(path)
        spill(path, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(counting, "write_counts_file", write_or_fail)
        patched.setattr(counting, "SPILL_SHARE", 1 << 30)
        code, err = run(*command)
    assert code == 4
    assert "No space left on device" in err
    assert {path.name for path in here.iterdir()} == {"en.txt"}
    assert not list(here.glob(f"{PREFIX}*"))
