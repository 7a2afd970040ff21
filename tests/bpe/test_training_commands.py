"""The commands `train` and `count`: several sizes, counts files, stdin, interrupts that keep counts, exit codes."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.__main__ import main
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_file import CountsFile
from bpe.progress import TrainingProgress
from bpe.tokenizer import Tokenizer
from bpe.training import train, train_sizes
from bpe.training_options import TrainingOptions

END = "<|endoftext|>"
SPECIAL = f"--special-token '{END}'"
TEXTS = ["0.txt", "1.txt", "2.txt"]
TRAIN = f"train {' '.join(TEXTS)} {SPECIAL}"
Run = Callable[[str], tuple[int, str]]


@pytest.fixture(autouse=True)
def texts(tmp_path: Path, random_texts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """TEXTS in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name, text in zip(TEXTS, random_texts(seed=4, count=3, size=4000), strict=True):
        Path(name).write_text(text + END, newline="", encoding="utf-8")


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """run(command) returns (exit code, stderr) and checks that stdout is empty."""

    def command(line: str) -> tuple[int, str]:
        try:
            code = main(shlex.split(line))
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capfd.readouterr()
        assert out == ""
        return code, err

    return command


@pytest.fixture
def fails(run: Run) -> Callable[[int, str, str], None]:
    """fails(code, message, command) expects one line on stderr that contains the message."""

    def command(code: int, message: str, line: str) -> None:
        got, err = run(line)
        assert (got, err.count("\n")) == (code, 1), err
        assert re.search(message, err), err

    return command


# -- several sizes


def test_sizes_are_prefixes_of_one_training(run: Run) -> None:
    code, err = run(f"{TRAIN} --vocab-size 300,0.26k,4e2 --output t-{{vocab_size}}.json")
    assert code == 0, err
    assert err.count("merging") == 1
    sizes = train_sizes(TEXTS, [300, 260, 400], TrainingOptions([END]))
    assert list(sizes) == [300, 260, 400]
    for size, tokenizer in sizes.items():
        assert Tokenizer.load(f"t-{size}.json") == tokenizer == train(TEXTS, size, [END])
        assert tokenizer.vocab_size == size


def test_more_than_there_is_stops_early(run: Run) -> None:
    Path("a").write_bytes(b"aab ab")
    code, err = run("train a --vocab-size 258,9k --output {vocab_size}")
    assert code == 0
    assert re.search("note: training: .*259 of 9000", err)
    assert Tokenizer.load("9000").vocab_size == 259
    _, err = run("train a --vocab-size 9k --max-token-bytes 2 --min-frequency 2 --output x")
    assert re.search("note: training: .*1 merge", err)


# -- counts files


def test_counts_instead_of_text(run: Run) -> None:
    run(f"{TRAIN} --vocab-size 400 --output whole.json --pattern llama3")
    for number in range(3):
        code, err = run(f"count {number}.txt {SPECIAL} --pattern llama3 --output {number}.counts")
        assert code == 0
        assert re.search(rf"{number}\.counts: counts of .* in \d+ documents, pattern llama3\n$", err)
    run("train --counts 0.counts 1.counts 2.counts --vocab-size 400 --output merged.json")
    run("train 0.txt --counts 1.counts 2.counts --vocab-size 400 --output mixed.json")
    run("count --counts 0.counts 1.counts --counts 2.counts --output all.counts --quiet")
    run("train --counts all.counts --vocab-size 400 --output again.json")
    for name in ("merged", "mixed", "again"):
        assert Path(f"{name}.json").read_bytes() == Path("whole.json").read_bytes(), name
    assert CountsFile(Path("all.counts")).facts.documents == count_pretokens(TEXTS, [END]).facts.documents


def test_counts_are_kept_on_request(run: Run) -> None:
    assert run(f"{TRAIN} --vocab-size 400 --output t.json --keep-counts kept")[0] == 0
    assert PretokenCounts.load(Path("kept")).as_dict() == count_pretokens(TEXTS, [END]).as_dict()


def test_special_tokens_that_the_counts_were_not_cut_at_are_named(run: Run) -> None:
    assert run(f"count {' '.join(TEXTS)} {SPECIAL} --output a.counts")[0] == 0
    command = "train --counts a.counts --vocab-size 300 --output t.json --quiet"
    assert run(command) == run(f"{command} {SPECIAL}") == (0, "")
    code, err = run(f"{command} {SPECIAL} --special-token '<s>' --special-token '</s>'")
    assert (code, err.count("\n")) == (0, 1)
    assert re.search("note: counts files: .*'<s>', '</s>'", err)
    assert list(Tokenizer.load("t.json").special_tokens) == [END, "<s>", "</s>"]


# -- options of the start


def test_options_of_the_start(run: Run) -> None:
    def made(name: str, options: str, command: str = f"train {' '.join(TEXTS)}") -> Tokenizer:
        code, err = run(f"{command} --output {name} {options}")
        assert code == 0, err
        return Tokenizer.load(name)

    assert made("l.json", f"--vocab-size 400 {SPECIAL} --like qwen-3") == train(
        TEXTS, 400, [END], like="qwen3"
    )
    like_file = made("f.json", f"--vocab-size 400 {SPECIAL} --like l.json --keep-counts c")
    assert like_file == made("l.json", f"--vocab-size 400 {SPECIAL} --like qwen-2.5")
    longer = "--continue-from l.json --vocab-size 500"
    assert made("c.json", longer) == train(TEXTS, 500, [END], like="qwen-3")
    assert made("d.json", longer, "train --counts c") == Tokenizer.load("c.json")
    expected = TrainingOptions(initial_alphabet="aĠ", limit_alphabet=9, max_token_length=4)
    alphabet = "--initial-alphabet aĠ --limit-alphabet 9 --max-token-length 4"
    assert made("a.json", f"--vocab-size 300 {alphabet}") == train_sizes(TEXTS, [300], expected)[300]


@pytest.mark.long
def test_stdin_is_an_input() -> None:
    words = f"-m bpe train 0.txt - {SPECIAL} --vocab-size 400 --output t.json"
    command = [sys.executable, *shlex.split(words)]
    text = Path("1.txt").read_bytes() + Path("2.txt").read_bytes()
    assert subprocess.run(command, input=text, capture_output=True, check=True).stdout == b""
    assert Tokenizer.load("t.json") == train(TEXTS, 400, [END])
    bad = subprocess.run(command, input=b"ab\xff", capture_output=True, check=False)
    assert bad.returncode == 3
    assert bad.stderr.startswith(b"tokenmill: error: stdin: byte 2: ")
    closed = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m bpe count - --output x <&-"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (closed.returncode, closed.stderr.count("\n")) == (2, 1)
    assert closed.stderr.startswith("tokenmill: error: -: ")


SIZE = "--vocab-size 300 --output t.json"
QWEN = f"train 0.txt --vocab-size 400 {SPECIAL} --like qwen-2.5 --output l.json --keep-counts c --quiet"
# File -> the command that makes it.
MADE = {
    "a.counts": f"count 0.txt {SPECIAL} --output a.counts",
    "b.counts": f"count 0.txt {SPECIAL} --pattern qwen2 --output b.counts",
    "l.json": QWEN,
    "c": QWEN,
    "clip.json": f"train {' '.join(TEXTS)} --vocab-size 600 --like clip --output clip.json --quiet",
}
NEW = f"train {' '.join(TEXTS)} {SIZE}"


@pytest.mark.parametrize(
    ("message", "command"),
    [
        (r"a\.counts: .*'gpt2'.*'qwen2'.*b\.counts", f"train --counts a.counts b.counts {SIZE}"),
        (r"a\.counts: .*'o200k'.*--pattern", f"train --counts a.counts --pattern o200k {SIZE}"),
        (r"a\.counts: .*none.*NFC", f"train --counts a.counts {SIZE} --like pythia"),
        ("/?c: .*'qwen2'.*'gpt2'", f"train --counts c {SIZE} --like gpt-2"),
        ("error: -: ", f"train - {SIZE} --report r --held-out -"),
        ("--max-memory: ", f"{NEW} --max-memory 1MB"),
        ("--keep-counts .*no/x: ", f"{NEW} --keep-counts no/x"),
        ("--special-token: .*'<s>'", f"{NEW} --special-token '<s>' --special-token '<s>'"),
        ("--min-pretoken-count: .*99999", f"{NEW} --quiet --min-pretoken-count 99999"),
        ("error: --like: .* --pattern", f"{NEW} --like gpt-2 --pattern gpt2"),
        ("error: --limit-alphabet: .* --continue-from", f"{NEW} --continue-from l.json --limit-alphabet 9"),
        ("error: --like: .* --continue-from", f"{NEW} --continue-from l.json --like gpt-2"),
        # no counts to keep
        ("error: --limit-alphabet: (?:(?!--counts).)*$", f"{NEW} --limit-alphabet 2 --initial-alphabet abc"),
        ("error: end_of_word_suffix", f"{NEW} --vocab-size 600 --like clip --report r.html"),
        ("error: end_of_word_suffix", f"{NEW} --vocab-size 700 --continue-from clip.json --report r.html"),
    ],
)
def test_refusals(message: str, command: str, fails: Any, run: Run) -> None:
    for name, line in MADE.items():
        if name in command.split():
            assert run(line)[0] == 0
    fails(2, message, command)
    assert not Path("t.json").exists()


def test_damaged_counts_are_refused(fails: Any, run: Run) -> None:
    run(MADE["a.counts"])
    data = bytearray(Path("a.counts").read_bytes())
    data[200] ^= 1
    Path("a.counts").write_bytes(data)
    fails(3, r"a\.counts: damaged", f"train --counts a.counts {SIZE}")


# -- interrupts


@pytest.fixture
def signal_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """signal_in(phase, number): the process signals itself at the first update of the phase."""
    update = TrainingProgress.update

    def install(phase: str, number: int = signal.SIGINT) -> None:
        left = [1]

        def signalling(self: TrainingProgress, done: int) -> None:
            update(self, done)
            if self._phase == phase and left:
                left.pop()
                os.kill(os.getpid(), number)

        monkeypatch.setattr(TrainingProgress, "update", signalling)

    return install


@pytest.mark.parametrize("kept", [True, False])
def test_merging_that_is_interrupted_leaves_the_counts(kept: bool, run: Run, signal_in: Any) -> None:
    sizes = "--vocab-size 300,320 --output t-{vocab_size}.json"
    signal_in("merging")
    Path("t-all.counts").write_bytes(b"another's")
    code, err = run(f"{TRAIN} {sizes} {'--keep-counts mine' if kept else ''}")
    assert code == 130
    name = "mine" if kept else "t-all.1.counts"
    assert "tokenmill: error: interrupted while merging. " in err
    assert f"--counts {name} " in err.splitlines()[-1]
    assert Path("t-all.counts").read_bytes() == b"another's"
    assert run(f"train --counts {name} {sizes}")[0] == 0
    assert Tokenizer.load("t-320.json") == train(TEXTS, 320, [END])
    signal_in("merging")
    code, err = run(f"train --counts {name} {sizes}")
    assert (code, err.count("\n")) == (130, 1)
    assert err.startswith("tokenmill: error: interrupted while merging. ")


def test_no_memory_for_merging_keeps_the_counts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("bpe.cli.training_commands.learn_merges", no_memory)
    code, err = run(f"{TRAIN} {SIZE} --quiet")
    assert code == 5
    assert err.startswith("tokenmill: error: out of memory while merging. ")
    assert len(CountsFile(Path("t.counts")))
